"""A candidate's way through the gates, to exactly one outcome; and the last measurement of the version that is delivered."""

from __future__ import annotations

import time
from collections.abc import Mapping

from opratchet.comparing import contest, measured_against
from opratchet.contest import Comparison
from opratchet.gates import GateClosed
from opratchet.judge.decision import Rule, Verdict
from opratchet.judge.spread import Spread
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.events import FinalMeasured, TrialFinished
from opratchet.ledger.words import Outcome

_OUTCOMES = {
    Verdict.FASTER: Outcome.ADOPTED,
    Verdict.SLOWER: Outcome.REGRESSED,
    Verdict.BLOCKED: Outcome.REGRESSED,
    Verdict.TIE: Outcome.NO_GAIN,
    Verdict.INCONCLUSIVE: Outcome.NO_GAIN,
}
_REASONS = {
    Verdict.TIE: "any gain is below the minimum effect",
    Verdict.INCONCLUSIVE: "no gain could be told from noise",
}


def take_trial(
    lab: Lab,
    number: int,
    incumbent: Build,
    candidate: Build | WorkerFailed,
    rule: Rule,
    spread: Spread,
) -> TrialFinished:
    """Take one built candidate through the remaining gates.

    `adopted` means here that it may be adopted: of several in a round, the engine keeps the fastest.
    """
    if isinstance(candidate, WorkerFailed):
        return TrialFinished(
            trial=number, outcome=candidate.outcome, reason=candidate.reason, log=candidate.log
        )
    seconds = {"build": candidate.seconds}
    if candidate.code == incumbent.code:
        return TrialFinished(
            trial=number,
            outcome=Outcome.NO_GAIN,
            reason="the generated code is the same: no effect on this target",
            seconds=seconds,
            no_effect=True,
        )
    start = time.monotonic()
    try:
        result = contest(lab, incumbent, candidate, rule, spread)
    except (GateClosed, WorkerFailed) as failure:
        return TrialFinished(
            trial=number,
            outcome=failure.outcome,
            reason=failure.reason,
            accuracy=failure.accuracy if isinstance(failure, GateClosed) else [],
            log=failure.log if isinstance(failure, WorkerFailed) else "",
            seconds={**seconds, "accuracy": time.monotonic() - start},
        )
    return _judged(number, result, seconds)


def _judged(number: int, result: Comparison, seconds: Mapping[str, float]) -> TrialFinished:
    return TrialFinished(
        trial=number,
        outcome=_OUTCOMES[result.verdict],
        reason=why_not(result),
        ratio=result.ratio,
        ratios=result.ratios,
        latency=result.candidate,
        accuracy=result.accuracy,
        seconds={**seconds, **result.seconds},
        blocked_by=list(result.slower) if result.verdict is Verdict.BLOCKED else [],
        conditions=result.conditions,
    )


def why_not(result: Comparison) -> str:
    """Why a timed candidate is not faster, in a few words; empty when it is, or plainly slower."""
    if result.slower and result.verdict is not Verdict.FASTER:
        worst = min(result.slower, key=lambda name: result.ratios[name].value)
        return f"slower on {', '.join(result.slower)}: {result.ratios[worst].value:.2f}x"
    return _REASONS.get(result.verdict, "")


def final_measurement(
    lab: Lab, baseline: Build, best: Build, digest: str, spread: Spread
) -> FinalMeasured:
    """The delivered source against the baseline: fresh processes, a fixed number of bouts, every output checked.

    Raises:
        GateClosed: the version is inaccurate or caught.
        WorkerFailed: it crashed, hung or ran out of memory.
    """
    result = measured_against(lab, baseline, best, spread)
    return FinalMeasured(
        source=digest,
        baseline=result.incumbent,
        final=result.candidate,
        ratios=result.ratios,
        ratio=result.ratio,
        accuracy=result.accuracy,
        seconds=result.seconds,
        conditions=result.conditions,
    )
