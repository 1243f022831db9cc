"""The loop. It reads as the written procedure does: open the gate, measure the baseline, then round after round choose
one optimisation point, try its edits one by one from the same incumbent, adopt the best one or roll back, until a
stop rule holds; then measure the winner again and deliver.

Everything that happens is first an event in the ledger and then a fact; after a crash the same loop goes on from the
fold of the ledger. The loop knows nothing of any DSL, of pages, or of who proposes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from opratchet.delivery import deliver, version_name, write_version
from opratchet.edit.model import Edit
from opratchet.errors import BadInput, BaselineFailed
from opratchet.flow.stages import move_on
from opratchet.flow.stop import stop_rule
from opratchet.gates import GateClosed, static_gates
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.events import (
    Diagnosed,
    Noted,
    RoundFinished,
    RoundStarted,
    StageEntered,
    Stopped,
    StrategySkipped,
    TrialFinished,
    TrialPassed,
    TrialStarted,
)
from opratchet.ledger.rounds import Round, Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Outcome
from opratchet.propose.base import Point
from opratchet.recheck import Recheck
from opratchet.run import Run
from opratchet.trial import final_measurement, take_trial

BUILDERS = 2
LEVEL = 0.97


def tune(run: Run) -> RunState:
    """Go on until a stop rule holds, then deliver. Returns the final state."""
    recheck = Recheck(run)
    while run.state.stop is None:
        recheck.if_due()
        stop = stop_rule(run.state, run.rules, run.clock.elapsed, run.stop_asked())
        if stop is None:
            stop = one_round(run)
        if stop is not None:
            run.record(stop)
    if run.state.final is None:
        measure_final(run)
        recheck.if_suspicious()
    if run.state.delivered is None:
        run.record(deliver(run.ledger.folder, run.lab.operator, run.state, run.clock.totals()))
    return run.state


def one_round(run: Run) -> Stopped | None:
    """Take up one optimisation point, or the one that was interrupted. Gives a stop when nothing is left."""
    current = run.state.open_round or next_round(run)
    if not isinstance(current, Round):
        return current
    enter_planned(run, current)
    explore(run, current)
    if not is_cut_short(run, current):
        finish(run, current)
    return None


def next_round(run: Run) -> Round | Stopped | None:
    """Begin a round for the next point; or enter the next stage, which gives none; or stop."""
    moved = move_on(run.flow, run.state)
    if moved is None:
        renew_diagnosis(run)
        point = choose(run)
        if point is not None:
            return begin(run, point)
        moved = move_on(run.flow, run.state, nothing_left=True)
    if isinstance(moved, StageEntered):
        run.record(moved)
        return None
    return moved


def is_cut_short(run: Run, current: Round) -> bool:
    """Whether the user stopped before anything was gained: then the round stays open, and `resume` goes on with it."""
    passed = run.state.passed
    return not passed and any(trial.is_open for trial in current.trials)


def renew_diagnosis(run: Run) -> None:
    """Diagnose the incumbent, once after each adoption: the bottleneck moves."""
    done = run.state.diagnoses
    if done and done[-1].incumbent == run.state.incumbent:
        return
    build = run.incumbent_build()
    bottlenecks, facts = run.lab.backend.diagnose(
        run.lab.operator,
        run.source(run.state.incumbent),
        build.artifacts,
        run.state.incumbent_latency,
    )
    run.record(Diagnosed(incumbent=run.state.incumbent, bottlenecks=bottlenecks, facts=facts))


def choose(run: Run) -> Point | None:
    """Ask the proposer, and record which strategies do not apply, each reason once."""
    answer = run.proposer.ask(run.state, run.here())
    known = {(strategy, why) for (_i, strategy), why in run.state.skipped.items()}
    for strategy, why in answer.skipped.items():
        if (strategy, why) not in known:
            incumbent = run.state.incumbent
            run.record(StrategySkipped(strategy=strategy, incumbent=incumbent, why=why))
    return answer.point


def begin(run: Run, point: Point) -> Round:
    """Open the round, with what it sets out to try."""
    state = run.state
    number = len(state.rounds) + 1
    edits = point.edits[: run.rules.max_experiments - state.experiments]
    run.record(
        RoundStarted(
            round=number,
            strategy=point.row,
            reason=point.reason,
            incumbent=state.incumbent,
            documents=list(point.documents),
            planned=[edit.id for edit in edits],
        )
    )
    return state.rounds[number]


def enter_planned(run: Run, current: Round) -> None:
    """Enter the candidates that the round set out to try and that have not been entered yet."""
    entered = {trial.edit for trial in current.trials}
    missing = [name for name in current.planned if name not in entered]
    if not missing:
        return
    offered = run.proposer.edits(run.state, run.here(), current.strategy)
    by_id = {edit.id: edit for edit in offered}
    for name in missing:
        if name in by_id:
            enter(run, current.number, by_id[name])
        else:
            run.record(Noted(text=f"round {current.number}: {name} is not offered any more"))


def enter(run: Run, number: int, edit: Edit) -> None:
    """Gates 1 and 2, then the candidate's source is kept and its trial begins."""
    state = run.state
    trial = len(state.trials) + 1
    run.record(
        TrialStarted(
            trial=trial,
            round=number,
            strategy=edit.strategy,
            edit=edit.id,
            title=edit.title,
            source=run.ledger.keep(edit.text),
            parent=state.incumbent,
        )
    )
    refused = static_gates(run.here(), edit.text, run.lab.operator)
    if refused is not None:
        outcome, reason = refused
        run.record(TrialFinished(trial=trial, outcome=outcome, reason=reason))


def explore(run: Run, current: Round) -> None:
    """Build what is open, side by side, while nothing is timed; then take the trials one by one."""
    waiting = [t for t in current.trials if t.is_open and t.number not in run.state.passed]
    incumbent = run.incumbent_build()
    run.progress(f"round {current.number}: building {len(waiting)} candidates")
    with run.clock.on("build"):
        built = build_all(run, waiting)
    if any(isinstance(build, WorkerFailed) for build in built.values()):
        run.require_room()

    def take(trial: Trial) -> TrialFinished | None:
        if run.stop_asked():
            return None
        run.progress(f"round {current.number}: {trial.title}")
        return take_trial(
            run.lab, trial.number, incumbent, built[trial.number], run.rule, run.spread
        )

    in_turn = one_by_one if run.lab.is_measured else side_by_side
    for trial, result in in_turn(run, waiting, take):
        if result.ratio is not None:
            result = result.model_copy(update={"spread": run.spread.record()})
        if result.outcome is Outcome.ADOPTED:
            run.record(TrialPassed(trial=trial.number, result=result))
            keep_build(run, trial, built[trial.number])
        else:
            run.record(result)


Take = Callable[[Trial], "TrialFinished | None"]
Results = Iterator[tuple[Trial, TrialFinished]]


def one_by_one(run: Run, trials: Sequence[Trial], take: Take) -> Results:
    """Results in their order, until the user asks to stop; the next trial begins when the last one is on record."""
    for trial in trials:
        result = take(trial)
        if result is None:
            return
        for kind in ("accuracy", "measure"):
            run.clock.book(kind, result.seconds.get(kind, 0.0))
        yield trial, result


def side_by_side(run: Run, trials: Sequence[Trial], take: Take) -> Results:
    """The same where nothing is timed, so that several trials do not disturb one another."""
    with ThreadPoolExecutor(BUILDERS) as pool:
        results = pool.map(take, trials)
        for trial in trials:
            with run.clock.on("accuracy"):
                result = next(results)
            if result is None:
                return
            yield trial, result


def build_all(run: Run, trials: Sequence[Trial]) -> dict[int, Build | WorkerFailed]:
    """Build several candidates, a few at a time, each in its own process."""

    def one(trial: Trial) -> Build | WorkerFailed:
        try:
            return run.lab.build(run.source(trial.source), run.lab.operator.checked)
        except WorkerFailed as failure:
            return failure

    with ThreadPoolExecutor(BUILDERS) as pool:
        return dict(zip([t.number for t in trials], pool.map(one, trials), strict=True))


def keep_build(run: Run, trial: Trial, build: Build | WorkerFailed) -> None:
    """Keep the build of a candidate that may become the incumbent."""
    if isinstance(build, Build):
        run.builds[trial.source] = build


def finish(run: Run, current: Round) -> None:
    """End a round: the fastest of those that passed every gate is adopted; everything else is rolled back."""
    if any(t.is_open and t.number not in run.state.passed for t in current.trials):
        close_unfinished(run, current)
    passed = {t.number: run.state.passed[t.number] for t in current.trials if t.is_open}
    best = adopted_before(current) or best_of(passed)
    for number, result in passed.items():
        outcome = Outcome.ADOPTED if number == best else Outcome.NO_GAIN
        reason = "" if number == best else f"faster, but trial {best} of this round is faster still"
        changes = {"outcome": outcome, "reason": reason, "spread": {}}
        run.record(result.model_copy(update=changes))
    shown = best if best is not None else best_failed(current)
    incumbent = run.state.trials[best].source if best is not None else run.state.incumbent
    version = version_name(run.lab.operator, current.number)
    text = run.source(run.state.trials[shown].source if shown is not None else incumbent)
    write_version(run.ledger.folder, version, text)
    run.record(
        RoundFinished(
            round=current.number, adopted=best, shown=shown, version=version, incumbent=incumbent
        )
    )


def adopted_before(current: Round) -> int | None:
    """The trial that was adopted already: the run was interrupted between that and the end of the round."""
    return next((t.number for t in current.trials if t.outcome is Outcome.ADOPTED), None)


def best_of(passed: Mapping[int, TrialFinished]) -> int | None:
    """The fastest trial; of those that are as fast within `LEVEL`, the one that was proposed first."""
    gains = {number: result.ratio.value for number, result in passed.items() if result.ratio}
    best = max(gains.values(), default=0.0)
    return next((number for number in sorted(gains) if gains[number] >= best * LEVEL), None)


def close_unfinished(run: Run, current: Round) -> None:
    """The user stopped in mid-round: what was not timed ends as such, so that no trial stays open for ever."""
    for trial in current.trials:
        if trial.is_open and trial.number not in run.state.passed:
            reason = "the user stopped the run before this trial was timed"
            run.record(TrialFinished(trial=trial.number, outcome=Outcome.PRUNED, reason=reason))


def best_failed(current: Round) -> int | None:
    """The trial whose source a round without adoption shows: the fastest of those timed, else the first."""
    timed = [t for t in current.trials if t.ratio is not None]
    if timed:
        return max(timed, key=lambda t: t.ratio.value if t.ratio else 0.0).number
    return current.trials[0].number if current.trials else None


def measure_final(run: Run) -> None:
    """Measure the best version again against the baseline: fresh processes, every workload, all outputs checked.

    A version that fails now, though it was adopted, is not delivered: its predecessor is measured instead.
    """
    run.progress("measuring the best version again, on every workload")
    first = run.state.run.source_sha256
    baseline = run.build_again(first)
    for digest in [*(trial.source for trial in reversed(run.state.lineage)), first]:
        build = run.build_again(digest)
        try:
            with run.clock.on("measure"):
                final = final_measurement(run.lab, baseline, build, digest, run.spread)
        except (GateClosed, WorkerFailed) as failure:
            run.record(
                Noted(text=f"version {digest[:12]} fails when measured again: {failure.reason}")
            )
            continue
        run.record(final)
        note_doubtful(run)
        note_failures(run)
        return
    raise BaselineFailed(
        "the baseline itself fails when it is measured again",
        where=str(run.lab.operator.source),
        fix="See the notes in the ledger; `resume` measures again.",
    )


def note_doubtful(run: Run) -> None:
    """Say so for each workload on which the delivered version may not be faster."""
    final = run.state.final
    if final is None or final.source == run.state.run.source_sha256:
        return
    for name, ratio in final.ratios.items():
        if ratio.low <= 1.0:
            text = f"on {name} the delivered version is not credibly faster: {ratio.value:.3f}x"
            run.record(Noted(text=f"{text} [{ratio.low:.3f}, {ratio.high:.3f}]"))


def note_failures(run: Run) -> None:
    """Say so when not one candidate got as far as being timed: then something may be wrong besides the candidates."""
    state = run.state
    failed = state.outcomes.copy()
    failed.pop(Outcome.PRUNED, None)
    if not failed or any(outcome.is_judged for outcome in failed):
        return
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in failed.most_common())
    first = next(t for t in state.trials.values() if t.outcome in failed)
    text = f"no candidate could be timed ({counts}); trial {first.number}: {first.reason}"
    if text not in state.notes:
        run.record(Noted(text=text))


def require_same_source(state: RunState, text_sha256: str, where: str) -> None:
    """A run is resumed only on the source that it began with.

    Raises:
        BadInput: the source has changed since.
    """
    if state.run.source_sha256 != text_sha256:
        raise BadInput(
            "the source has changed since this run began",
            where=where,
            fix="Start a new run with `tune --fresh`; the old folder is kept under another name.",
        )
