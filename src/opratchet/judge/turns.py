"""Whether one of two commands is faster, where every run is a process of its own.

The commands run in the order ABBA, and each such *turn* gives one log ratio `ln(a / b)`, the mean of its two pairs. No two turns
share a process, so each is one independent unit: the state that a process has for its life is in the spread of the
turns already, and nothing has to be learned beforehand.

The centre is the trimmed mean of the turns (`robust`), with less cut off than within one pair of processes: a turn is a mean
itself, and where processes know two states the turns take five values only, whose tails are no accident. Cutting 20 % of these
makes the interval too narrow. The fewest turns are not trimmed at all: of six it would leave four, which agree by chance
in one case of a hundred; all six do so in one of two thousand.

Each look at the data is one chance to be wrong; the error is divided evenly over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from opratchet.judge.decision import Decision, Rule, Verdict, ratio_of, verdict_of
from opratchet.judge.robust import trimmed

# Turns after which the data are looked at.
LOOKS = (6, 12, 24, 48, 96, 192)
PAIRS_A_TURN = 2
TRIM = 0.1


def looks_until(most: int) -> tuple[int, ...]:
    """The looks where there may be at most `most` turns.

    Raises:
        ValueError: that is fewer than the fewest that can be judged.
    """
    if most < LOOKS[0]:
        raise ValueError(f"{most} turns are too few to judge; the fewest are {LOOKS[0]}")
    return (*(look for look in LOOKS if look < most), most)


def judge_turns(turns: Iterator[float], rule: Rule, looks: Sequence[int]) -> Decision | None:
    """Sample until the answer is clear.

    Args:
        turns: Log ratios `ln(a / b)`. Where it ends early, because time is up, what it gave is looked at once more.
        rule: When B counts as faster; its error is divided over the looks.
        looks: Numbers of turns after which the data are looked at.

    Returns:
        The answer, or None when there were fewer turns than can be judged.
    """
    taken: list[float] = []
    decision: Decision | None = None
    for look in looks:
        taken += islice(turns, look - len(taken))
        if len(taken) < LOOKS[0]:
            return None
        decision = at_look(taken, rule, len(looks))
        if decision.verdict is not None:
            return decision
        if len(taken) < look:
            break
    return replace(decision, verdict=Verdict.INCONCLUSIVE) if decision else None


def at_look(taken: Sequence[float], rule: Rule, looks: int) -> Decision:
    """The answer at one of so many looks."""
    mean = trimmed(taken, TRIM)
    pairs = PAIRS_A_TURN * len(taken)
    confidence = 1.0 - 2.0 * rule.run_error / (rule.trials * looks)
    ratio = ratio_of(mean, pairs, pairs, confidence)
    hope = math.log1p(rule.worthwhile)
    return Decision(verdict_of(ratio, mean, (), rule, hope), ratio, {})
