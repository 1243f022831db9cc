"""The one average over workloads: the weighted geometric mean.

Of ratios and latencies only the geometric mean says the same whichever side is the reference: the mean of
`a / b` is one over the mean of `b / a`, and the ratio of two means is the mean of the ratios (P. J. Fleming,
J. J. Wallace, "How not to lie with statistics: the correct way to summarize benchmark results",
Communications of the ACM 29(3), 1986). Every view that averages over workloads does it here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def geometric_mean(values: Iterable[float], weights: Iterable[float] | None = None) -> float:
    """Weighted geometric mean, `exp(sum(w * ln(v)) / sum(w))`, in the unit of the values.

    Args:
        values: At least one, each positive and finite.
        weights: One for each value, each positive and finite; only their proportions count. Without them all
            values count alike.

    Raises:
        ValueError: there is no value, one is not positive and finite, or the weights do not match: an impossible
            figure is never averaged away.
    """
    numbers = list(values)
    shares = [1.0] * len(numbers) if weights is None else list(weights)
    if not numbers or len(shares) != len(numbers):
        raise ValueError(f"{len(numbers)} values and {len(shares)} weights have no mean")
    for number in (*numbers, *shares):
        if not 0 < number < math.inf:
            raise ValueError(f"{number} has no place in a geometric mean")
    # By the largest first, so that no sum of weights overflows; the smallest may vanish, as they should.
    largest = max(shares)
    shares = [share / largest for share in shares]
    terms = (share * math.log(number) for share, number in zip(shares, numbers, strict=True))
    return math.exp(math.fsum(terms) / math.fsum(shares))
