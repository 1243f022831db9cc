"""The whole loop on a fake backend: every outcome, every stop rule, rollback, interruption. All processes are real; time is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from opratchet import contest
from opratchet.edit.model import Edit
from opratchet.engine import tune
from opratchet.errors import BadInput, GateRefused, LedgerError
from opratchet.flow.model import StopRules
from opratchet.judge.decision import CLOSE_BOUTS
from opratchet.lab.bench import Lab
from opratchet.lab.limits import Limits
from opratchet.ledger.events import RunResumed, TargetRecord, TrialFinished, TrialStarted
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import Ledger, read_lines
from opratchet.ledger.words import Outcome, StopReason
from opratchet.report.records import tuning_status
from tests.clock import ScriptedClock
from tests.engine.scripted import (
    PATIENT,
    SOURCE,
    Asked,
    assemble,
    candidate,
    edit,
    lab_for,
    make_operator,
    start,
)
from tests.fake_backend import INSTANT

pytestmark = pytest.mark.usefixtures("clock")

RULES = StopRules(max_rounds=5, patience=3, max_experiments=20)
FASTER = edit("faster", time=200)
SLOWER = edit("slower", time=800)


def run(
    lab: Lab,
    folder: Path,
    points: Sequence[Sequence[Edit]],
    rules: StopRules = RULES,
    asked: Asked | None = None,
) -> RunState:
    """A whole run in `folder/out`."""
    with start(lab, folder / "out", rules) as ledger:
        return tune(assemble(lab, ledger, points, rules, asked or Asked()))


FAILING = {
    "build: fail": Outcome.COMPILE_FAILED,
    "build: crash": Outcome.CRASHED,
    "build: exit": Outcome.CRASHED,
    "build: memory": Outcome.OUT_OF_MEMORY,
    "build: hang": Outcome.TIMEOUT,
    "run: wrong": Outcome.ACCURACY_FAILED,
    "run: late": Outcome.ACCURACY_FAILED,
    "run: half": Outcome.ACCURACY_FAILED,
    "run: mutate": Outcome.CHEATED,
    "run: crash": Outcome.CRASHED,
    "run: hang": Outcome.TIMEOUT,
}
HASTY = Limits(build_seconds=5.0, call_seconds=5.0)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunState, Path]:
    """A run of one round, whose candidates fail in every way there is before one is faster; and its folder."""
    folder = tmp_path_factory.mktemp("failing")
    bad = [edit(directive, directive, time=50) for directive in FAILING]
    operator = make_operator(folder, backend=INSTANT)
    with ScriptedClock().ticking(), lab_for(operator, HASTY) as lab:
        return run(lab, folder, [[*bad, FASTER]]), folder / "out"


@pytest.mark.parametrize(("directive", "outcome"), FAILING.items())
def test_what_fails_is_discarded(
    failing: tuple[RunState, Path], directive: str, outcome: Outcome
) -> None:
    state, _folder = failing
    [trial] = [one for one in state.trials.values() if one.title == directive]
    assert trial.outcome is outcome
    assert trial.reason


def test_after_all_that_fails_the_run_goes_on(failing: tuple[RunState, Path]) -> None:
    state, folder = failing
    assert len(state.trials) == len(FAILING) + 1
    assert state.trials[len(state.trials)].outcome is Outcome.ADOPTED
    assert (folder / "double.py").read_text() == FASTER.text


def test_what_is_faster_over_all_and_slower_on_one_workload_is_blocked(tmp_path: Path) -> None:
    operator = make_operator(tmp_path, workloads=2, backend=INSTANT)
    with lab_for(operator, PATIENT) as lab:
        state = run(lab, tmp_path, [[edit("torn", "time_128: 800", time=50)]])
    trial = state.trials[1]
    assert trial.outcome is Outcome.REGRESSED
    assert trial.blocked_by == ["n128"]
    assert trial.ratio is not None
    assert trial.ratio.low > 1.0
    assert "n128" in trial.reason
    assert tuning_status(state, "n128") == "merge_blocked"


def test_the_process_is_the_unit_of_the_figures_that_are_reported(lab: Lab, tmp_path: Path) -> None:
    state = run(lab, tmp_path, [[FASTER]])
    assert state.final is not None
    assert state.final.ratio.processes == contest.FINAL_BOUTS
    assert state.spread[""].freedom == contest.CALIBRATION - 1
    assert state.noise is not None
    assert state.noise.low < 1.0 < state.noise.high


def test_a_close_win_is_won_in_several_fresh_processes(lab: Lab, tmp_path: Path) -> None:
    state = run(lab, tmp_path, [[edit("a little faster", time=368)]])
    ratio = state.trials[1].ratio
    assert ratio is not None
    assert state.trials[1].outcome is Outcome.ADOPTED
    assert ratio.processes >= CLOSE_BOUTS


def test_the_fastest_of_a_round_is_adopted_and_the_others_are_rolled_back(
    lab: Lab, tmp_path: Path
) -> None:
    state = run(
        lab, tmp_path, [[SLOWER, FASTER, edit("fastest", time=100), edit("same", "note: x")]]
    )
    outcomes = [trial.outcome for trial in state.trials.values()]
    assert outcomes == [Outcome.REGRESSED, Outcome.NO_GAIN, Outcome.ADOPTED, Outcome.NO_GAIN]
    assert "trial 3" in state.trials[2].reason
    assert state.final is not None
    assert 3.0 < state.final.ratio.value < 5.0
    assert state.final.ratio.low > 1.0


def test_an_edit_without_effect_on_the_code_is_not_timed(lab: Lab, tmp_path: Path) -> None:
    same_code = Edit("scripted", "same", "same", SOURCE.replace("return N", "return N + 0"))
    state = run(lab, tmp_path, [[same_code]])
    assert state.trials[1].no_effect
    assert state.trials[1].ratio is None
    assert "scripted/same" in state.no_effect


def test_when_nothing_is_better_the_baseline_is_delivered(lab: Lab, tmp_path: Path) -> None:
    state = run(lab, tmp_path, [[SLOWER]])
    assert state.best == state.run.source_sha256
    assert (tmp_path / "out" / "double.py").read_text() == SOURCE


def test_a_candidate_that_touches_the_golden_is_caught_before_it_is_built(
    lab: Lab, tmp_path: Path
) -> None:
    text = candidate(time=100).replace("X * 2", "X * 3")
    state = run(lab, tmp_path, [[Edit("scripted", "golden", "golden", text)]])
    assert state.trials[1].outcome is Outcome.CHEATED
    assert "golden_double" in state.trials[1].reason
    assert state.trials[1].seconds == {}


def test_patience_counts_rounds_without_gain_and_not_failed_rounds(
    lab: Lab, tmp_path: Path
) -> None:
    failed = [edit("bad", "build: fail")]
    points = [[SLOWER], failed, [edit("s2", time=900)], [edit("s3", time=950)], [FASTER]]
    state = run(lab, tmp_path, points)
    assert state.stop is not None
    assert state.stop.reason is StopReason.NO_GAIN
    assert len(state.finished_rounds) == 4


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (StopRules(max_rounds=1), StopReason.MAX_ROUNDS),
        (StopRules(max_experiments=1), StopReason.MAX_EXPERIMENTS),
        (StopRules(budget_seconds=0.0), StopReason.TIME_BUDGET),
        (StopRules(), StopReason.NOTHING_LEFT),
    ],
)
def test_each_limit_ends_the_run(
    lab: Lab, tmp_path: Path, rules: StopRules, reason: StopReason
) -> None:
    state = run(lab, tmp_path, [[FASTER], [edit("slow", time=700)]], rules)
    assert state.stop is not None
    assert state.stop.reason is reason


def test_the_target_ends_the_run(tmp_path: Path) -> None:
    target = TargetRecord(metric="latency_us", value=300, source="test")
    with lab_for(make_operator(tmp_path, target=target, backend=INSTANT), PATIENT) as lab:
        state = run(lab, tmp_path, [[FASTER], [edit("more", time=100)]])
    assert state.stop is not None
    assert state.stop.reason is StopReason.TARGET_REACHED
    assert len(state.finished_rounds) == 1


def test_better_than_the_baseline_is_a_goal_and_not_an_end(tmp_path: Path) -> None:
    target = TargetRecord(metric="speedup", value=1.0, source="DESIGN.md:1")
    with lab_for(make_operator(tmp_path, target=target, backend=INSTANT), PATIENT) as lab:
        state = run(lab, tmp_path, [[FASTER], [edit("more", time=100)]])
    assert len(state.finished_rounds) == 2


def test_a_stop_in_mid_round_delivers_what_was_found(lab: Lab, tmp_path: Path) -> None:
    state = run(lab, tmp_path, [[FASTER, SLOWER, edit("later", time=100)]], asked=Asked(after=1))
    assert state.stop is not None
    assert state.stop.reason is StopReason.USER_STOP
    assert state.lineage[-1].number == 1
    assert all(not trial.is_open for trial in state.trials.values())


def test_a_stop_before_any_gain_leaves_the_round_to_be_resumed(lab: Lab, tmp_path: Path) -> None:
    points = [[SLOWER, edit("s2", time=900), FASTER]]
    state = run(lab, tmp_path, points, asked=Asked(after=1))
    assert state.stop is not None
    assert state.open_round is not None
    assert (tmp_path / "out" / "double.py").read_text() == SOURCE
    with Ledger(tmp_path / "out", create=False) as ledger:
        ledger.append(RunResumed(tool_version="0"))
        state = tune(assemble(lab, ledger, points, RULES, Asked()))
    assert [trial.outcome for trial in state.trials.values()].count(Outcome.ADOPTED) == 1
    assert len(state.trials) == 3


def test_an_inaccurate_operator_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    operator = make_operator(tmp_path, candidate("run: wrong"), backend=INSTANT)
    with lab_for(operator, PATIENT) as lab, pytest.raises(GateRefused):
        start(lab, tmp_path / "out", RULES)
    assert not (tmp_path / "out").exists()


def test_an_operator_that_does_not_build_is_bad_input(tmp_path: Path) -> None:
    operator = make_operator(tmp_path, candidate("build: fail"), backend=INSTANT)
    with lab_for(operator, PATIENT) as lab, pytest.raises(BadInput, match="does not build"):
        start(lab, tmp_path / "out", RULES)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_a_run_is_refused(lab: Lab, tmp_path: Path) -> None:
    run(lab, tmp_path, [[SLOWER]])
    with pytest.raises(LedgerError, match="already"):
        start(lab, tmp_path / "out", RULES)


class Killed(Exception):
    """Stands for the death of the process at one event."""


@pytest.mark.parametrize("survived", [4, 8, 10, 12])
def test_a_run_that_died_at_an_event_goes_on_and_repeats_nothing(
    lab: Lab, tmp_path: Path, survived: int
) -> None:
    points = [[SLOWER, FASTER], [edit("second", time=100)]]
    folder = tmp_path / "out"

    class Dies(Asked):
        def listen(self, line, state):  # type: ignore[no-untyped-def]
            if line.seq + 1 >= survived:
                raise Killed

    with start(lab, folder, RULES) as ledger, pytest.raises(Killed):
        tune(assemble(lab, ledger, points, RULES, Dies()))
    before = read_lines(folder / "ledger.jsonl")
    with Ledger(folder, create=False) as ledger:
        state = tune(assemble(lab, ledger, points, RULES, Asked()))
    lines = read_lines(folder / "ledger.jsonl")
    assert lines[: len(before)] == before
    assert (state.outcomes[Outcome.ADOPTED], state.outcomes.total()) == (2, 3)
    started = [line.event.trial for line in lines if isinstance(line.event, TrialStarted)]
    finished = [line.event.trial for line in lines if isinstance(line.event, TrialFinished)]
    assert sorted(started) == sorted(finished) == [1, 2, 3]
    assert fold(lines).best == state.best
    assert (folder / "double.py").read_text() == candidate(time=100)
