"""Gate 6: whether a candidate is faster, from interleaved pairs.

The incumbent and the candidate run side by side and are timed in turns (ABBA), so slow drift and changes of the
machine's state hit both. Each ABBA, two pairs, gives one log ratio, `ln(incumbent / candidate)`. The centre and the interval of
these are estimated by the trimmed mean with the Student interval of Yuen: K. K. Yuen, "The two-sample trimmed t for
unequal population variances", Biometrika 61 (1974) 165-170, in its one-sample form (Tukey and McLaughlin 1963): 20 %
are cut from each end, which keeps a burst of foreign load from deciding, and the variance is the winsorised one.

A process can be faster or slower by some per cent for all its life, because of where its memory and code happen to
lie. A close win (`Rule.is_close`) is therefore repeated in a second pair of fresh processes, and has to be won again.

Sampling looks at the data after a growing number of pairs (`LOOKS`) and stops as soon as the answer is clear. Each look
is one chance to be wrong, and so is each trial of a run: the error allowed to a whole run is divided evenly
over both (Bonferroni), so that the chance that a run adopts anything that is not faster stays under that bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from opratchet.ledger.words import Ratio

LOOKS = (24, 60, 150, 400, 800)
TRIM = 0.2
CLOSE = 1.15


class Verdict(str, Enum):
    """What the pairs say of the candidate. `TIE`: any gain is smaller than the minimum effect."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Rule:
    """When a candidate counts as faster.

    Attributes:
        minimum_effect: Smallest gain worth a change, as a fraction; apart from noise.
        run_error: Chance allowed to a whole run to adopt anything that is not faster.
        trials: How many trials the run may hold, over which `run_error` is divided.
    """

    minimum_effect: float = 0.01
    run_error: float = 0.01
    trials: int = 100

    def is_close(self, ratio: Ratio) -> bool:
        """Whether a win is small enough to come from the state of one process."""
        return ratio.low < CLOSE

    @property
    def confidence(self) -> float:
        """Two-sided confidence of the interval at each look."""
        return 1.0 - 2.0 * self.run_error / (self.trials * len(LOOKS))


def by_turns(log_ratios: Sequence[float]) -> list[float]:
    """The two pairs of each ABBA averaged; a last single pair is left out."""
    return [(a + b) / 2 for a, b in zip(log_ratios[::2], log_ratios[1::2], strict=False)]


def interval(log_ratios: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Trimmed mean of log ratios and its Yuen interval, as natural logarithms: centre, low, high.

    Raises:
        ValueError: fewer than five values, or one that is not finite.
    """
    from scipy.special import stdtrit

    values = np.sort(np.asarray(log_ratios, dtype=np.float64))
    count = values.size
    if count < 5 or not np.isfinite(values).all():
        raise ValueError("at least five finite log ratios are needed")
    cut = int(TRIM * count)
    kept = count - 2 * cut
    centre = float(values[cut : count - cut].mean())
    winsorised = np.clip(values, values[cut], values[count - cut - 1])
    variance = float(winsorised.var(ddof=1)) * (count - 1) / (kept * (kept - 1))
    margin = float(stdtrit(kept - 1, (1 + confidence) / 2)) * math.sqrt(variance)
    return centre, centre - margin, centre + margin


def ratio_of(log_ratios: Sequence[float], confidence: float) -> Ratio:
    """Speed-up factor with its interval from the log ratios of pairs taken in ABBA order."""
    centre, low, high = interval(by_turns(log_ratios), confidence)
    return Ratio(
        value=math.exp(centre),
        low=math.exp(low),
        high=math.exp(high),
        pairs=len(log_ratios),
        confidence=confidence,
    )


def aggregate(by_workload: Mapping[str, Sequence[float]]) -> list[float]:
    """Log ratios of the geometric mean over the workloads: pair `i` of each workload averaged."""
    return [float(x) for x in np.mean(np.asarray(list(by_workload.values())), axis=0)]


def judge(total: Ratio, by_workload: Mapping[str, Ratio], rule: Rule) -> Verdict:
    """The answer at one look; `INCONCLUSIVE` asks for more pairs.

    A candidate is faster when the aggregate's interval lies beyond the minimum effect and no single workload is
    credibly slower.
    """
    if any(ratio.high < 1.0 for ratio in by_workload.values()) or total.high < 1.0:
        return Verdict.SLOWER
    if total.low > 1.0 + rule.minimum_effect:
        return Verdict.FASTER
    if total.high < 1.0 + rule.minimum_effect:
        return Verdict.TIE
    return Verdict.INCONCLUSIVE
