"""Gate 5: signs that a result is not what it seems, from what the supervisor sees itself.

- An input that changed: the kernel wrote where it must only read.
- An output element that still holds the poison: the kernel did not write all of it.
- The worker's clock against the supervisor's: the time a worker reports for a batch can never exceed the time that
  passed here, and may fall short of it only by what sending two messages costs. On a loaded machine that can be
  much, so the incumbent, timed in turns with the candidate, shows how much it is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MESSAGE_NS = 1_000_000
Clocks = tuple[int, int]


def changed_input(name: str, own: NDArray[Any], seen: NDArray[Any]) -> str:
    """Evidence that an input was changed, or an empty text."""
    differ = own.view(np.uint8) != seen.view(np.uint8)
    if not differ.any():
        return ""
    share = float(differ.any(axis=-1).mean()) if differ.ndim else 1.0
    return f"the kernel changed its input {name} ({share:.1%} of its rows)"


def unwritten_output(name: str, seen: NDArray[Any]) -> str:
    """Evidence that part of an output was not written, or an empty text."""
    words = np.ascontiguousarray(seen).view(np.uint8).reshape(-1, seen.dtype.itemsize)
    untouched = int((words == 0xFF).all(axis=1).sum())
    if not untouched:
        return ""
    return f"{untouched} of {seen.size} elements of {name} were not written"


def clocks_disagree(candidate: Sequence[Clocks], incumbent: Sequence[Clocks]) -> str:
    """Evidence that the candidate's worker lies about time, or an empty text.

    Args:
        candidate: For each batch of the candidate, the worker's and the supervisor's nanoseconds.
        incumbent: The same of the incumbent, taken in turns with it: how far honest clocks lie apart just now.
    """
    for worker_ns, supervisor_ns in candidate:
        if not 0 < worker_ns <= supervisor_ns:
            return f"the worker reports {worker_ns} ns for a batch that took {supervisor_ns} ns here"
    ours, theirs = _median_gap(candidate), _median_gap(incumbent)
    if ours <= 3 * theirs + MESSAGE_NS:
        return ""
    return (
        f"the worker leaves out {ours / 1e6:.2f} ms of each batch by the supervisor's clock; "
        f"the incumbent's, in turns with it, {theirs / 1e6:.2f} ms"
    )


def _median_gap(batches: Sequence[Clocks]) -> float:
    return float(np.median([supervisor_ns - worker_ns for worker_ns, supervisor_ns in batches]))
