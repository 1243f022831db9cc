"""Candidates that fail in ways no limit foresees: each ends with its own outcome, and the run goes on and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet import session
from opratchet.errors import BadInput, GateRefused, OpratchetError
from opratchet.ledger.rounds import Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.store import LEDGER
from opratchet.ledger.words import Outcome, StopReason
from opratchet.report.stage_result import stage_result
from opratchet.run import Clock
from tests.engine.scripted import PATIENT, SOURCE, candidate, edit, lab_for, make_operator
from tests.faults.backend import NAME
from tests.faults.scene import play

FASTER = edit("faster", time=100)
FAILING = {
    "build: abort": Outcome.CRASHED,
    "build: illegal": Outcome.CRASHED,
    "build: leave": Outcome.CRASHED,
    "build: flood": Outcome.COMPILE_FAILED,
    "build: surrogate": Outcome.COMPILE_FAILED,
    "call: abort": Outcome.CRASHED,
    "call: illegal": Outcome.CRASHED,
    "call: leave": Outcome.CRASHED,
    "call: flood": Outcome.CRASHED,
    "call: abort, refuse: 128": Outcome.CRASHED,
    "build: abort, refuse: 128": Outcome.CRASHED,
}
SAYS = {
    "build: abort": "SIGABRT",
    "build: illegal": "SIGILL",
    "build: leave": "exit code 0",
    "build: surrogate": "in the source",
    "call: abort": "SIGABRT",
    "call: illegal": "SIGILL",
    "call: leave": "exit code 0",
    "call: abort, refuse: 128": "n128",
    "build: abort, refuse: 128": "n128",
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunState, Path]:
    """A run whose first candidates fail in every way there is before one is faster; and its folder."""
    folder = tmp_path_factory.mktemp("failing")
    bad = [edit(how, *how.split(", "), time=50) for how in FAILING]
    return play(folder, points=[bad, [FASTER]], workloads=2), folder / "out"


def trial_named(state: RunState, title: str) -> Trial:
    """The trial of a candidate."""
    return next(trial for trial in state.trials.values() if trial.title == title)


@pytest.mark.parametrize(("how", "outcome"), FAILING.items())
def test_each_failure_has_its_outcome(
    failing: tuple[RunState, Path], how: str, outcome: Outcome
) -> None:
    trial = trial_named(failing[0], how)
    assert trial.outcome is outcome
    assert SAYS.get(how, "") in trial.reason
    assert trial.reason


@pytest.mark.parametrize("how", ["build: flood", "call: flood"])
def test_of_much_output_the_end_is_kept(failing: tuple[RunState, Path], how: str) -> None:
    trial = trial_named(failing[0], how)
    assert "the last words" in trial.log
    assert len(trial.log) <= 64 << 10
    assert (failing[1] / LEDGER).stat().st_size < 1 << 20


def test_what_is_no_text_or_would_move_the_cursor_is_shown_as_such(
    failing: tuple[RunState, Path],
) -> None:
    reason = trial_named(failing[0], "build: surrogate").reason
    assert reason.encode("utf-8")
    assert "\x1b" not in reason


def test_after_the_first_candidates_failed_the_next_is_adopted(
    failing: tuple[RunState, Path],
) -> None:
    state, out = failing
    assert trial_named(state, "faster").outcome is Outcome.ADOPTED
    assert (out / "double.py").read_text() == FASTER.text
    assert state.rounds_without_gain == 0
    assert not any("could be timed" in note for note in state.notes)


def test_when_every_candidate_fails_the_baseline_is_delivered_and_the_reason_stated(
    tmp_path: Path,
) -> None:
    bad = [edit("one", "build: fail"), edit("two", "run: wrong"), edit("three", "build: abort")]
    state = play(tmp_path, points=[bad[:2], bad[2:]])
    assert state.stop is not None
    assert state.stop.reason is StopReason.NOTHING_LEFT
    assert (tmp_path / "out" / "double.py").read_text() == SOURCE
    assert state.final is not None
    assert state.final.source == state.run.source_sha256
    report = stage_result(state, "en", tmp_path / "out")
    assert "the baseline is delivered" in report
    said = "no candidate could be timed (1 compile_failed, 1 accuracy_failed, 1 crashed); trial 1: "
    assert f"{said}n64: error: expected ';'" in report


def begun(folder: Path, text: str) -> OpratchetError:
    """The error with which a run on this operator is refused."""
    operator = make_operator(folder, text, workloads=2, backend=NAME)
    with lab_for(operator, PATIENT) as lab, pytest.raises(OpratchetError) as caught:
        session.begin(
            lab,
            folder / "out",
            session.Options(session.StopRules()),
            Clock(),
            lambda _text: None,
        )
    assert not (folder / "out").exists()
    return caught.value


@pytest.mark.parametrize("directive", ["build: fail", "build: abort"])
def test_a_workload_that_does_not_build_is_named_and_nothing_is_written(
    tmp_path: Path, directive: str
) -> None:
    error = begun(tmp_path, candidate(directive, "refuse: 128"))
    assert isinstance(error, BadInput)
    assert "n128: " in error.what
    assert "n64: " not in error.what


@pytest.mark.parametrize("directive", ["call: abort", "call: leave"])
def test_a_workload_that_does_not_run_is_named_and_nothing_is_written(
    tmp_path: Path, directive: str
) -> None:
    error = begun(tmp_path, candidate(directive, "refuse: 128"))
    assert isinstance(error, GateRefused)
    assert "n128: " in error.what
