"""How a comparison is sampled: bout after bout, until the answer is clear or the budget is spent.

The first bout goes on in the same processes while its own samples, not the state of its processes, are what leaves the answer
open; every further bout is a fresh pair of processes. Where samples come from does not matter here: a run and the
simulations that prove the error rates go through the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from opratchet.judge.decision import (
    BOUT_LOOKS,
    CLOSE_BOUTS,
    FIRST_LOOKS,
    PLAIN,
    TOTAL,
    Decision,
    Logs,
    Rule,
    Tally,
    Verdict,
    is_vain,
    judge,
)
from opratchet.judge.spread import Spread, within_variance

# Pairs of a further bout. Of the fewest, the trimmed mean keeps four; warming a pair of processes up costs more than the
# most, so that larger ones are not worth it.
SIZES = (6, 12, 24, 60)
CALIBRATION = 10  # bouts of the baseline against itself
# Standard error of a bout, as a part of the minimum effect, beyond which more samples in it are pointless.
FINE = 0.5
# What opening a pair of processes takes, in pairs: loading, sizing batches, warming up.
OPENING = 60
# How many times as long a comparison may take in which a gain shows.
PROMISING = 4.0


class Bout(Protocol):
    """One pair of fresh processes."""

    def take(self, pairs: int) -> Logs:
        """Time this many more pairs of each workload, in ABBA order: log ratios `ln(incumbent / candidate)`."""


Arena = Callable[[], AbstractContextManager[Bout]]
"""Opens a bout: starts both processes and warms them up until they are steady."""


def duel(
    arena: Arena,
    rule: Rule,
    spread: Spread,
    weights: Mapping[str, float],
    seconds: float = float("inf"),
) -> Decision:
    """Sample until the answer is clear. `spread` learns from what was seen.

    Args:
        arena: Where the two meet.
        rule: When a candidate counts as faster.
        spread: What fresh processes alone do to a timing here.
        weights: Weight of each workload in the aggregate.
        seconds: Wall time after which no bout is begun, as far as can be foreseen; `PROMISING` times as much where a gain
            shows, and a win is confirmed whatever that takes.
    """
    start = time.monotonic()
    decision, tally = _first(arena, rule, spread, weights)
    first, size = tally.pairs, size_for(_needed(tally, rule, spread))
    for look in BOUT_LOOKS:
        if decision.verdict is not None:
            break
        spent = time.monotonic() - start
        foreseen = spent * cost(look, first, size) / cost(tally.bouts, first, size)
        if foreseen > allowed(tally, spread, seconds) and not _is_winning(decision, look):
            break
        while tally.bouts < look and not is_vain(tally, rule, spread):
            with arena() as bout:
                tally.add(bout.take(size))
        decision = judge(tally, rule, spread)
        if tally.bouts < look:
            decision = _given_up(decision, rule)
    spread.learn(tally.units)
    if decision.verdict is None:
        return replace(decision, verdict=Verdict.INCONCLUSIVE)
    return decision


def cost(bouts: int, first: int, size: int) -> int:
    """What so many bouts take, counted in pairs: the first, further ones of a size, and the opening of each."""
    return first + (bouts - 1) * size + bouts * OPENING


def allowed(tally: Tally, spread: Spread, seconds: float) -> float:
    """The time for a comparison: longer where a gain shows by plain confidence and only has to be made sure of.

    How long is sampled decides nothing by itself, so that this costs no error.
    """
    shows = spread.pooled(TOTAL, tally.units[TOTAL]).interval(PLAIN)[0] > 0.0
    return seconds * PROMISING if shows else seconds


def _is_winning(decision: Decision, look: int) -> bool:
    """Whether all that keeps a win from counting is the number of bouts; these are taken whatever they take."""
    return decision.ratio.low > 1.0 and look <= CLOSE_BOUTS


def _given_up(decision: Decision, rule: Rule) -> Decision:
    """Between the looks nothing can be won, nor lost where a loss counts as much."""
    kept = {Verdict.TIE} if rule.two_sided else {Verdict.TIE, Verdict.SLOWER}
    verdict = decision.verdict if decision.verdict in kept else Verdict.INCONCLUSIVE
    return replace(decision, verdict=verdict)


def _first(
    arena: Arena, rule: Rule, spread: Spread, weights: Mapping[str, float]
) -> tuple[Decision, Tally]:
    """The first bout: sampled on while its samples are what leaves the answer open."""
    logs: dict[str, list[float]] = {name: [] for name in weights}
    with arena() as bout:
        for look in FIRST_LOOKS:
            more = bout.take(look - len(next(iter(logs.values()))))
            for name, values in more.items():
                logs[name] += values
            tally = Tally(weights)
            tally.add(logs)
            decision = judge(tally, rule, spread)
            if decision.verdict is not None or _needed(tally, rule, spread) <= look:
                break
    return decision, tally


def size_for(needed: float) -> int:
    """Pairs of a bout where so many would make its own error small: no more, as several bouts average that out too."""
    return max((size for size in SIZES if size <= needed), default=SIZES[0])


def _needed(first: Tally, rule: Rule, spread: Spread) -> float:
    """Pairs that make a bout's own error small against the spread of processes or the minimum effect: more are in vain."""
    return first.pairs * within_variance(first.units[TOTAL]) / bearable(rule, spread)


def bearable(rule: Rule, spread: Spread) -> float:
    """Variance of a bout's own samples that needs no more of them."""
    return max(spread.variance(TOTAL), spread.least(TOTAL), (FINE * rule.minimum_effect) ** 2)


def calibrate(
    arena: Arena, weights: Mapping[str, float], bouts: int = CALIBRATION
) -> tuple[Spread, Tally]:
    """Learn the spread of fresh processes from one version against itself."""
    tally = Tally(weights)
    for _ in range(bouts):
        with arena() as bout:
            tally.add(bout.take(FIRST_LOOKS[0]))
    spread = Spread()
    spread.learn(tally.units)
    return spread, tally
