"""Robust centres of samples, and how far they can be trusted.

The centre of the log ratios that one pair of processes gives is their 20 % trimmed mean: a burst of foreign load cannot
decide it. Its variance is the winsorised one: K. K. Yuen, "The two-sample trimmed t for unequal population variances",
Biometrika 61 (1974) 165-170, in its one-sample form (J. W. Tukey and D. H. McLaughlin, Sankhya A 25 (1963) 331-352).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TRIM = 0.2
FEWEST = 5  # values of which a trimmed mean is taken


@dataclass(frozen=True)
class Centre:
    """A centre with what is known of its error.

    Attributes:
        value: The centre.
        variance: Variance of the centre.
        freedom: Degrees of freedom behind the variance.
    """

    value: float
    variance: float
    freedom: float

    def margin(self, confidence: float) -> float:
        """Half the width of the two-sided Student interval; infinite where nothing is known of the error."""
        from scipy.special import stdtrit

        if self.freedom <= 0 or not math.isfinite(self.variance):
            return math.inf
        return float(stdtrit(self.freedom, (1 + confidence) / 2)) * math.sqrt(self.variance)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The two-sided Student interval."""
        margin = self.margin(confidence)
        return self.value - margin, self.value + margin


def trimmed(values: Sequence[float], part: float = TRIM) -> Centre:
    """Trimmed mean of a sample, with the variance of Yuen.

    Args:
        values: The sample.
        part: Share that is cut from each end, under a half.

    Raises:
        ValueError: fewer than five values, or one that is not finite.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = ordered.size
    if count < FEWEST or not np.isfinite(ordered).all():
        raise ValueError("at least five finite values are needed")
    cut = int(part * count)
    kept = count - 2 * cut
    inside = ordered[cut : count - cut]
    low, high = float(inside[0]), float(inside[-1])
    total = float(inside.sum())
    middle = (total + cut * (low + high)) / count
    beyond = inside - middle
    winsorised = float(beyond @ beyond) + cut * ((low - middle) ** 2 + (high - middle) ** 2)
    return Centre(total / kept, winsorised / (kept * (kept - 1)), kept - 1)


def by_turns(log_ratios: Sequence[float]) -> list[float]:
    """The two pairs of each ABBA averaged, so that a steady drift cancels; a last single pair is left out.

    Where these are too few to be trimmed, it is the pairs themselves: their order cancels a drift from the mean all the same.
    """
    turns = [(a + b) / 2 for a, b in zip(log_ratios[::2], log_ratios[1::2], strict=False)]
    return turns if len(turns) >= FEWEST else list(log_ratios)
