"""The object that `--json` prints."""

from __future__ import annotations

import json
from pathlib import PurePath

from pytest import approx

from opratchet.ledger.events import BaselineMeasured
from opratchet.ledger.state import fold
from opratchet.ledger.words import Outcome, StopReason
from opratchet.report.figures import average, percent_gain
from opratchet.report.summary import summary
from tests.builders import Story, full_story, latency
from tests.report.weights import weighted

FOLDER = PurePath("examples/norm/rmsnorm/perf_opt")
KEYS = [
    "verdict",
    "stop_reason",
    "metric_kind",
    "baseline_us",
    "final_us",
    "speedup",
    "speedup_ci",
    "rounds",
    "experiments",
    "outcomes",
    "by_workload",
    "output",
    "ledger",
    "seconds",
]


def test_a_complete_run() -> None:
    found = summary(fold(full_story().lines), FOLDER)
    assert list(found) == KEYS
    assert found["verdict"] == "TUNING_COMPLETED"
    assert found["stop_reason"] == "no_gain"
    assert found["metric_kind"] == "measured"
    assert found["baseline_us"] == approx(400.0)
    assert found["final_us"] == approx(100.0)
    assert found["speedup"] == approx(4.0)
    assert found["speedup_ci"] == approx([3.96, 4.04])
    assert found["rounds"] == 5
    assert found["experiments"] == 6
    assert set(found["outcomes"]) == {outcome.value for outcome in Outcome}
    assert found["outcomes"]["adopted"] == 2
    assert found["by_workload"] == [
        {"id": "small", "baseline_us": 400.0, "final_us": 100.0, "speedup": 4.0, "weight": 1.0},
        {"id": "large", "baseline_us": 400.0, "final_us": 100.0, "speedup": 4.0, "weight": 1.0},
    ]
    assert found["output"] == "examples/norm/rmsnorm/perf_opt/rmsnorm.py"
    assert found["ledger"] == "examples/norm/rmsnorm/perf_opt/ledger.jsonl"
    assert found["seconds"] == {
        "total": 60.0,
        "build": 20.0,
        "accuracy": 10.0,
        "measure": 28.0,
        "own": 2.0,
    }


def test_every_prefix_is_one_json_object_with_all_keys() -> None:
    lines = full_story().lines
    for length in range(1, len(lines) + 1):
        found = json.loads(json.dumps(summary(fold(lines[:length]), FOLDER), allow_nan=False))
        assert list(found) == KEYS


def test_an_interrupted_run_has_nulls_and_not_zeros() -> None:
    story = Story()
    story.open()
    story.round("adopted")
    found = summary(fold(story.lines), FOLDER)
    assert found["verdict"] == "TUNING_UNFINISHED"
    assert found["stop_reason"] is None
    assert found["final_us"] is found["speedup"] is found["speedup_ci"] is None
    assert found["baseline_us"] == approx(400.0)
    assert found["seconds"]["total"] is None
    assert found["seconds"]["build"] == 1.0


def test_a_user_stop_delivers_the_best_so_far() -> None:
    story = Story()
    story.open()
    story.round("adopted")
    story.close(StopReason.USER_STOP)
    found = summary(fold(story.lines), FOLDER)
    assert found["verdict"] == "TUNING_COMPLETED"
    assert found["stop_reason"] == "user_stop"
    assert found["speedup"] == approx(2.0)


def test_a_delivered_baseline_is_neither_faster_nor_slower() -> None:
    story = Story()
    story.open()
    story.stop()
    story.deliver()
    found = summary(fold(story.lines), FOLDER)
    assert found["baseline_us"] == found["final_us"] == approx(400.0)
    assert found["speedup"] == approx(1.0)
    assert found["speedup_ci"] is None


def test_latencies_are_averaged_geometrically_over_the_measured_workloads() -> None:
    story = Story(tune=("a", "b", "c"))
    story.start()
    story.add(BaselineMeasured(latency={"a": latency(100.0), "b": latency(400.0)}))
    state = fold(story.lines)
    found = average(state, state.baseline)
    assert found is not None
    assert found.us == approx(200.0)
    assert (found.low_us, found.high_us) == approx((198.0, 202.0))
    assert average(state, {"a": latency(1.0)}) is None


def test_an_average_has_the_weights_of_the_workloads() -> None:
    story = weighted(Story(), small=3.0, large=1.0)
    story.add(BaselineMeasured(latency={"small": latency(100.0), "large": latency(1600.0)}))
    state = fold(story.lines)
    found = average(state, state.baseline)
    assert found is not None
    assert found.us == approx(200.0)
    assert (found.low_us, found.high_us) == approx((198.0, 202.0))
    assert [w["weight"] for w in summary(state, FOLDER)["by_workload"]] == [3.0, 1.0]


def test_percent_gain_is_the_seeds() -> None:
    assert percent_gain(400.0, 100.0) == approx(75.0)
    assert percent_gain(100.0, 125.0) == approx(-25.0)
    assert percent_gain(0.0, 1.0) is None
