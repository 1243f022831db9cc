"""The files for tools: `perf_records.jsonl` and `workload_inventory.json` after the contracts of the seed's family."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import pytest

from opratchet.ledger.events import RoundFinished
from opratchet.ledger.state import fold
from opratchet.ledger.words import Outcome
from opratchet.report.records import perf_records, workload_inventory
from tests.builders import Story, full_story, ratio, sha

FOLDER = PurePath("perf_opt")
RECORD_KEYS = [
    "round",
    "candidate_id",
    "parent_id",
    "kernel_id",
    "workload_id",
    "phase",
    "artifact_path",
    "artifact_sha256",
    "duration_us",
    "l0_pass",
    "msprof_raw_path",
    "timestamp",
]
WORKLOAD_KEYS = [
    "benchmark_source",
    "kernel_id",
    "workload_id",
    "label",
    "marks",
    "shape",
    "dtype",
    "params",
    "kind",
    "reason",
]


def records(story: Story) -> list[dict[str, Any]]:
    return [json.loads(x) for x in perf_records(fold(story.lines), "zh", FOLDER).splitlines()]


def inventory(story: Story) -> dict[str, dict[str, Any]]:
    data = json.loads(workload_inventory(fold(story.lines), "zh", FOLDER))
    assert list(data) == ["workloads"]
    return {entry["workload_id"]: entry for entry in data["workloads"]}


def phase(story: Story, name: str) -> list[dict[str, Any]]:
    return [record for record in records(story) if record["phase"] == name]


def test_every_record_has_the_contracts_keys_and_says_its_kind() -> None:
    for record in records(full_story()):
        assert list(record) == [*RECORD_KEYS, "metric_kind", "backend"]
        assert re.fullmatch("[0-9a-f]{64}", record["artifact_sha256"])
        assert record["l0_pass"] is True
        assert record["msprof_raw_path"] is None
        assert record["timestamp"]
        assert record["metric_kind"] == "measured"
        assert record["kernel_id"] == "rmsnorm"


def test_the_baseline_is_round_zero() -> None:
    found = phase(full_story(), "baseline")
    assert [r["workload_id"] for r in found] == ["small", "large"]
    for record in found:
        assert (record["round"], record["candidate_id"], record["parent_id"]) == (
            0,
            "baseline",
            None,
        )
        assert record["duration_us"] == 400.0
        assert record["artifact_path"] == "baseline.py"
        assert record["artifact_sha256"] == sha("baseline")


def test_exactly_one_final_for_each_tune_workload() -> None:
    found = phase(full_story(), "final")
    assert [r["workload_id"] for r in found] == ["small", "large"]
    for record in found:
        assert record["candidate_id"] == "trial-4"
        assert record["parent_id"] == "trial-1"
        assert record["artifact_path"] == "rmsnorm.py"
        assert record["artifact_sha256"] == sha("candidate 4")
        assert record["duration_us"] == 100.0


def test_finals_carry_the_hash_of_the_delivered_file() -> None:
    story = Story()
    story.open()
    story.round("adopted")
    story.stop()
    story.measure_final(400.0, 200.0)
    story.deliver()
    delivered = story.lines[-1].event
    other = delivered.model_copy(update={"files": {"rmsnorm.py": sha("with a header")}})
    story.lines[-1] = story.lines[-1].model_copy(update={"event": other})
    assert {r["artifact_sha256"] for r in phase(story, "final")} == {sha("with a header")}


def test_only_timed_versions_have_records_and_name_their_parent() -> None:
    story = full_story()
    versions = {
        r["candidate_id"]: (r["phase"], r["round"], r["parent_id"], r["artifact_path"])
        for r in records(story)
        if r["phase"] in ("candidate", "merged")
    }
    assert versions == {
        "trial-1": ("merged", 1, "baseline", "rmsnorm_opt_v1.py"),
        "trial-2": ("candidate", 2, "trial-1", "rmsnorm_opt_v2.py"),
        "trial-4": ("merged", 3, "trial-1", "rmsnorm_opt_v3.py"),
        "trial-5": ("candidate", 4, "trial-4", "rmsnorm_opt_v4.py"),
    }


def test_a_version_without_a_file_of_its_own_lies_in_the_ledgers_store() -> None:
    story = Story()
    story.open()
    story.round("no_gain", "regressed")
    paths = [r["artifact_path"] for r in phase(story, "candidate") if r["workload_id"] == "small"]
    assert paths == [f"objects/{sha('candidate 1')}.py", "rmsnorm_opt_v1.py"]


def test_records_only_grow_while_a_run_goes_on() -> None:
    lines = full_story().lines
    before = ""
    for length in range(1, len(lines) + 1):
        text = perf_records(fold(lines[:length]), "zh", FOLDER)
        assert text.startswith(before)
        before = text


@pytest.mark.parametrize("remeasured", [True, False])
def test_a_delivered_baseline_has_its_finals_too(remeasured: bool) -> None:
    story = Story()
    story.open()
    story.round("regressed")
    story.stop()
    if remeasured:
        story.measure_final(400.0, 400.0)
    story.deliver()
    for record in phase(story, "final"):
        assert record["candidate_id"] == "baseline"
        assert record["round"] == 0
        assert record["artifact_sha256"] == sha("baseline")
        assert record["duration_us"] == 400.0
        assert record["timestamp"]
    assert len(phase(story, "final")) == 2


def test_inventory_has_the_contracts_keys() -> None:
    found = inventory(full_story())
    assert list(found) == ["small", "large", "odd", "huge"]
    assert list(found["small"]) == [*WORKLOAD_KEYS, "tuning_status"]
    assert list(found["odd"]) == [*WORKLOAD_KEYS, "precision_pass"]
    assert list(found["huge"]) == WORKLOAD_KEYS
    assert found["huge"]["reason"] == "does not fit in memory"
    assert found["small"]["shape"] == {"M": 512, "N": 1024}


def test_statuses_of_a_run_that_gained() -> None:
    found = inventory(full_story())
    assert found["small"]["tuning_status"] == found["large"]["tuning_status"] == "winner_merged"
    assert found["odd"]["precision_pass"] is True


def test_statuses_of_a_run_without_gain() -> None:
    story = Story()
    story.open()
    story.round("regressed")
    story.close()
    assert inventory(story)["small"]["tuning_status"] == "no_gain"


def statuses(story: Story) -> dict[str, str]:
    return {
        name: entry["tuning_status"]
        for name, entry in inventory(story).items()
        if entry["kind"] == "tune"
    }


def mixed_trial(story: Story, outcome: Outcome, blocked_by: Sequence[str], **ratios: float) -> None:
    """A trial in a round of its own that is not adopted, with these ratios."""
    story.begin_round()
    trial = story.begin_trial()
    story.end_trial(trial.trial, outcome)
    mixed = story.lines[-1].event.model_copy(
        update={
            "ratios": {name: ratio(value) for name, value in ratios.items()},
            "blocked_by": list(blocked_by),
        }
    )
    story.lines[-1] = story.lines[-1].model_copy(update={"event": mixed})
    story.add(
        RoundFinished(
            round=story.rounds, adopted=None, shown=None, version="", incumbent=story.incumbent
        )
    )


def test_a_gain_on_one_workload_that_is_no_gain_over_all_is_blocked_for_that_one() -> None:
    story = Story()
    story.open()
    mixed_trial(story, Outcome.REGRESSED, [], small=1.5, large=0.6)
    assert statuses(story) == {"small": "merge_blocked", "large": "no_gain"}


def test_the_workload_that_blocks_a_gain_over_all_is_merge_blocked_itself() -> None:
    story = Story(tune=("small", "large", "flat"))
    story.open()
    mixed_trial(story, Outcome.REGRESSED, ["large"], small=1.5, large=0.9, flat=1.0)
    assert statuses(story) == {
        "small": "merge_blocked",
        "large": "merge_blocked",
        "flat": "no_gain",
    }


def test_a_small_gain_that_nothing_blocks_is_no_gain() -> None:
    story = Story()
    story.open()
    mixed_trial(story, Outcome.NO_GAIN, [], small=1.02, large=1.0)
    assert statuses(story) == {"small": "no_gain", "large": "no_gain"}


def test_what_blocked_once_and_was_won_later_is_merged() -> None:
    story = Story()
    story.open()
    mixed_trial(story, Outcome.REGRESSED, ["large"], small=1.5, large=0.9)
    assert set(statuses(story).values()) == {"merge_blocked"}
    story.round("adopted")
    assert set(statuses(story).values()) == {"winner_merged"}
    story.close()
    assert set(statuses(story).values()) == {"winner_merged"}


def test_a_workload_on_which_the_delivered_version_is_not_faster_is_not_won() -> None:
    story = Story()
    story.open()
    mixed_trial(story, Outcome.REGRESSED, ["large"], small=1.5, large=0.9)
    story.round("adopted")
    story.close()
    final = next(n for n, line in enumerate(story.lines) if line.event.type == "final_measured")
    mixed = story.lines[final].event.model_copy(
        update={"ratios": {"small": ratio(2.0), "large": ratio(1.0)}}
    )
    story.lines[final] = story.lines[final].model_copy(update={"event": mixed})
    assert statuses(story) == {"small": "winner_merged", "large": "merge_blocked"}


def test_an_adopted_gain_that_was_not_found_again_is_no_gain() -> None:
    story = Story()
    story.open()
    story.round("adopted", speedup=1.02)
    assert set(statuses(story).values()) == {"winner_merged"}
    story.stop()
    story.measure_final(400.0, 400.0)
    assert set(statuses(story).values()) == {"no_gain"}


def test_smoke_accuracy_is_not_passed_before_it_was_checked() -> None:
    story = Story()
    story.start()
    assert inventory(story)["odd"]["precision_pass"] is False
