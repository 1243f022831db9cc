"""The audit of a run in stages: each follows the one before by the rules, and a round belongs to the stage it stands in."""

from __future__ import annotations

from opratchet.audit.order import Order
from opratchet.flow.pypto import FLOW
from opratchet.flow.stages import move_on
from opratchet.ledger.events import Line, RoundStarted, RunStarted, StageEntered
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Accuracy, Latency, MetricKind

SOURCE = "0" * 64
LATENCY = Latency(kind=MetricKind.SIMULATED, us=1.0, low_us=1.0, high_us=1.0, samples=1)


def begun() -> RunState:
    """A run whose baseline is on record."""
    header = RunStarted(
        run_id="r",
        tool_version="0",
        operator="op",
        project="p",
        source="op_impl.py",
        source_sha256=SOURCE,
        backend="pypto-sim",
        flow="pypto",
        metric_kind=MetricKind.SIMULATED,
        machine={},
        toolchain={},
        options={},
        workloads=[],
        target=None,
    )
    gate: list[Accuracy] = []
    return RunState(header=header, gate=gate, baseline={"w": LATENCY}, incumbent=SOURCE)


def complaints(state: RunState, event: StageEntered | RoundStarted) -> list[str]:
    line = Line(seq=1, at="", prev="", event=event)
    return [finding.what for finding in Order(passing=True)(state, line)]


def entered(state: RunState, *, nothing_left: bool = False) -> StageEntered:
    event = move_on(FLOW, state, nothing_left=nothing_left)
    assert isinstance(event, StageEntered)
    return event


def round_of(row: str) -> RoundStarted:
    return RoundStarted(round=1, strategy=row, reason="", incumbent=SOURCE)


def test_stages_in_their_order_are_clean() -> None:
    state = begun()
    for nothing_left in (False, True, True):
        event = entered(state, nothing_left=nothing_left)
        assert complaints(state, event) == []
        state.stages.append(event)


def test_a_stage_that_was_skipped_is_found() -> None:
    state = begun()
    state.stages.append(entered(state))
    skipped = StageEntered(stage="incore", cycle=1, rounds=0, why="frontend has ended: at will")
    assert any("does not follow here" in text for text in complaints(state, skipped))


def test_a_round_of_another_stage_is_found() -> None:
    state = begun()
    assert any("present stage" in text for text in complaints(state, round_of("F-8")))
    state.stages.append(entered(state))
    assert complaints(state, round_of("F-8")) == []
    assert any("present stage" in text for text in complaints(state, round_of("S-9")))
