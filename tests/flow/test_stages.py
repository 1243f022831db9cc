"""Stages: in their order, each until its patience is used up or nothing is left, some of them again while that gains."""

from __future__ import annotations

import pytest

from opratchet.flow.model import Flow, Row, Stage, StopRules
from opratchet.flow.pypto import FLOW as PYPTO
from opratchet.flow.registry import FLOWS
from opratchet.flow.stages import move_on, rows_now
from opratchet.ledger.events import StageEntered, Stopped
from opratchet.ledger.rounds import Round, Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Outcome, StopReason


def row(name: str, stage: str) -> Row:
    words = {"zh": name, "en": name}
    return Row(name, words, words, (0.0, 0.1), stage=stage)


def stage(name: str, patience: int) -> Stage:
    return Stage(name, {"zh": name, "en": name}, patience)


FLOW = Flow(
    name="two",
    stage=1,
    rows=(row("a", "first"), row("b", "second"), row("c", "second")),
    stop=StopRules(),
    trials_per_round=2,
    guides={},
    stages=(stage("first", 2), stage("second", 1)),
    repeated=("second",),
    cycles=3,
)


class Story:
    """A run told by what its rounds gave."""

    def __init__(self, flow: Flow = FLOW) -> None:
        self.flow = flow
        self.state = RunState()
        self.path: list[str] = []

    def on(self, *, nothing_left: bool = False) -> StageEntered | Stopped | None:
        moved = move_on(self.flow, self.state, nothing_left=nothing_left)
        if isinstance(moved, StageEntered):
            self.state.stages.append(moved)
            self.path.append(f"{moved.stage}{moved.cycle}")
        return moved

    def round(self, *, gain: bool, timed: bool = True) -> Story:
        number = len(self.state.rounds) + 1
        trial = Trial(number, number, "s", "s/e", "t", "x", "y")
        trial.outcome = Outcome.NO_GAIN if timed else Outcome.COMPILE_FAILED
        done = Round(number, "a", "", "", [], [], None, [trial], is_open=False)
        if gain:
            trial.outcome = Outcome.ADOPTED
            done.adopted = trial
        self.state.rounds[number] = done
        return self


def test_a_run_begins_with_the_first_stage_and_sees_only_its_rows() -> None:
    story = Story()
    assert rows_now(FLOW, story.state) == ()

    story.on()

    assert story.path == ["first1"]
    assert [r.id for r in rows_now(FLOW, story.state)] == ["a"]
    assert story.on() is None


def test_a_stage_ends_after_its_own_number_of_rounds_without_gain() -> None:
    story = Story()
    story.on()
    story.round(gain=False).round(gain=True).round(gain=False)
    assert story.on() is None, "the gain began the count anew"

    story.round(gain=False)
    story.on()

    assert story.path == ["first1", "second1"]
    assert "2 rounds without gain" in story.state.stages[-1].why


def test_a_round_whose_candidates_all_failed_is_no_round_without_gain() -> None:
    story = Story()
    story.on()
    for _ in range(5):
        story.round(gain=False, timed=False)
    assert story.on() is None


def test_a_stage_ends_when_nothing_is_left_in_it() -> None:
    story = Story()
    story.on()
    story.on(nothing_left=True)
    assert story.path == ["first1", "second1"]


def test_the_repeated_stages_begin_again_while_they_gain_and_not_more_often_than_allowed() -> None:
    story = Story()
    story.on()
    story.on(nothing_left=True)
    for _ in range(2):
        story.round(gain=True)
        story.on(nothing_left=True)
    story.round(gain=True)
    last = story.on(nothing_left=True)

    assert story.path == ["first1", "second1", "second2", "second3"]
    assert isinstance(last, Stopped)
    assert last.reason is StopReason.NOTHING_LEFT


def test_a_cycle_without_gain_is_the_last_one() -> None:
    story = Story()
    story.on()
    story.round(gain=True)
    story.on(nothing_left=True)
    story.round(gain=False)

    assert isinstance(story.on(), Stopped), "what the first stage gained does not count"


def test_a_flow_without_stages_only_ends_where_nothing_is_left() -> None:
    flow, state = FLOWS["tilelang"], RunState()
    assert rows_now(flow, state) == flow.rows
    assert move_on(flow, state) is None
    stop = move_on(flow, state, nothing_left=True)
    assert isinstance(stop, Stopped)
    assert stop.reason is StopReason.NOTHING_LEFT


def test_the_pypto_procedure_has_its_stages_with_their_patience_in_order() -> None:
    assert [(s.id, s.patience) for s in PYPTO.stages] == [
        ("frontend", 5),
        ("swimlane", 8),
        ("incore", 5),
    ]
    assert (PYPTO.repeated, PYPTO.cycles) == (("swimlane", "incore"), 3)
    assert PYPTO.stop.budget_seconds == 12 * 3600


@pytest.mark.parametrize(("letter", "count", "name"), [("F", 15, "frontend"), ("S", 13, "swimlane"), ("I", 9, "incore")])  # fmt: skip
def test_the_catalogue_is_whole(letter: str, count: int, name: str) -> None:
    found = [r for r in PYPTO.rows if r.id.startswith(f"{letter}-")]
    assert {r.id for r in found} == {f"{letter}-{number}" for number in range(1, count + 1)}
    assert {r.stage for r in found} == {name}
