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
    if count < 5 or not np.isfinite(ordered).all():
        raise ValueError("at least five finite values are needed")
    cut = int(part * count)
    kept = count - 2 * cut
    winsorised = np.clip(ordered, ordered[cut], ordered[count - cut - 1])
    variance = float(winsorised.var(ddof=1)) * (count - 1) / (kept * (kept - 1))
    return Centre(float(ordered[cut : count - cut].mean()), variance, kept - 1)


def by_turns(log_ratios: Sequence[float]) -> list[float]:
    """The two pairs of each ABBA averaged, so that a steady drift cancels; a last single pair is left out."""
    return [(a + b) / 2 for a, b in zip(log_ratios[::2], log_ratios[1::2], strict=False)]
