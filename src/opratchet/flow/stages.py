"""Where a run stands in the stages of its procedure, and what comes next. Pure functions of the state.

Stages come in their order, none is skipped. A stage ends when its patience is used up, or when nothing is left to try in it. Behind
the last one those that may be repeated begin again, as long as the last time gained something, and a fixed number of times at
most. A procedure without stages is one that never ends by these rules but where nothing is left.
"""

from __future__ import annotations

from opratchet.flow.model import Flow, Row, Stage
from opratchet.ledger.events import StageEntered, Stopped
from opratchet.ledger.plural import counted
from opratchet.ledger.rounds import Round
from opratchet.ledger.state import RunState
from opratchet.ledger.words import StopReason

NOTHING = "nothing is left to try in it"


def rows_now(flow: Flow, state: RunState) -> tuple[Row, ...]:
    """The rows that may be tried in the present stage; all of them where there are no stages."""
    if not state.stages:
        return () if flow.stages else flow.rows
    return tuple(row for row in flow.rows if row.stage == state.stages[-1].stage)


def move_on(
    flow: Flow, state: RunState, *, nothing_left: bool = False
) -> StageEntered | Stopped | None:
    """The next stage, the stop behind the last one, or None while the present stage goes on.

    Args:
        flow: The procedure.
        state: The fold of the ledger, with no round open.
        nothing_left: Whether the proposer has nothing more for the present stage.
    """
    if not flow.stages:
        detail = "no strategy has an untried edit"
        return Stopped(reason=StopReason.NOTHING_LEFT, detail=detail) if nothing_left else None
    if not state.stages:
        return _entered(flow.stages[0], 1, state, "the first stage")
    why = _over(flow, state) or (NOTHING if nothing_left else "")
    if not why:
        return None
    return _following(flow, state, why) or Stopped(
        reason=StopReason.NOTHING_LEFT, detail="every stage of the procedure has ended"
    )


def _over(flow: Flow, state: RunState) -> str:
    """Why the present stage has ended by its own rule; empty while it has not."""
    now = _stage(flow, state.stages[-1].stage)
    barren = 0
    for done in reversed(_rounds_since(state, state.stages[-1])):
        if done.adopted is not None:
            break
        barren += done.was_timed
    return f"{counted(now.patience, 'round')} without gain" if barren >= now.patience else ""


def _following(flow: Flow, state: RunState, why: str) -> StageEntered | None:
    present = state.stages[-1]
    ended = f"{present.stage} has ended: {why}"
    order = [stage.id for stage in flow.stages]
    behind = flow.stages[order.index(present.stage) + 1 :]
    if behind:
        return _entered(behind[0], present.cycle, state, ended)
    if not flow.repeated or present.cycle >= flow.cycles or not _gained(flow, state):
        return None
    return _entered(_stage(flow, flow.repeated[0]), present.cycle + 1, state, ended)


def _gained(flow: Flow, state: RunState) -> bool:
    """Whether the repeated stages gained anything the last time."""
    cycle = state.stages[-1].cycle
    first = next(s for s in state.stages if s.cycle == cycle and s.stage == flow.repeated[0])
    return any(done.adopted is not None for done in _rounds_since(state, first))


def _rounds_since(state: RunState, entry: StageEntered) -> list[Round]:
    return [done for done in state.finished_rounds if done.number > entry.rounds]


def _stage(flow: Flow, name: str) -> Stage:
    return next(stage for stage in flow.stages if stage.id == name)


def _entered(stage: Stage, cycle: int, state: RunState, why: str) -> StageEntered:
    return StageEntered(stage=stage.id, cycle=cycle, rounds=len(state.finished_rounds), why=why)
