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
        seconds: Wall time after which no bout is begun, as far as can be foreseen; but a win is confirmed.
    """
    start = time.monotonic()
    decision, tally = _first(arena, rule, spread, weights)
    size = _size(tally, rule, spread)
    for look in BOUT_LOOKS:
        foreseen = (time.monotonic() - start) / tally.bouts * look
        if decision.verdict is not None or (foreseen > seconds and not _is_winning(decision, look)):
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


def _size(first: Tally, rule: Rule, spread: Spread) -> int:
    """Pairs of each further bout."""
    return size_for(_needed(first, rule, spread))


def size_for(needed: float) -> int:
    """Pairs of a bout where so many would make its own error small: no more, as several bouts average that out too."""
    return max((size for size in SIZES if size <= needed), default=SIZES[0])


def _needed(first: Tally, rule: Rule, spread: Spread) -> float:
    """Pairs that make a bout's own error small against the spread of processes or the minimum effect: more are in vain."""
    within = within_variance(first.units[TOTAL])
    bearable = max(spread.variance(TOTAL), (FINE * rule.minimum_effect) ** 2)
    return first.pairs * within / bearable


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
