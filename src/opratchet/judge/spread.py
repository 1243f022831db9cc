"""How much a fresh process alone moves a timing here.

The same binary can be some per cent faster or slower for the life of a process, because of where its memory and its
code happen to lie. No number of samples within one pair of processes tells this from a gain, so the process is the unit
of every interval. But two or three processes alone tell little of their own spread: a Student interval on two degrees
of freedom is worthless at the confidence that is needed, and wrong where processes know only two states. The spread is a
property of the machine and the operator, so it is learned once, from the baseline against itself in several fresh pairs of
processes, and from every trial that took more than one pair since; all of them are pooled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opratchet.judge.robust import Centre
from opratchet.ledger.words import Variance

# An own spread is believed against the pooled one where chance makes so large a one so rarely.
SURPRISE = 0.025
# Standard errors of the spread that a variance holds at least.
LEAST_SURE = 3.0


@dataclass
class Spread:
    """Pooled variance between pairs of processes of a log ratio, beyond what their samples explain.

    Attributes:
        excess: Sum of weights times variance, by workload and for the aggregate.
        freedom: Sum of the weights: degrees of freedom, fewer where a comparison was noisier than most.
        doubt: Sum of weights times the square of the whole variance, that of the samples included.
    """

    excess: dict[str, float] = field(default_factory=dict)
    freedom: dict[str, float] = field(default_factory=dict)
    doubt: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Mapping[str, Variance]) -> Spread:
        """The spread that a ledger holds."""
        known = record.items()
        return cls(
            {name: part.excess for name, part in known},
            {name: part.freedom for name, part in known},
            {name: part.doubt for name, part in known},
        )

    def record(self) -> dict[str, Variance]:
        """As it is written to the ledger."""
        return {
            name: Variance(excess=excess, freedom=self.freedom[name], doubt=self.doubt[name])
            for name, excess in self.excess.items()
        }

    def learn(self, centres: Mapping[str, Sequence[Centre]]) -> None:
        """Take in one comparison: its pairs of processes by workload.

        The spread is what is left of a difference, and the noisier the samples, the less it says: a comparison that is
        noisier than those before it counts less, by the ratio of their variances squared. What decides that must not
        be the comparison's own spread, or it would be small spreads that count.
        """
        for name, units in centres.items():
            if len(units) < 2:
                continue
            own, within = own_variance(units), within_variance(units)
            known = self.freedom.get(name, 0.0)
            weight, whole = float(len(units) - 1), max(own, within)
            if known:
                whole = self.variance(name) + within
                usual = math.sqrt(self.doubt[name] / known)
                weight *= min(1.0, usual / whole) ** 2 if whole else 1.0
            self.excess[name] = self.excess.get(name, 0.0) + weight * (own - within)
            self.freedom[name] = known + weight
            self.doubt[name] = self.doubt.get(name, 0.0) + weight * whole**2

    def variance(self, name: str) -> float:
        """Variance that a fresh pair of processes adds to a log ratio; not below zero."""
        known = self.freedom.get(name, 0.0)
        return max(0.0, self.excess[name] / known) if known else 0.0

    def least(self, name: str) -> float:
        """Variance that one pair of processes is taken to have at least: `LEAST_SURE` standard errors of the spread."""
        return LEAST_SURE * self._uncertainty(name)

    def _uncertainty(self, name: str) -> float:
        known = self.freedom.get(name, 0.0)
        return math.sqrt(self.doubt[name]) / known if known else 0.0

    def pooled(self, name: str, units: Sequence[Centre]) -> Centre:
        """Mean over pairs of processes, its variance and degrees of freedom.

        The variance of a pair of processes is expected to be the pooled spread plus what its samples explain, with the
        degrees of freedom of F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114. The spread is as uncertain as the
        whole variances that it was learned from, however small it came out; where samples say much more than that, the
        variance is taken to be `LEAST_SURE` times that uncertainty. What the pairs at hand differ from one another is pooled
        with that. Where they differ more than chance allows, or nothing is known
        yet, only their own variance counts.
        """
        value = float(np.mean([unit.value for unit in units]))
        variance, freedom = self._expected(name, units)
        if len(units) > 1:
            own, own_freedom = own_variance(units), len(units) - 1
            if _surprising(own, own_freedom, variance, freedom):
                variance, freedom = own, own_freedom
            else:
                both = freedom + own_freedom
                variance, freedom = (freedom * variance + own_freedom * own) / both, both
        return Centre(value, variance / len(units), freedom)

    def _expected(self, name: str, units: Sequence[Centre]) -> tuple[float, float]:
        """Variance of one pair of processes, and its degrees of freedom; none before anything was learned."""
        known = self.freedom.get(name, 0.0)
        between, within = self.variance(name), within_variance(units)
        if not known or between + within == 0.0:
            return 0.0, known
        inner = sum(unit.freedom for unit in units)
        # A variance may be taken too large; one known on less than one degree of freedom says nothing at all.
        total = max(between + within, self.least(name))
        # Squares of variances would underflow where a sample hardly varies.
        of_spread, of_samples = self._uncertainty(name) / total, within / total
        return total, 1.0 / (of_spread * of_spread + of_samples * of_samples / inner)


def own_variance(units: Sequence[Centre]) -> float:
    """Variance of the centres of several pairs of processes."""
    return float(np.var([unit.value for unit in units], ddof=1))


def within_variance(units: Sequence[Centre]) -> float:
    """Mean variance of the centres as far as their own samples explain it."""
    return float(np.mean([unit.variance for unit in units]))


def _surprising(own: float, own_freedom: float, expected: float, freedom: float) -> bool:
    """Whether a variance is larger than chance makes it where another one is the truth (F test)."""
    from scipy.special import fdtri

    if not freedom or expected == 0.0:
        return True
    return own > expected * float(fdtri(own_freedom, freedom, 1 - SURPRISE))
