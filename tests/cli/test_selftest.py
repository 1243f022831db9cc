"""`selftest noise` as a user runs it, with real processes; what it says, also on invented findings.

Nothing is expected of speeds: the machine may be as busy as it likes. Only that what is no faster is not adopted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from opratchet.cli.selftest_view import lines, record, verdict
from opratchet.errors import OpratchetError
from opratchet.judge.decision import TOTAL, Rule, Verdict
from opratchet.judge.spread import Spread
from opratchet.lab import planted
from opratchet.lab.planted import BoutSeen
from opratchet.ledger.words import Conditions
from opratchet.selftest import EFFECTS, Findings, Options, SelfTest, Tried, effects, label
from tests.cli.conftest import Command, background

KEYS = {
    "metric_kind",
    "machine",
    "kind",
    "units",
    "call_us",
    "seed",
    "seconds",
    "complete",
    "rule",
    "noise",
    "comparisons",
    "false_adoption",
    "told_apart",
    "conditions",
    "remarks",
    "summary",
}


def adds_up(found: dict[str, Any]) -> None:
    """The rows, their sums and their intervals agree."""
    assert set(found) == KEYS
    assert found["metric_kind"] == "measured"
    rows = found["comparisons"]
    assert [row["effect"] for row in rows] == sorted(EFFECTS, reverse=True)
    for row in rows:
        assert row["comparisons"] == len(row["verdicts"])
        assert row["adopted"] == row["verdicts"].count("faster")
        assert row["low"] <= (row["share"] or 0.0) <= row["high"]
        assert (row["ratio"] is None) == (row["comparisons"] == 0)
    same = [row for row in rows if row["effect"] <= 0]
    for key in ("comparisons", "adopted"):
        assert found["false_adoption"][key] == sum(row[key] for row in same)
    assert found["noise"]["pair"] > 0
    assert found["told_apart"]["gain"] > found["rule"]["minimum_effect"]
    assert found["conditions"]["pinned"] is True


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["compute", "memory"])
def test_it_compares_adopts_nothing_that_is_no_faster_and_leaves_nothing(
    opratchet: Command, tmp_path: Path, kind: str
) -> None:
    done = opratchet(
        "selftest", "noise", "--seconds", 5, "--kind", kind, "--json", TMPDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    adds_up(found)
    assert found["complete"]
    assert found["kind"] == kind
    assert found["seconds"] >= 5
    assert found["false_adoption"]["adopted"] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timing
def test_ctrl_c_shows_what_was_found_so_far(tmp_path: Path) -> None:
    process = background("selftest", "noise", "--seconds", 600, "--json", TMPDIR=str(tmp_path))
    family = wait_for_comparisons(process)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 5, errors
    assert "Traceback" not in errors
    found = json.loads(out)
    adds_up(found)
    assert not found["complete"]
    assert psutil.wait_procs(family, timeout=10)[1] == []


def test_ctrl_c_before_anything_is_known_says_so(tmp_path: Path) -> None:
    process = background("selftest", "noise", "--json", TMPDIR=str(tmp_path))
    family = wait_for_workers(process, 1)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 5
    assert out == ""
    assert "before anything was compared" in errors
    assert "Traceback" not in errors
    assert psutil.wait_procs(family, timeout=10)[1] == []


def wait_for_workers(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """Wait until so many workers run at once."""
    deadline = time.monotonic() + 60
    while len(workers := psutil.Process(process.pid).children()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return workers


def wait_for_comparisons(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Wait until it has come to its comparisons: more bouts than the calibration takes."""
    seen: set[int] = set()
    deadline = time.monotonic() + 120
    while len(seen) < 2 * 14:
        assert time.monotonic() < deadline
        seen |= {worker.pid for worker in psutil.Process(process.pid).children()}
        time.sleep(0.005)
    return wait_for_workers(process, 2)


@pytest.mark.parametrize(
    "arguments", [("--kind", "disk"), ("--seconds", "0"), ("--minimum-effect", "2")]
)
def test_an_option_that_makes_no_sense_is_bad_input(
    within: Command, arguments: tuple[str, str]
) -> None:
    done = within("selftest", "noise", *arguments)
    assert done.returncode == 2
    assert arguments[0] in done.stderr


def test_a_worker_that_cannot_work_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planted, "RUNTIME", "no_such_module")
    before = psutil.Process().children()
    with SelfTest(Options(), print) as test, pytest.raises(OpratchetError, match="no_such_module"):
        test.run()
    assert not test.findings.complete
    assert psutil.Process().children() == before


def test_the_group_names_its_parts(opratchet: Command) -> None:
    done = opratchet("selftest", "--help")
    assert done.returncode == 0
    assert "noise" in done.stdout


def test_each_effect_comes_once_before_any_comes_again_and_the_seed_decides_the_order() -> None:
    def first(seed: int) -> list[float]:
        order = effects(seed)
        return [next(order) for _ in range(3 * len(EFFECTS))]

    for start in range(0, 3 * len(EFFECTS), len(EFFECTS)):
        assert sorted(first(1)[start : start + len(EFFECTS)]) == sorted(EFFECTS)
    assert first(1) == first(1)
    assert first(1) != first(2)


def invented(
    verdicts: dict[float, list[Verdict]], pair: float = 0.01, process: float = 0.0, **changes: Any
) -> Findings:
    """Findings of a machine with this noise of pairs (standard deviation) and processes (variance of a pair of them)."""
    found = Findings(
        Options(rule=Rule(trials=120)),
        units=6000,
        call_us=250.0,
        spread=Spread({TOTAL: 30 * process}, {TOTAL: 30.0}, {TOTAL: 30 * process**2}),
        bouts=[BoutSeen(24, pair**2, 0.2, 0.003)] * 20,
        tried=[
            Tried(effect, verdict, 1 + effect, 144, 6, 1.5)
            for effect, several in verdicts.items()
            for verdict in several
        ],
        conditions=[Conditions(cpus=2, load=9.0, seconds=10.0)],
        seconds=150.0,
        complete=True,
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


GOOD = {
    0.10: [Verdict.FASTER] * 9,
    0.03: [Verdict.FASTER] * 7 + [Verdict.INCONCLUSIVE],
    0.0: [Verdict.TIE] * 9,
    -0.03: [Verdict.SLOWER] * 9,
}


def test_the_table_has_a_row_for_each_effect_and_the_shares_with_their_intervals() -> None:
    text = list(lines(invented(GOOD)))
    for effect in EFFECTS:
        assert sum(line.startswith(label(effect)) for line in text) == 1
    row = next(line for line in text if line.startswith("incumbent 3 % slower"))
    assert "88 % [47.3, 99.7]" in row
    assert any(line.startswith("false adoption") and "0 of 18" in line for line in text)
    assert any("load 9.0 on 2 cores" in line for line in text)
    assert any("half the time at best" in line for line in text)
    assert text[-1] == "took             150 s, 35 comparisons"


def test_a_quiet_machine_is_told_the_gain_that_it_finds_and_whether_it_was_found() -> None:
    first, second = verdict(invented(GOOD))
    assert first.startswith("here a gain of 1.9 % or more is found nine times out of ten in ")
    assert second == "Of the planted gains of that size or more, 16 of 17 were found."


def test_a_noisy_machine_is_told_that_small_gains_will_be_missed() -> None:
    text = verdict(invented(GOOD, process=0.005))[0]
    assert text.startswith("changes under ")
    assert "cannot be told from noise here: nothing false was adopted, but small gains" in text


def test_a_false_adoption_is_not_talked_away() -> None:
    text = " ".join(verdict(invented({**GOOD, -0.01: [Verdict.FASTER]}, process=0.005)))
    assert "nothing false" not in text
    assert "1 false: the rule allows about one in 12000 comparisons" in text


def test_detection_below_what_the_noise_explains_is_said() -> None:
    text = " ".join(verdict(invented({0.10: [Verdict.INCONCLUSIVE] * 6})))
    assert "0 of 6 were found. That is fewer than the noise explains" in text


def test_what_was_stopped_before_the_calibration_promises_nothing() -> None:
    found = invented({}, spread=None, complete=False)
    assert verdict(found) == []
    assert record(found)["told_apart"] is None
    assert "stopped by the user" in list(lines(found))[-1]
