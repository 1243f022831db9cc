"""A latency from timed batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opratchet.judge.robust import Centre, trimmed
from opratchet.ledger.words import Latency, MetricKind

CONFIDENCE = 0.95


def latency(samples_ns: Sequence[Sequence[float]], between: float = 0.0) -> Latency:
    """A measured latency: mean over processes of the trimmed mean of the logarithms, with its 95 % interval.

    Args:
        samples_ns: Nanoseconds a call of each batch, one list a process.
        between: Variance that a fresh process adds to the logarithm, where it is known.
    """
    units = [trimmed([math.log(ns) for ns in taken]) for taken in samples_ns]
    value = float(np.mean([unit.value for unit in units]))
    within = float(np.mean([unit.variance for unit in units]))
    freedom = sum(unit.freedom for unit in units)
    low, high = Centre(value, (between + within) / len(units), freedom).interval(CONFIDENCE)
    return Latency(
        kind=MetricKind.MEASURED,
        us=math.exp(value) / 1e3,
        low_us=math.exp(low) / 1e3,
        high_us=math.exp(high) / 1e3,
        samples=sum(len(taken) for taken in samples_ns),
    )
