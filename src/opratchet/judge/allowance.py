"""How the error allowed to a whole run is shared by its comparisons when its limits are changed on the way.

A run divides the error (`Rule.run_error`) evenly over all the comparisons it may hold, so that the chance that it adopts
anything that is not faster stays under that bound. When `resume` raises the limit, what was compared has used up its shares;
the rest of the error is divided over the comparisons that may still come. The total stays what it was.

Only comparisons use the error up. A candidate that was never timed could not be adopted by mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

from opratchet.ledger.events import Line, RunResumed, RunStarted
from opratchet.ledger.state import RunState, apply


@dataclass(frozen=True)
class Stretch:
    """A run as it stood at its start, or when it was resumed.

    Attributes:
        compared: Comparisons that had been made.
        to_come: Comparisons that could still be made under the limits that held from there on.
    """

    compared: int
    to_come: int


def stretches(lines: Iterable[Line]) -> list[Stretch]:
    """The start and each resumption of a recorded run."""
    state, found = RunState(), []
    for line in lines:
        apply(state, line)
        if isinstance(line.event, RunStarted | RunResumed):
            found.append(Stretch(_compared(state), _to_come(state)))
    return found


def _compared(state: RunState) -> int:
    timed = sum(trial.ratio is not None for trial in state.trials.values())
    return timed + len(state.passed)


def _to_come(state: RunState) -> int:
    """What the limit of experiments leaves; a round that was interrupted is finished even beyond the limit."""
    left = int(state.options["max_experiments"]) - state.experiments - len(state.passed)
    current = state.open_round
    if current is None:
        return max(left, 0)
    settled = {t.edit for t in current.trials if not t.is_open or t.number in state.passed}
    return max(left, len(set(current.planned) - settled))


def trials_for(run: Sequence[Stretch]) -> int | None:
    """The number by which the run's whole error is to be divided for each comparison of the last stretch.

    A stretch never gets a larger share a comparison than the one before it: what a lowered limit sets free is kept for
    later.

    Args:
        run: Its start and each resumption, in order.

    Returns:
        At least 1; None when the shares are used up, so that nothing may be adopted any more.
    """
    left = Fraction(1)
    divisor = max(run[0].to_come, 1)
    for before, now in pairwise(run):
        left -= Fraction(now.compared - before.compared, divisor)
        if left <= 0:
            return None
        divisor = max(divisor, ceil(now.to_come / left))
    return divisor
