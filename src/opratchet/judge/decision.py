"""Gate 6: whether a candidate is faster, from what several pairs of fresh processes say.

A *bout* is one pair of processes, incumbent and candidate, alive side by side on one CPU and timed in turns (ABBA). It gives
log ratios `ln(incumbent / candidate)`; their trimmed mean (`robust`) is one unit. The interval of the speed-up comes from
the units and from how much a fresh process alone moves a timing here (`spread`).

Noise and worth are two questions. *Faster* means that the interval lies above 1, which is about noise, and that the centre
is at least the minimum effect, which is about what is worth a change. A win or loss that process states could feign, one
within `CLOSE`, counts only after `CLOSE_BOUTS` bouts.

Sampling looks at the data after a growing number of pairs and bouts (`duel`). Each look is one chance to be wrong, and so
is each trial of a run: the error allowed to a whole run is divided evenly over both (Bonferroni), so that the chance that
a run adopts anything that is not faster stays under that bound.

What ends a comparison without a win costs power, not error, so it may be looked at after every bout. A comparison is given
up where the data speak `1 / GIVE_UP` times as much for no gain as for the gain that is looked for: a true one is then given up
with a chance of at most `GIVE_UP`, however often one looks (A. Wald, "Sequential tests of statistical hypotheses", Annals of
Mathematical Statistics 16 (1945) 117-186). What is looked for is a worthwhile gain, or on a machine so noisy that about `PAIRS`
pairs do not show that, one that they do show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from opratchet.judge.robust import Centre, by_turns, trimmed
from opratchet.judge.spread import Spread
from opratchet.ledger.words import Ratio

# Pairs after which the first bout is looked at, and numbers of bouts after which all of them are.
FIRST_LOOKS = (24, 60, 150)
BOUT_LOOKS = (2, 4, 6, 9, 14, 21, 32, 48, 72, 108, 160, 240)
LOOKS = len(FIRST_LOOKS) + len(BOUT_LOOKS)
# States of a process are 3 to 5 % apart, so that a pair of processes can feign a little over 10 %.
CLOSE = 1.15
CLOSE_BOUTS = 6
# From this many bouts on, a comparison that will not find the gain that is looked for is given up.
PATIENCE = 2
GIVE_UP = 0.05
PAIRS = 2000
PLAIN = 0.95
DOUBTLESS = 0.99

TOTAL = ""  # key of the aggregate over the workloads

Logs = Mapping[str, Sequence[float]]


class Verdict(str, Enum):
    """What the bouts say of the candidate against the incumbent.

    `TIE`: any difference is smaller than the minimum effect. `BLOCKED`: faster over all workloads, slower on one.
    `INCONCLUSIVE`: nothing of this could be told.
    """

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    BLOCKED = "blocked"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Rule:
    """When a candidate counts as faster.

    Attributes:
        minimum_effect: Smallest gain worth a change, as a fraction; apart from noise.
        run_error: Chance allowed to a whole run to adopt anything that is not faster.
        trials: How many comparisons the run may hold, over which `run_error` is divided.
        worthwhile: Gain, as a fraction, that is looked for as long as the data leave it possible, on a machine where it
            can be shown; what can only be smaller is given up sooner.
        two_sided: Whether it matters how much slower the candidate is. A run only asks whether it is faster.
    """

    minimum_effect: float = 0.01
    run_error: float = 0.01
    trials: int = 100
    worthwhile: float = 0.03
    two_sided: bool = False

    @property
    def confidence(self) -> float:
        """Two-sided confidence of the interval at each look."""
        return 1.0 - 2.0 * self.run_error / (self.trials * LOOKS)


@dataclass(frozen=True)
class Decision:
    """The answer with its figures.

    Attributes:
        verdict: The answer; None asks for more samples.
        ratio: Aggregate speed-up over the workloads (weighted geometric mean).
        ratios: Speed-up by workload.
        slower: Workloads on which the candidate is credibly slower.
    """

    verdict: Verdict | None
    ratio: Ratio
    ratios: dict[str, Ratio]
    slower: tuple[str, ...] = ()


class Tally:
    """What the bouts of one comparison gave so far: a centre for each bout, by workload and for the aggregate.

    Args:
        weights: Weight of each workload in the aggregate.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self.units: dict[str, list[Centre]] = {name: [] for name in (TOTAL, *weights)}
        self.pairs = 0

    @property
    def bouts(self) -> int:
        """Pairs of processes so far."""
        return len(self.units[TOTAL])

    def add(self, logs: Logs) -> None:
        """Take in a bout: log ratios by workload, in ABBA order."""
        turns = {name: by_turns(logs[name]) for name in self.weights}
        for name, values in turns.items():
            self.units[name].append(trimmed(values))
        alone = len(turns) == 1
        total = (
            self.units[next(iter(turns))][-1] if alone else trimmed(aggregate(turns, self.weights))
        )
        self.units[TOTAL].append(total)
        self.pairs += len(next(iter(logs.values())))


def aggregate(logs: Logs, weights: Mapping[str, float]) -> list[float]:
    """Logarithms of the weighted geometric mean over the workloads, turn by turn.

    Raises:
        ValueError: the workloads differ in their number of turns.
    """
    rows = np.asarray([logs[name] for name in weights], dtype=np.float64)
    shares = np.asarray(list(weights.values()), dtype=np.float64)
    return [float(x) for x in shares @ rows / shares.sum()]


def ratio_of(centre: Centre, pairs: int, bouts: int, confidence: float) -> Ratio:
    """A centre of log ratios as a speed-up factor with its interval."""
    low, high = centre.interval(confidence)
    return Ratio(
        value=math.exp(centre.value),
        low=math.exp(max(low, -_LARGEST)),
        high=math.exp(min(high, _LARGEST)),
        pairs=pairs,
        processes=bouts,
        confidence=confidence,
    )


_LARGEST = 700.0  # e^700 is still a number: where nothing is known, the interval is as good as open


def judge(tally: Tally, rule: Rule, spread: Spread) -> Decision:
    """The answer at one look.

    Args:
        tally: What the bouts gave.
        rule: When a candidate counts as faster.
        spread: What fresh processes alone do to a timing here.
    """
    means = {name: spread.pooled(name, found) for name, found in tally.units.items()}
    ratios = {
        name: ratio_of(mean, tally.pairs, tally.bouts, rule.confidence)
        for name, mean in means.items()
    }
    total = ratios.pop(TOTAL)
    # Where both sides count alike, a loss has to be worth as much as a gain.
    worth = math.log1p(rule.minimum_effect) if rule.two_sided else 0.0
    slower = tuple(n for n, r in ratios.items() if _settled(r) < 0 and means[n].value <= -worth)
    hope = looked_for(means[TOTAL], tally.bouts, tally.pairs, rule)
    verdict = verdict_of(total, means[TOTAL], slower, rule, hope)
    doubtful = any(means[name].interval(PLAIN)[1] < -worth for name in ratios)
    if verdict is Verdict.FASTER and doubtful:
        # A workload that is probably slower is no win, whatever the others gain: sample on until that is clear.
        verdict = None
    return Decision(verdict, total, ratios, slower)


def looked_for(mean: Centre, bouts: int, pairs: int, rule: Rule) -> float:
    """Logarithm of the gain that is looked for: one worthwhile, or the smallest that `PAIRS` pairs show, if that is more."""
    from scipy.special import ndtri

    error = math.sqrt(mean.variance * min(float(bouts), pairs / PAIRS))
    errors = float(ndtri((1 + rule.confidence) / 2) + ndtri(1 - GIVE_UP))
    return max(math.log1p(rule.worthwhile), errors * error)


def is_vain(tally: Tally, rule: Rule, spread: Spread) -> bool:
    """Whether to give a comparison up; may be asked after every bout."""
    mean = spread.pooled(TOTAL, tally.units[TOTAL])
    return _is_given_up(mean, tally.bouts, rule, looked_for(mean, tally.bouts, tally.pairs, rule))


def _is_given_up(mean: Centre, units: int, rule: Rule, hope: float) -> bool:
    found = abs(mean.value) if rule.two_sided else mean.value
    return units >= PATIENCE and found <= vain_at(mean.variance, hope)


def vain_at(variance: float, hope: float) -> float:
    """The mean at which the data are `1 / GIVE_UP` times as likely without any gain as with the one that is looked for."""
    return hope / 2 + math.log(GIVE_UP) * variance / hope


def verdict_of(
    total: Ratio, mean: Centre, slower: Sequence[str], rule: Rule, hope: float
) -> Verdict | None:
    """The verdict that an interval gives; None asks for more samples.

    Args:
        total: Aggregate speed-up with its interval.
        mean: The same as a centre of log ratios.
        slower: Workloads on which the candidate is credibly slower.
        rule: When a candidate counts as faster.
        hope: Logarithm of the gain that is looked for.
    """
    worth = math.log1p(rule.minimum_effect)
    if slower:
        # Neither is adopted, so plain confidence is enough to tell which it is.
        return Verdict.BLOCKED if mean.interval(DOUBTLESS)[0] > 0.0 else Verdict.SLOWER
    side = _settled(total)
    if side and abs(mean.value) >= worth:
        return Verdict.FASTER if side > 0 else Verdict.SLOWER
    low, high = mean.interval(PLAIN)
    if high < worth and (low > -worth or not rule.two_sided):
        # A run rolls a loss back whatever it is called, so its name needs no more than plain confidence.
        is_loss = not rule.two_sided and mean.interval(DOUBTLESS)[1] < 0.0
        return Verdict.SLOWER if is_loss else Verdict.TIE
    return Verdict.INCONCLUSIVE if _is_given_up(mean, total.processes, rule, hope) else None


def _settled(ratio: Ratio) -> int:
    """1 where a ratio is credibly above 1, -1 where it is below, 0 where that is open, or could be the state of a process."""
    far = ratio.low > CLOSE or ratio.high < 1 / CLOSE
    if not far and ratio.processes < CLOSE_BOUTS:
        return 0
    return (ratio.low > 1.0) - (ratio.high < 1.0)
