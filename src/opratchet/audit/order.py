"""Whether everything happened in the order in which a run does it.

Gate and baseline come first. A round starts from the incumbent when no other one is open; its trials are entered in it,
pass or finish in it, each once, and the round ends when all of them have. After a stop only the final measurement and
the delivery follow, after the delivery only a resumption. What the fold of the ledger refuses by itself
(`ledger.state`) is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from opratchet.audit.findings import Finding, shown
from opratchet.audit.replay import complaint
from opratchet.engine import best_of
from opratchet.flow.registry import FLOWS
from opratchet.flow.stages import move_on, rows_now
from opratchet.ledger.events import (
    BaselineMeasured,
    Delivered,
    Diagnosed,
    FinalMeasured,
    GatePassed,
    Line,
    MachineChecked,
    Noted,
    RoundFinished,
    RoundStarted,
    RunResumed,
    RunStarted,
    StageEntered,
    StrategySkipped,
    TrialFinished,
    TrialPassed,
    TrialStarted,
)
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Outcome, Record

_AFTER_STOP = (FinalMeasured, MachineChecked, Noted, Delivered, RunResumed)
Rule = Callable[[RunState, Any], Iterator[str]]


class Order:
    """Judges the place of each line.

    Args:
        passing: Whether this ledger records when a trial passed all gates; the first versions of the tool did not.
    """

    def __init__(self, passing: bool) -> None:
        self._passing = passing
        self._passed: dict[int, dict[int, TrialFinished]] = {}

    def __call__(self, state: RunState, line: Line) -> Iterator[Finding]:
        """What is wrong with the place of a line."""
        event = line.event
        texts = [*_place(state, event), *_RULES.get(type(event), _anywhere)(state, event)]
        if self._passing:
            texts += self._adoption(state, event)
        yield from (complaint("order", text) for text in texts)

    def _adoption(self, state: RunState, event: Record) -> Iterator[str]:
        """Only what passed every gate is adopted, and of several in a round the fastest."""
        if isinstance(event, TrialPassed) and event.trial in state.trials:
            its_round = self._passed.setdefault(state.trials[event.trial].round, {})
            its_round[event.trial] = event.result
        if isinstance(event, TrialFinished) and _is_unproven(state, event):
            yield "it was adopted, and nothing says that it had passed the gates"
        if isinstance(event, RoundFinished):
            best = best_of(self._passed.get(event.round, {}))
            if event.adopted != best:
                yield f"the fastest trial that passed is {best or 'none'}, and {event.adopted or 'none'} was adopted"


def _is_unproven(state: RunState, event: TrialFinished) -> bool:
    return event.outcome is Outcome.ADOPTED and event.trial not in state.passed


def _place(state: RunState, event: Record) -> Iterator[str]:
    if isinstance(event, RunStarted):
        return
    if state.delivered is not None and not isinstance(event, RunResumed):
        yield "the run was delivered before this, so only a resumption may follow"
    elif state.stop is not None and not isinstance(event, _AFTER_STOP):
        yield "a stop rule held before this, so nothing more may be tried"
    first = GatePassed if state.gate is None else BaselineMeasured if not state.baseline else None
    if first is not None and not isinstance(event, (first, Noted)):
        yield f"this comes before {'the gate' if first is GatePassed else 'the baseline'}"


def _anywhere(_state: RunState, _event: Record) -> Iterator[str]:
    """An event that needs no place of its own."""
    return iter(())


def _gate_passed(state: RunState, _event: GatePassed) -> Iterator[str]:
    if state.gate is not None:
        yield "the gate was opened before"


def _baseline_measured(state: RunState, _event: BaselineMeasured) -> Iterator[str]:
    if state.baseline:
        yield "the baseline was measured before"


def _of_incumbent(state: RunState, event: Diagnosed | StrategySkipped) -> Iterator[str]:
    if event.incumbent != state.incumbent:
        yield "this speaks of a version that is not the incumbent"


def _stage_entered(state: RunState, event: StageEntered) -> Iterator[str]:
    """The stage is the one that follows, by the stages' own rules or because nothing was left in the one before."""
    flow = FLOWS.get(state.run.flow)
    if flow is None:
        return
    due = [move_on(flow, state), move_on(flow, state, nothing_left=True)]
    if event not in due:
        yield f"the stage {shown(event.stage)} does not follow here"


def _round_started(state: RunState, event: RoundStarted) -> Iterator[str]:
    if state.open_round is not None:
        yield f"round {state.open_round.number} is still open"
    if event.round != len(state.rounds) + 1:
        yield f"this is round {event.round}, and the next one is {len(state.rounds) + 1}"
    flow = FLOWS.get(state.run.flow)
    rows = [row.id for row in rows_now(flow, state)] if flow is not None and flow.stages else None
    if rows is not None and event.strategy not in rows:
        yield f"{shown(event.strategy)} does not belong to the present stage"


def _trial_started(state: RunState, event: TrialStarted) -> Iterator[str]:
    if event.trial != len(state.trials) + 1:
        yield f"this is trial {event.trial}, and the next one is {len(state.trials) + 1}"
    if not event.edit.startswith(f"{event.strategy}/"):
        yield f"the edit {shown(event.edit)} is not one of the strategy {shown(event.strategy)}"
    its_round = state.rounds.get(event.round)
    planned = its_round.planned if its_round is not None else []
    if planned and event.edit not in planned:
        yield f"the round did not set out to try {shown(event.edit)}"


def _trial_passed(state: RunState, event: TrialPassed) -> Iterator[str]:
    if event.trial in state.passed:
        yield f"trial {event.trial} passed before"
    if event.result.trial != event.trial:
        yield f"this is the result of trial {event.result.trial}"
    if event.result.outcome is not Outcome.ADOPTED:
        yield "a trial that passed every gate may be adopted, and this says it may not"


def _trial_finished(state: RunState, event: TrialFinished) -> Iterator[str]:
    passed = state.passed.get(event.trial)
    if passed is None:
        return
    if event.outcome not in (Outcome.ADOPTED, Outcome.NO_GAIN):
        yield f"it had passed every gate and ends as {event.outcome.value}"
    decided = {"outcome": passed.outcome, "reason": passed.reason, "spread": passed.spread}
    if event.model_copy(update=decided) != passed:
        yield "its figures are not those with which it passed the gates"


def _round_finished(state: RunState, event: RoundFinished) -> Iterator[str]:
    its_round = state.rounds.get(event.round)
    if its_round is None:
        return
    still_open = [trial.number for trial in its_round.trials if trial.is_open]
    if still_open:
        yield f"trial {still_open[0]} of this round has no outcome"
    adopted = [t.number for t in its_round.trials if t.outcome is Outcome.ADOPTED]
    if adopted != ([] if event.adopted is None else [event.adopted]):
        yield f"its trials that were adopted are {adopted or 'none'}, and it names {event.adopted}"
    if event.adopted is not None and event.shown != event.adopted:
        yield "the version that it shows is not the one adopted"
    name = f"{state.run.operator}_opt_v{event.round}.py"
    if event.version != name:
        yield f"its version file is {name} and not {shown(event.version)}"


def _final_measured(state: RunState, event: FinalMeasured) -> Iterator[str]:
    if state.stop is None:
        yield "the final measurement comes before any stop rule held"
    known = [state.run.source_sha256, *(trial.source for trial in state.lineage)]
    if event.source not in known:
        yield "it was no adopted version that was measured, nor the baseline"
        return
    for later in known[known.index(event.source) + 1 :]:
        if not any(f"version {later[:12]} fails" in note for note in state.notes):
            yield f"version {later[:12]} was adopted later, and nothing says why it was not measured"


def _delivered(state: RunState, event: Delivered) -> Iterator[str]:
    if state.stop is None:
        yield "it was delivered before any stop rule held"
    if state.final is None:
        yield "it was delivered without a final measurement"
    elif event.source != state.final.source:
        yield "what was delivered is not what was measured last"
    if event.files.get(f"{state.run.operator}.py") != event.source:
        yield "the delivered file has not the hash of the delivered source"


_RULES: Mapping[type[Record], Rule] = {
    GatePassed: _gate_passed,
    BaselineMeasured: _baseline_measured,
    Diagnosed: _of_incumbent,
    StrategySkipped: _of_incumbent,
    StageEntered: _stage_entered,
    RoundStarted: _round_started,
    TrialStarted: _trial_started,
    TrialPassed: _trial_passed,
    TrialFinished: _trial_finished,
    RoundFinished: _round_finished,
    FinalMeasured: _final_measured,
    Delivered: _delivered,
}
