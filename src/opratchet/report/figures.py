"""The figures that more than one view shows, so that all views show the same.

Two pairs of latencies exist for a run and they are never mixed: the *first* baseline, which rounds are compared
with while the run goes on, and the *fresh* pair of baseline and delivered version, measured together at the end,
which is the one reported. Averages over workloads are geometric means with the workloads' weights, over exactly the
tune workloads that the baseline was measured on; a version that lacks one of them has no average rather than a
misleading one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from opratchet.ledger.means import geometric_mean
from opratchet.ledger.remarks import remarks
from opratchet.ledger.rounds import Round
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Accuracy, Latency, Ratio, WorkloadKind


@dataclass(frozen=True)
class Interval:
    """A latency averaged over workloads: centre and both ends, microseconds."""

    us: float
    low_us: float
    high_us: float


@dataclass(frozen=True)
class WorkloadFigures:
    """Fresh figures of one tune workload, None where it has not been measured, and its weight in averages."""

    id: str
    baseline: Latency | None
    final: Latency | None
    ratio: Ratio | None
    weight: float

    @property
    def speedup(self) -> float | None:
        """The paired ratio where there is one, else the quotient of both latencies."""
        if self.ratio is not None:
            return self.ratio.value
        if self.baseline is None or self.final is None:
            return None
        return self.baseline.us / self.final.us


def percent_gain(before_us: float, after_us: float) -> float | None:
    """`(before - after) / before * 100`, the seed's measure of an improvement."""
    return (before_us - after_us) / before_us * 100 if before_us > 0 else None


def tune_workloads(state: RunState) -> dict[str, float]:
    """Weight of each tune workload by its id, in the operator's order."""
    return {w.id: w.weight for w in state.run.workloads if w.kind is WorkloadKind.TUNE}


def average(state: RunState, latency: Mapping[str, Latency]) -> Interval | None:
    """Weighted geometric mean over the workloads the baseline was measured on; None unless all of them are there."""
    weights = {n: weight for n, weight in tune_workloads(state).items() if n in state.baseline}
    if not weights or any(name not in latency for name in weights):
        return None
    picked = [latency[name] for name in weights]
    return Interval(
        geometric_mean((p.us for p in picked), weights.values()),
        geometric_mean((p.low_us for p in picked), weights.values()),
        geometric_mean((p.high_us for p in picked), weights.values()),
    )


def delivers_baseline(state: RunState) -> bool:
    """True when nothing better than the baseline stands."""
    return state.best == state.run.source_sha256


def fresh_baseline(state: RunState) -> Mapping[str, Latency]:
    """Baseline latency by workload: measured again beside the delivered version, or else the first one."""
    return state.final.baseline if state.final is not None else state.baseline


def fresh_final(state: RunState) -> Mapping[str, Latency]:
    """Latency of the delivered version by workload; empty while it has not been measured again.

    A complete run that delivers the baseline without a second measurement has the baseline's own figures.
    """
    if state.final is not None:
        return state.final.final
    return state.baseline if state.is_complete and delivers_baseline(state) else {}


def by_workload(state: RunState) -> list[WorkloadFigures]:
    """Fresh figures of every tune workload."""
    before, after = fresh_baseline(state), fresh_final(state)
    ratios = state.final.ratios if state.final is not None else {}
    return [
        WorkloadFigures(name, before.get(name), after.get(name), ratios.get(name), weight)
        for name, weight in tune_workloads(state).items()
    ]


def total_gain(state: RunState) -> float | None:
    """Improvement of the delivered version over the baseline in percent, from the fresh pair."""
    before, after = average(state, fresh_baseline(state)), average(state, fresh_final(state))
    return None if before is None or after is None else percent_gain(before.us, after.us)


def total_speedup(state: RunState) -> float | None:
    """Speed-up of the delivered version: the paired ratio where there is one, else the quotient of the averages."""
    if state.final is not None:
        return state.final.ratio.value
    before, after = average(state, fresh_baseline(state)), average(state, fresh_final(state))
    return None if before is None or after is None else before.us / after.us


def machine_changes(state: RunState) -> list[float]:
    """How long a call took after each change of the machine's speed, as a factor of what it took when the run began."""
    factors = [check.change for check in state.checks if check.anchored]
    return list(accumulate(factors, mul))


def disturbed(state: RunState) -> int:
    """Of the measurements whose conditions were noted, those in which the machine did something remarkable."""
    return sum(bool(remarks(seen)) for seen in state.conditions)


def best_round(state: RunState) -> int:
    """Round whose version is delivered; 0 for the baseline."""
    trial = state.best_trial
    return 0 if trial is None else trial.round


def documents(rounds: Iterable[Round]) -> list[str]:
    """Documentation pages that rounds acted on, each once, in order of first use."""
    return list(dict.fromkeys(page for r in rounds for page in r.documents))


def is_accurate(checks: Iterable[Accuracy]) -> bool | None:
    """Whether all comparisons passed; None when there was none."""
    verdicts = [check.passed for check in checks]
    return all(verdicts) if verdicts else None


def process_spread(state: RunState) -> float | None:
    """Standard deviation, as a fraction, that a fresh pair of processes alone adds to a ratio; None when not measured."""
    known = state.spread.get("")
    if known is None or not known.freedom:
        return None
    return math.sqrt(max(0.0, known.excess / known.freedom))
