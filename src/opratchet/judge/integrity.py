"""Gate 5: signs that a result is not what it seems, from what the supervisor sees itself.

- An input that changed: the kernel wrote where it must only read.
- An output element that still holds the poison: the kernel did not write all of it.
- Precision: where the typical element is off by much more than the signature's type explains, and than the incumbent is,
  the kernel computes in a smaller one, and only the absolute tolerance hides it.
- The worker's clock against the supervisor's: a worker cannot report more time for a batch than passed here, and the
  speed-up by its clock must not lie beyond the interval of the speed-up by the supervisor's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opratchet.ledger.words import Ratio

CLOCK_MARGIN = 1.05
LOOKED_AT = 1 << 16
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


def typical_error(expected: NDArray[Any], seen: NDArray[Any]) -> float:
    """Median relative error over the elements whose golden is finite and not zero, at most `LOOKED_AT` of them; 0 if none is.

    The median, as a few elements near zero may be far off relatively in any honest kernel.
    """
    step = max(1, expected.size // LOOKED_AT)
    want = expected.reshape(-1)[::step].astype(np.float64)
    got = seen.reshape(-1)[::step].astype(np.float64)
    usable = np.isfinite(want) & np.isfinite(got) & (want != 0)
    if not usable.any():
        return 0.0
    return float(np.median(np.abs(got[usable] / want[usable] - 1.0)))


def allowed_error(dtype: np.dtype[Any], rtol: float) -> float:
    """Typical relative error that nobody has to explain: well within the relative tolerance, or what the type itself rounds."""
    if dtype.kind != "f":
        return np.inf
    return max(rtol / 8, 16 * float(np.finfo(dtype).eps))


def impossible_clock(batches: Sequence[Clocks]) -> str:
    """Evidence that a worker reports more time than passed, or none at all; empty when there is none.

    Args:
        batches: For each batch, the worker's and the supervisor's nanoseconds.
    """
    for worker_ns, supervisor_ns in batches:
        if not 0 < worker_ns <= supervisor_ns:
            return (
                f"the worker reports {worker_ns} ns for a batch that took {supervisor_ns} ns here"
            )
    return ""


def clocks_disagree(by_worker: Ratio, by_supervisor: Ratio) -> str:
    """Evidence that the worker's clock makes the candidate look faster than it is, or an empty text.

    Both ratios are of the same batches. On a loaded machine the supervisor's is less exact, which its interval shows.
    """
    if by_worker.low <= by_supervisor.high * CLOCK_MARGIN:
        return ""
    return (
        f"{by_worker.value:.2f}x by the worker's clock, but {by_supervisor.value:.2f}x "
        f"[{by_supervisor.low:.2f}, {by_supervisor.high:.2f}] by the supervisor's"
    )
