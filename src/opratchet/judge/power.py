"""What gain can be told apart on a machine whose noise is known: the power of the rule, without running it.

After `n` bouts, the log speed-up is known with the standard error and the degrees of freedom that `Spread.pooled` gives for
a typical comparison, one whose bouts lie as far apart as the noise makes them:

    SE(n) = sqrt((process + pair / pairs of a bout) / n)        F(n) as Satterthwaite has it

The candidate wins where its t value exceeds the quantile `k` of the rule's confidence and its centre is at least the minimum
effect. With the power P, the smallest gain that does so at this look is

    ln(1 + gain) = max( delta * SE(n) + close(n),  ln(1 + minimum effect) + z(P) * SE(n) )

where `delta` is the noncentrality at which a t value on F degrees of freedom exceeds `k` with probability P, and close(n) is
ln 1.15 as long as a win could be feigned by the states of processes. From `PATIENCE` bouts on, a comparison
is given up when the data speak against the gain that is looked for; a gain that is found at a later look must have been kept
at each earlier one, n' bouts:

    ln(1 + gain) >= vain_at(SE(n')^2, looked for) + z(97 %) * SE(n')     or all that is looked for

The answer is the smallest over the looks that fit into the time. Earlier looks only add to the power, so it errs on the safe
side; that a gain is given up by bad luck, and that the noise itself is estimated, is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opratchet.judge.decision import (
    BOUT_LOOKS,
    CLOSE,
    CLOSE_BOUTS,
    FIRST_LOOKS,
    PATIENCE,
    TOTAL,
    Rule,
    looked_for,
    vain_at,
)
from opratchet.judge.duel import PROMISING, bearable, cost, size_for
from opratchet.judge.robust import FEWEST, TRIM, Centre
from opratchet.judge.spread import Spread

POWER = 0.9
HARDLY_EVER = 0.97
LARGE_QUANTILE = 30.0
LARGEST = 700.0  # of a logarithm: where nothing can be told, the figure is as good as infinite
FEW = 10.0  # degrees of freedom


@dataclass(frozen=True)
class Sampling:
    """What samples cost, and what one is worth.

    Attributes:
        pair_variance: Variance of one pair's log ratio, as the trimmed mean sees it.
        bout_seconds: Wall time to open a bout: two fresh processes, loaded and warmed.
        pair_seconds: Wall time of one pair.
    """

    pair_variance: float
    bout_seconds: float
    pair_seconds: float


@dataclass(frozen=True)
class ToldApart:
    """The smallest gain that is found with the power that was asked for.

    Attributes:
        gain: The gain, as a fraction.
        bouts: Pairs of processes after which it is found.
        pairs: Pairs of batches.
        seconds: Wall time until then.
    """

    gain: float
    bouts: int
    pairs: int
    seconds: float


def told_apart(
    rule: Rule, spread: Spread, sampling: Sampling, seconds: float, power: float = POWER
) -> ToldApart:
    """The smallest gain that the rule finds here.

    Args:
        rule: When a candidate counts as faster.
        spread: What fresh processes alone do to a timing.
        sampling: What samples cost, and what one is worth.
        seconds: Time limit of a comparison; one in which a gain shows may take `PROMISING` times as long.
        power: How often it has to be found, 0 to 1.
    """
    found: list[ToldApart] = []
    kept = 0.0
    for look in _looks(rule, spread, sampling, seconds):
        centre = spread.pooled(TOTAL, _typical(look, spread, sampling))
        gain = max(_needed(centre, look.bouts, rule, power), kept)
        found.append(
            ToldApart(math.expm1(min(gain, LARGEST)), look.bouts, look.all_pairs, look.seconds)
        )
        if look.bouts >= PATIENCE:
            kept = max(kept, _kept(centre, look, rule))
    return min(found, key=lambda one: one.gain)


@dataclass(frozen=True)
class _Look:
    """One look: bouts so far, pairs of the first and of each further one, wall time until then."""

    bouts: int
    first: int
    pairs: int
    seconds: float

    @property
    def all_pairs(self) -> int:
        return self.first + (self.bouts - 1) * self.pairs


def _looks(rule: Rule, spread: Spread, sampling: Sampling, seconds: float) -> Iterator[_Look]:
    """The looks that `duel` comes to within the time, where nothing ends it sooner."""
    enough = sampling.pair_variance / bearable(rule, spread)
    first = next((size for size in FIRST_LOOKS if size >= enough), FIRST_LOOKS[-1])
    pairs = size_for(enough)
    bout = sampling.bout_seconds + pairs * sampling.pair_seconds
    beyond = (first - pairs) * sampling.pair_seconds
    before = 1
    for bouts in (1, *BOUT_LOOKS):
        spent = before * bout + beyond
        foreseen = spent * cost(bouts, first, pairs) / cost(before, first, pairs)
        if bouts > 1 and foreseen > seconds * PROMISING:
            return
        yield _Look(bouts, first, pairs, bouts * bout + beyond)
        before = bouts


def _typical(look: _Look, spread: Spread, sampling: Sampling) -> list[Centre]:
    """Bouts around no difference that lie exactly as far apart as the noise makes them on average."""
    sizes = [look.first] + [look.pairs] * (look.bouts - 1)
    units = [sampling.pair_variance / size for size in sizes]
    places = np.linspace(-1.0, 1.0, look.bouts) if look.bouts > 1 else np.zeros(1)
    if look.bouts > 1:
        places *= math.sqrt((spread.variance(TOTAL) + np.mean(units)) / places.var(ddof=1))
    return [
        Centre(float(place), unit, _freedom(size))
        for place, unit, size in zip(places, units, sizes, strict=True)
    ]


def _freedom(pairs: int) -> int:
    """Degrees of freedom of the trimmed mean of so many pairs, taken by turns."""
    values = pairs // 2 if pairs // 2 >= FEWEST else pairs
    return values - 2 * int(TRIM * values) - 1


def _needed(centre: Centre, bouts: int, rule: Rule, power: float) -> float:
    """Log speed-up that wins at a look with this power."""
    from scipy.special import ndtri

    error = math.sqrt(centre.variance)
    if error == 0.0:
        return math.log1p(rule.minimum_effect)
    noncentral = noncentrality(centre.margin(rule.confidence) / error, centre.freedom, power)
    close = math.log(CLOSE) if bouts < CLOSE_BOUTS else 0.0
    worth = math.log1p(rule.minimum_effect) + float(ndtri(power)) * error
    return max(noncentral * error + close, worth)


def noncentrality(quantile: float, freedom: float, power: float) -> float:
    """Noncentrality at which Student's t exceeds a quantile with this power.

    For large quantiles the search for the exact figure does not end. There the estimated error is what counts: its
    distribution is exact for few degrees of freedom, where the rest does not matter, and close to normal for many.
    """
    from scipy.special import chdtri, nctdtrinc, ndtri

    if quantile <= LARGE_QUANTILE:
        return float(nctdtrinc(freedom, 1 - power, quantile))
    if freedom < FEW:
        return quantile * max(1.0, math.sqrt(float(chdtri(freedom, 1 - power)) / freedom))
    return quantile + float(ndtri(power)) * math.sqrt(1 + quantile**2 / (2 * freedom))


def _kept(centre: Centre, look: _Look, rule: Rule) -> float:
    """Log speed-up that is hardly ever given up at a look."""
    from scipy.special import ndtri

    hope = looked_for(centre, look.bouts, look.all_pairs, rule)
    error = math.sqrt(centre.variance)
    return min(hope, vain_at(centre.variance, hope) + float(ndtri(HARDLY_EVER)) * error)


def share_interval(hits: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share after C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413: never too narrow.

    Args:
        hits: How often it happened.
        total: Out of how many; with none, nothing is known and the interval is all of 0 to 1.
        confidence: Two-sided confidence.
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, total - hits, 1 - tail)) if hits < total else 1.0
    return low, high
