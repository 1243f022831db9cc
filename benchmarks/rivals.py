"""What the decision is held against on simulated machines: the rules of plain tuners, and rules of a fixed size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from opratchet.judge.robust import by_turns, trimmed
from tests.judge.machines import MODELS, NAME, Machine, Noise

TEN = 10
SIGNS = 3  # pairs of the sign test
TRIMMED = 12  # pairs from which on a bout's centre is a trimmed mean; of fewer it is the mean
PAIRS = (1, 4, 12, 24, 60, 150)
BOUTS = 4000  # from which the spread of bouts is estimated
BOUTS_A_TRIAL = 10  # of those: how many under the same load


def ten_each(machine: Machine, gain: float) -> dict[str, bool]:
    """Rules that time ten calls of the incumbent in one process, then ten of the candidate in another.

    The first call counts, as it does in tuners without a warm-up.

    Returns:
        Whether each rule adopts.
    """
    theirs = np.exp(machine.alone(0.0, TEN))
    ours = np.exp(machine.alone(-math.log1p(gain), TEN))
    by_mean = theirs.mean() / ours.mean()
    return {
        "keep if faster (mean of 10)": bool(by_mean > 1.0),
        "1 % rule (mean of 10)": bool(by_mean > 1.01),
        "3 % rule (median of 10)": bool(np.median(theirs) / np.median(ours) > 1.03),
    }


def sign_test(machine: Machine, gain: float) -> dict[str, bool]:
    """Both alive in their processes, one call each that does not count, then three pairs in the order AB.

    Adopts where all pairs favour the candidate and their median is a gain of over 1 %.
    """
    apart = machine.process() - machine.process() + math.log1p(gain)
    machine.times(2)
    taken = machine.times(2 * SIGNS)
    logs = taken[::2] - taken[1::2] + apart
    adopts = bool(logs.min() > 0.0 and np.median(logs) > math.log(1.01))
    return {"sign test (3 pairs)": adopts}


PLAIN = {
    "keep if faster (mean of 10)": 2 * TEN,
    "1 % rule (mean of 10)": 2 * TEN,
    "3 % rule (median of 10)": 2 * TEN,
    "sign test (3 pairs)": 2 * SIGNS + 2,
}
"""The plain rules, and the calls that a trial of each takes."""


@dataclass(frozen=True)
class Bouts:
    """What bouts of a size are like on a machine.

    Attributes:
        pairs: Pairs of a bout.
        sd: Standard deviation of their centres.
        calls: Calls that a bout takes, warm-up of both processes included.
    """

    pairs: int
    sd: float
    calls: float


def bouts_of(noise: Noise, pairs: int, seed: int, count: int = BOUTS) -> Bouts:
    """Bouts of two equal versions; every other one begins with the candidate, which cancels a drift for a single pair."""
    centres = []
    machine = Machine(noise, seed)
    for index in range(count):
        if index % BOUTS_A_TRIAL == 0:
            machine.begin_trial()
        with machine.bout(0.0) as bout:
            logs = bout.take(pairs)[NAME]
        centre = trimmed(by_turns(logs)).value if pairs >= TRIMMED else float(np.mean(logs))
        centres.append(centre if index % 2 else -centre)
    return Bouts(pairs, float(np.std(centres, ddof=1)), machine.calls / count)


@dataclass(frozen=True)
class Fixed:
    """A rule of a fixed size: so many bouts, and the mean of their centres over its true standard error above a limit.

    Attributes:
        bouts: Pairs of fresh processes a trial.
        pairs: Pairs of timings a bout.
    """

    bouts: int
    pairs: int

    def calls(self, kinds: Bouts) -> float:
        """Calls a trial."""
        return self.bouts * kinds.calls

    def adopts(self, kinds: Bouts, gain: float, error: float) -> float:
        """Chance that a true gain is adopted, where a trial may adopt nothing with the chance `error`."""
        shift = math.log1p(gain) * math.sqrt(self.bouts) / kinds.sd
        return float(ndtr(shift + ndtri(error)))


def smallest(kinds: Bouts, gain: float, power: float, error: float) -> Fixed:
    """The fewest bouts that find a gain so often."""
    wanted = (float(ndtri(power) - ndtri(error)) * kinds.sd / math.log1p(gain)) ** 2
    return Fixed(max(1, math.ceil(wanted)), kinds.pairs)


Census = Mapping[str, Mapping[int, Bouts]]
"""Bouts by model and their number of pairs."""


def census(seed: int) -> Census:
    """Bouts of every size on every model."""
    return {
        model: {pairs: bouts_of(noise, pairs, seed) for pairs in PAIRS}
        for model, noise in MODELS.items()
    }


def cheapest(known: Mapping[int, Bouts], gain: float, power: float, error: float) -> Fixed:
    """The cheapest rule for one machine that is known beforehand."""
    rules = [smallest(kinds, gain, power, error) for kinds in known.values()]
    return min(rules, key=lambda rule: rule.calls(known[rule.pairs]))


def cheapest_for_all(
    known: Census, wanted: Mapping[str, tuple[float, float]], error: float
) -> Fixed:
    """The rule of the least calls, on average over the machines, that is enough on every one of them.

    Args:
        known: Bouts of every machine.
        wanted: Gain and the share of it to be found, by machine.
        error: Chance of a trial to adopt nothing.
    """

    def enough(pairs: int) -> Fixed:
        each = [smallest(known[model][pairs], *wanted[model], error) for model in known]
        return Fixed(max(rule.bouts for rule in each), pairs)

    def calls(rule: Fixed) -> float:
        return sum(rule.calls(of[rule.pairs]) for of in known.values())

    return min((enough(pairs) for pairs in PAIRS), key=calls)


class PlainTuners:
    """The plain rules on machines of one seed.

    Args:
        noise: How the machines disturb timings.
        seed: Their seed.
    """

    def __init__(self, noise: Noise, seed: int) -> None:
        self.for_ten = Machine(noise, seed)
        self.for_signs = Machine(noise, seed)

    def trial(self, gain: float) -> dict[str, bool]:
        """Whether each rule adopts in the next trial."""
        self.for_ten.begin_trial()
        self.for_signs.begin_trial()
        return ten_each(self.for_ten, gain) | sign_test(self.for_signs, gain)
