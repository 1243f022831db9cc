"""The machine is checked while a run goes on: by the real engine on the fake backend, on a machine that changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from opratchet import recheck, session
from opratchet.edit.model import Edit
from opratchet.engine import tune
from opratchet.flow.model import StopRules
from opratchet.flow.stop import target_reached
from opratchet.lab.bench import Lab
from opratchet.ledger.events import Event, Line, MachineChecked, Noted
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import Ledger, read_lines
from opratchet.ledger.words import TargetRecord
from opratchet.recheck import THRESHOLD, change, direction, remark
from tests.builders import Story, latency
from tests.clock import ScriptedClock
from tests.engine.scripted import Asked, assemble, edit, start

RULES = StopRules(max_rounds=4, patience=9, max_experiments=20)
FASTER = edit("faster", time=200)
ROUNDS = [[FASTER], [edit("s1", time=800)], [edit("s2", time=900)], [edit("s3", time=950)]]
FACTORS = st.floats(0.2, 5.0)


class Changing(Asked):
    """Makes the machine another one right after a round: slower by a factor."""

    def __init__(self, clock: ScriptedClock, after_round: int, slowdown: float) -> None:
        super().__init__()
        self._clock, self._round, self._slowdown = clock, after_round, slowdown

    def listen(self, line: Line, state: RunState) -> None:
        super().listen(line, state)
        if line.event.type == "round_finished" and len(state.finished_rounds) == self._round:
            self._clock.slowdown = self._slowdown


def run(
    lab: Lab, folder: Path, machine: Asked, points: Sequence[Sequence[Edit]] = ROUNDS
) -> RunState:
    """A whole run in `folder/out`."""
    with start(lab, folder / "out", RULES) as ledger:
        return tune(assemble(lab, ledger, points, RULES, machine))


def go_on(lab: Lab, folder: Path) -> list[Event]:
    """Resume the run in `folder/out` for one more round; what was recorded from there on."""
    before = len(read_lines(folder / "out" / "ledger.jsonl"))
    ledger, _options = session.reopen(folder / "out", lab.operator)
    with ledger:
        tune(assemble(lab, ledger, ROUNDS[:2], RULES, Asked()))
    return [line.event for line in read_lines(folder / "out" / "ledger.jsonl")[before:]]


def slower_than_at_first(text: str) -> int:
    found = re.match(r"the machine is now (\d+) % slower than when the run began: ", text)
    assert found is not None, text
    return int(found[1])


@pytest.mark.usefixtures("clock")
def test_a_steady_machine_is_checked_and_nothing_is_made_of_it(lab: Lab, tmp_path: Path) -> None:
    machine = Asked()
    state = run(lab, tmp_path, machine)
    [check] = state.checks
    assert not check.anchored
    assert check.latency.keys() == state.baseline.keys()
    assert check.conditions is not None and check.conditions.cpu is not None
    assert state.slowdown == 1.0
    assert state.notes == []
    last_round = max(i for i, name in enumerate(machine.seen) if name == "round_started")
    assert machine.seen.index("machine_checked") < last_round
    assert state.delivered is not None
    assert state.delivered.seconds["measure"] >= check.seconds["measure"] > 0


def test_a_machine_that_got_slower_is_told_and_latencies_are_anchored_anew(
    lab: Lab, tmp_path: Path, clock: ScriptedClock
) -> None:
    state = run(lab, tmp_path, Changing(clock, after_round=2, slowdown=1.5))
    check = state.checks[0]
    assert check.anchored
    assert check.change == approx(1.5, rel=0.02)
    assert state.anchor == check.latency
    assert slower_than_at_first(state.notes[0]) == approx(50, abs=2)
    adopted = state.lineage[-1].latency["n64"].us
    assert adopted == approx(200, rel=0.02)
    assert state.incumbent_latency["n64"].us == approx(adopted * check.change)
    assert state.final is not None
    assert state.final.ratio.value == approx(2.0, rel=0.02)


def test_a_change_between_the_last_check_and_the_end_is_told_too(
    lab: Lab, tmp_path: Path, clock: ScriptedClock
) -> None:
    machine = Changing(clock, after_round=1, slowdown=1.5)
    state = run(lab, tmp_path, machine, points=ROUNDS[:1])
    assert [check.anchored for check in state.checks] == [True]
    assert machine.seen.index("final_measured") < machine.seen.index("machine_checked")
    assert slower_than_at_first(state.notes[-1]) == approx(50, abs=2)


@pytest.mark.usefixtures("clock")
def test_time_alone_makes_a_check_due(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recheck, "EVERY_SECONDS", 0.0)
    state = run(lab, tmp_path, Asked(), points=ROUNDS[:2])
    assert len(state.checks) >= 2


def test_resuming_checks_the_machine_before_the_first_round(
    lab: Lab, tmp_path: Path, clock: ScriptedClock
) -> None:
    run(lab, tmp_path, Asked(), points=ROUNDS[:1])
    clock.slowdown = 2.0
    types = [event.type for event in go_on(lab, tmp_path)]
    assert types[:3] == ["run_resumed", "machine_checked", "noted"]
    assert "round_started" in types[3:]
    state = fold(read_lines(tmp_path / "out" / "ledger.jsonl"))
    assert state.slowdown == approx(2.0, rel=0.02)
    assert state.incumbent_latency["n64"].us == approx(400, rel=0.02)


@pytest.mark.usefixtures("clock")
def test_another_machine_is_named_when_a_run_goes_on_there(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(lab, tmp_path, Asked(), points=[])
    here = session.read_machine()
    monkeypatch.setattr(session, "read_machine", lambda: type(here)(**{**vars(here), "l2": 12345}))
    ledger, _options = session.reopen(tmp_path / "out", lab.operator)
    ledger.close()
    told = read_lines(tmp_path / "out" / "ledger.jsonl")[-1].event
    assert isinstance(told, Noted)
    assert "another machine" in told.text
    assert here.model in told.text


def test_a_baseline_that_cannot_be_timed_again_does_not_end_the_run(
    lab: Lab, tmp_path: Path, clock: ScriptedClock
) -> None:
    run(lab, tmp_path, Asked(), points=[])
    clock.crashing = True
    ledger, _options = session.reopen(tmp_path / "out", lab.operator)
    with ledger:
        state = tune(assemble(lab, ledger, [], RULES, Asked()))
    assert state.must_check
    assert "could not be timed again" in state.notes[-1]
    assert state.delivered is not None


@pytest.mark.usefixtures("clock")
def test_a_user_who_stops_does_not_wait_for_a_check(lab: Lab, tmp_path: Path) -> None:
    run(lab, tmp_path, Asked(), points=ROUNDS[:1])
    with Ledger(tmp_path / "out", create=False) as ledger:
        ledger.append(session.RunResumed(tool_version="0"))
        state = tune(assemble(lab, ledger, ROUNDS, RULES, Asked(after=0)))
    assert state.checks == []


@pytest.mark.parametrize(("slowdown", "reached"), [(1.0, True), (1.5, False)])
def test_a_target_is_held_against_the_machine_as_it_is_now(slowdown: float, reached: bool) -> None:
    target = TargetRecord(metric="latency_us", value=250.0, source="test")
    story = Story(target=target)
    story.open(400.0)
    story.round("adopted")
    now = story.latencies(400.0 * slowdown)
    story.add(MachineChecked(latency=now, change=slowdown, anchored=slowdown != 1.0))
    assert target_reached(fold(story.lines), target) is reached


@given(FACTORS)
def test_a_change_counts_beyond_the_threshold_only_and_both_ways_alike(factor: float) -> None:
    before = {"a": latency(100.0), "b": latency(7.0)}
    now = {name: found.scaled(factor) for name, found in before.items()}
    assert change(before, now) == approx(factor)
    assert direction(before, now) == -direction(now, before)
    if max(factor, 1 / factor) < 1 + THRESHOLD - 1e-9:
        assert direction(before, now) == 0
    if max(factor, 1 / factor) > 1 + THRESHOLD + 1e-9:
        assert direction(before, now) == (1 if factor > 1 else -1)


@given(FACTORS)
def test_a_change_within_the_noise_of_either_side_does_not_count(factor: float) -> None:
    wide = latency(100.0).model_copy(update={"low_us": 1.0, "high_us": 10_000.0})
    sharp = {"a": latency(100.0).scaled(factor)}
    assert direction({"a": wide}, sharp) == direction(sharp, {"a": wide}) == 0


def test_workloads_that_were_not_timed_before_say_nothing() -> None:
    assert direction({"a": latency(1.0)}, {"b": latency(9.0)}) == 0
    assert change({"a": latency(1.0)}, {"a": latency(2.0), "b": latency(9.0)}) == approx(2.0)


@pytest.mark.parametrize(
    ("slowdown", "words"),
    [(1.12, "12 % slower than"), (0.8, "25 % faster than"), (1.0001, "as fast as")],
)
def test_the_remark_for_people(slowdown: float, words: str) -> None:
    assert f"the machine is now {words} when the run began" in remark(slowdown)
    assert "not comparable" in remark(slowdown)
