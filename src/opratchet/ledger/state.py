"""The state of a run: nothing but the fold of its ledger.

The engine, the stop rules and the reports ask the state, and `resume` folds the same lines again. So there is one place
that says what an event means: `apply`, one small function for each event, kept in the table at the end.

Four rules of the design are decided here:

- A round without gain is one that adopted nothing although at least one of its trials was timed. A round all of
  whose trials failed or were pruned is neither a gain nor a "no gain".
- Every finished trial is an experiment, except a pruned one: nothing was spent on it.
- A latency holds for the machine as it was then; `incumbent_latency` scales it by what the machine's speed changed since.
- A trial that was started and not finished is *open*: it is in no count and not in `tried`, so it is taken up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from opratchet.errors import LedgerError
from opratchet.ledger.collector import collector_rests
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
    Stopped,
    StrategySkipped,
    TrialFinished,
    TrialPassed,
    TrialStarted,
)
from opratchet.ledger.rounds import Round, Trial
from opratchet.ledger.words import Accuracy, Conditions, Latency, Outcome, Ratio, Record, Variance


@dataclass(slots=True)
class RunState:
    """Everything that is known of a run. Built by `fold`, moved on by `apply`, never changed by hand.

    Attributes:
        header: The first event, None before the run began; `run` gives it or raises.
        options: What the user chose when the run began, and what was changed of it when it was resumed.
        protections: What kept candidates from doing harm, each with why it was not active, in all or in part of the run.
        gate: Accuracy of the baseline, None until the activation gate is open.
        baseline: First latency of the baseline by tune workload, empty until measured; `baseline_at` is its UTC time.
        noise: The baseline against itself; `spread` is what fresh processes alone do to a timing.
        anchor: Latency of the baseline by which the machine is judged: the first one, or that of the last anchoring check.
        slowdown: Factor by which a call takes longer now than at first: the product of the changes of all anchoring checks.
        checks: Every time the machine was checked, in order.
        must_check: The run went on after a stop, and the machine has not been checked since.
        conditions: What the machine did during each measurement for which that was noted, in order.
        incumbent: SHA-256 of the best accepted version so far.
        lineage: The adopted trials in order; the last one is the incumbent, none means the baseline is.
        rounds: Rounds by number, in order; `trials` likewise.
        passed: Results of open trials that are credibly faster and wait for the end of their round.
        outcomes: Finished trials by outcome.
        rounds_without_gain: Length of the present streak of rounds without gain.
        tried: `(parent hash, edit id)` of every finished trial.
        judged: Hashes of every source that went through the gates, the baseline's among them.
        no_effect: Ids of edits that do not change the generated code on this target.
        diagnoses: All diagnoses in order; `stages` likewise every stage that was entered.
        skipped: Why a strategy does not apply, by `(incumbent hash, strategy id)`.
        stop: The stop rule that holds; None while the run goes on, and again after it was resumed.
        final: Fresh figures of the delivered source, taken at `final_at`; void once something new is adopted.
        delivered: The last event of a complete run.
        notes: Remarks in order; `seconds` is the wall time of all trials, of the checks of the machine and of the final measurement by kind.
    """

    header: RunStarted | None = None
    options: dict[str, Any] = field(default_factory=dict)
    protections: dict[str, str] = field(default_factory=dict)
    gate: list[Accuracy] | None = None
    baseline: dict[str, Latency] = field(default_factory=dict)
    baseline_at: str = ""
    noise: Ratio | None = None
    spread: dict[str, Variance] = field(default_factory=dict)
    anchor: dict[str, Latency] = field(default_factory=dict)
    slowdown: float = 1.0
    checks: list[MachineChecked] = field(default_factory=list)
    must_check: bool = False
    conditions: list[Conditions] = field(default_factory=list)
    incumbent: str = ""
    lineage: list[Trial] = field(default_factory=list)
    rounds: dict[int, Round] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    passed: dict[int, TrialFinished] = field(default_factory=dict)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    rounds_without_gain: int = 0
    tried: set[tuple[str, str]] = field(default_factory=set)
    judged: set[str] = field(default_factory=set)
    no_effect: set[str] = field(default_factory=set)
    diagnoses: list[Diagnosed] = field(default_factory=list)
    stages: list[StageEntered] = field(default_factory=list)
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    stop: Stopped | None = None
    final: FinalMeasured | None = None
    final_at: str = ""
    delivered: Delivered | None = None
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def run(self) -> RunStarted:
        """The header of the run.

        Raises:
            LedgerError: the ledger holds no run.
        """
        if self.header is None:
            raise LedgerError("the ledger holds no run", fix="Start one with `opratchet tune`.")
        return self.header

    @property
    def experiments(self) -> int:
        """Finished trials that cost something: all but the pruned ones."""
        return sum(self.outcomes.values()) - self.outcomes[Outcome.PRUNED]

    @property
    def finished_rounds(self) -> list[Round]:
        """The rounds that are finished, in order."""
        return [r for r in self.rounds.values() if not r.is_open]

    @property
    def open_round(self) -> Round | None:
        """The round that was begun and not finished, e.g. because the run was interrupted in it."""
        return next((r for r in reversed(self.rounds.values()) if r.is_open), None)

    @property
    def open_trials(self) -> list[Trial]:
        """The trials that were begun and not finished."""
        return [t for t in self.trials.values() if t.is_open]

    @property
    def is_complete(self) -> bool:
        """True when a stop rule holds and the best version was measured again or delivered."""
        return self.stop is not None and not (self.final is None and self.delivered is None)

    @property
    def best(self) -> str:
        """SHA-256 of the source that is delivered; before that, of the one that would be."""
        if self.delivered is not None:
            return self.delivered.source
        return self.final.source if self.final is not None else self.incumbent

    @property
    def best_trial(self) -> Trial | None:
        """The trial that `best` comes from; None when it is the baseline."""
        return next((t for t in reversed(self.lineage) if t.source == self.best), None)

    @property
    def incumbent_latency(self) -> dict[str, Latency]:
        """Latency of the incumbent by workload on the machine as it is now: as it was measured, scaled by the change since."""
        last = self.lineage[-1] if self.lineage else None
        latency, then = (last.latency, last.slowdown) if last else (self.baseline, 1.0)
        return {name: found.scaled(self.slowdown / then) for name, found in latency.items()}


def fold(lines: Iterable[Line]) -> RunState:
    """The state after these lines. Every prefix of a ledger folds.

    Raises:
        LedgerError: a line contradicts the lines before it.
    """
    state = RunState()
    with collector_rests():
        for line in lines:
            apply(state, line)
    return state


def apply(state: RunState, line: Line) -> None:
    """Move the state on by one line.

    Raises:
        LedgerError: the line contradicts the lines before it; the state is then of no use.
    """
    begins = type(line.event) is RunStarted
    _require(line, begins == (state.header is None), "a run begins exactly once, in the first line")
    _MEANING[type(line.event)](state, line, line.event)


def _contradiction(line: Line, rule: str) -> LedgerError:
    return LedgerError(
        f"this {line.event.type} contradicts the lines before it: {rule}",
        where=f"ledger line {line.seq + 1}",
        fix="Restore the ledger from a copy, or start a new run in another folder (--out).",
    )


def _require(line: Line, holds: bool, rule: str) -> None:
    if not holds:
        raise _contradiction(line, rule)


def _open_round(state: RunState, line: Line, number: int) -> Round:
    found = state.rounds.get(number)
    if found is None or not found.is_open:
        raise _contradiction(line, f"round {number} is not open")
    return found


def _open_trial(state: RunState, line: Line, number: int) -> Trial:
    found = state.trials.get(number)
    if found is None or not found.is_open:
        raise _contradiction(line, f"trial {number} is not open")
    return found


def _spend(state: RunState, seconds: dict[str, float]) -> None:
    for kind, value in seconds.items():
        state.seconds[kind] = state.seconds.get(kind, 0.0) + value


def _note(state: RunState, conditions: Conditions | None) -> None:
    if conditions is not None:
        state.conditions.append(conditions)


def _run_started(state: RunState, _line: Line, event: RunStarted) -> None:
    state.header, state.options, state.protections = event, event.options, event.protections
    state.incumbent = event.source_sha256
    state.judged.add(event.source_sha256)


def _run_resumed(state: RunState, _line: Line, event: RunResumed) -> None:
    """A stop ends when the run goes on. Figures taken at that stop stay true until something new is adopted."""
    state.options = {**state.options, **event.options}
    kept = {name: state.protections.get(name) or why for name, why in event.protections.items()}
    state.protections = {**state.protections, **kept}
    state.stop = state.delivered = None
    state.must_check = True


def _gate_passed(state: RunState, _line: Line, event: GatePassed) -> None:
    state.gate = event.accuracy


def _baseline_measured(state: RunState, line: Line, event: BaselineMeasured) -> None:
    state.baseline = state.anchor = event.latency
    state.baseline_at = line.at
    state.noise, state.spread = event.noise, event.spread
    _note(state, event.conditions)


def _machine_checked(state: RunState, line: Line, event: MachineChecked) -> None:
    _require(line, bool(state.anchor), "a machine is checked against the baseline's first latency")
    state.checks.append(event)
    state.must_check = False
    _spend(state, event.seconds)
    _note(state, event.conditions)
    if event.anchored:
        state.anchor = event.latency
        state.slowdown *= event.change


def _diagnosed(state: RunState, _line: Line, event: Diagnosed) -> None:
    state.diagnoses.append(event)


def _strategy_skipped(state: RunState, _line: Line, event: StrategySkipped) -> None:
    state.skipped[event.incumbent, event.strategy] = event.why


def _stage_entered(state: RunState, line: Line, event: StageEntered) -> None:
    _require(line, state.open_round is None, "a stage begins between two rounds")
    state.stages.append(event)


def _round_started(state: RunState, line: Line, event: RoundStarted) -> None:
    _require(line, event.round not in state.rounds, f"round {event.round} began before")
    _require(line, event.incumbent == state.incumbent, "a round starts from the incumbent")
    state.rounds[event.round] = Round(
        number=event.round,
        strategy=event.strategy,
        reason=event.reason,
        incumbent=event.incumbent,
        documents=event.documents,
        planned=event.planned,
        diagnosis=state.diagnoses[-1] if state.diagnoses else None,
    )


def _trial_started(state: RunState, line: Line, event: TrialStarted) -> None:
    _require(line, event.trial not in state.trials, f"trial {event.trial} began before")
    its_round = _open_round(state, line, event.round)
    _require(line, event.parent == its_round.incumbent, "a trial starts from its round's incumbent")
    trial = Trial(
        number=event.trial,
        round=event.round,
        strategy=event.strategy,
        edit=event.edit,
        title=event.title,
        source=event.source,
        parent=event.parent,
    )
    state.trials[event.trial] = trial
    its_round.trials.append(trial)


def _trial_finished(state: RunState, line: Line, event: TrialFinished) -> None:
    trial = _open_trial(state, line, event.trial)
    trial.close(event, line.at)
    if state.passed.pop(event.trial, None) is None:
        trial.slowdown = state.slowdown
    _note(state, event.conditions)
    state.outcomes[event.outcome] += 1
    _spend(state, event.seconds)
    state.tried.add((trial.parent, trial.edit))
    state.judged.add(trial.source)
    if event.no_effect:
        state.no_effect.add(trial.edit)


def _trial_passed(state: RunState, line: Line, event: TrialPassed) -> None:
    trial = _open_trial(state, line, event.trial)
    trial.slowdown = state.slowdown
    state.passed[event.trial] = event.result


def _round_finished(state: RunState, line: Line, event: RoundFinished) -> None:
    finished = _open_round(state, line, event.round)
    own = {trial.number: trial for trial in finished.trials}
    named = {event.adopted, event.shown} - {None}
    _require(line, named <= own.keys(), "a round names only its own trials")
    finished.is_open = False
    finished.version = event.version
    finished.shown = None if event.shown is None else own[event.shown]
    if event.adopted is not None:
        _adopt(state, line, finished, own[event.adopted])
    elif finished.was_timed:
        state.rounds_without_gain += 1
    _require(line, event.incumbent == state.incumbent, "the incumbent changes only by adoption")


def _adopt(state: RunState, line: Line, finished: Round, trial: Trial) -> None:
    _require(line, trial.outcome is Outcome.ADOPTED, f"trial {trial.number} was not adopted")
    finished.adopted = trial
    state.incumbent = trial.source
    state.lineage.append(trial)
    state.rounds_without_gain = 0
    state.final = None


def _stopped(state: RunState, _line: Line, event: Stopped) -> None:
    state.stop = event


def _final_measured(state: RunState, line: Line, event: FinalMeasured) -> None:
    state.final = event
    state.final_at = line.at
    _spend(state, event.seconds)
    _note(state, event.conditions)


def _delivered(state: RunState, _line: Line, event: Delivered) -> None:
    state.delivered = event


def _noted(state: RunState, _line: Line, event: Noted) -> None:
    state.notes.append(event.text)


_MEANING: dict[type[Record], Callable[[RunState, Line, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    GatePassed: _gate_passed,
    BaselineMeasured: _baseline_measured,
    MachineChecked: _machine_checked,
    Diagnosed: _diagnosed,
    StrategySkipped: _strategy_skipped,
    StageEntered: _stage_entered,
    RoundStarted: _round_started,
    TrialStarted: _trial_started,
    TrialFinished: _trial_finished,
    TrialPassed: _trial_passed,
    RoundFinished: _round_finished,
    Stopped: _stopped,
    FinalMeasured: _final_measured,
    Delivered: _delivered,
    Noted: _noted,
}
