"""Gate 4: the comparison of an output with its golden, in float64, in chunks, by the supervisor.

An element passes when `|actual - expected| <= atol + rtol * |expected|`, the rule of `numpy.isclose` and
`torch.testing.assert_close`. NaN equals nothing unless the golden has NaN in the same place, and an infinity passes
only where the golden has the same infinity: otherwise a kernel could win by writing values that compare with nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opratchet.ledger.words import Accuracy
from opratchet.operator.model import Tolerance

CHUNK = 1 << 20
Array = NDArray[Any]


@dataclass
class _Tally:
    """Running result over the chunks."""

    bad: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: int = 0
    worst_excess: float = -np.inf


def compare(
    expected: Array, actual: Array, tolerance: Tolerance, *, workload: str = "", output: str = ""
) -> Accuracy:
    """Compare one output with its golden.

    Args:
        expected: The golden, any shape.
        actual: The output, the same shape.
        tolerance: Tolerance of its dtype.
        workload: Workload id, for the record.
        output: Tensor name, for the record.

    Raises:
        ValueError: the shapes differ.
    """
    if expected.shape != actual.shape:
        raise ValueError(f"shapes differ: {expected.shape} and {actual.shape}")
    tally = _Tally()
    flat_expected, flat_actual = expected.reshape(-1), actual.reshape(-1)
    for start in range(0, flat_expected.size, CHUNK):
        part = slice(start, start + CHUNK)
        _tally_chunk(tally, start, flat_expected[part], flat_actual[part], tolerance)
    worst = np.unravel_index(tally.worst, expected.shape) if expected.size else ()
    return Accuracy(
        workload=workload,
        output=output,
        passed=tally.bad == 0,
        max_abs=tally.max_abs,
        max_rel=tally.max_rel,
        worst_index=tuple(int(index) for index in worst),
        out_of_tolerance=tally.bad / max(1, expected.size),
        rtol=tolerance.rtol,
        atol=tolerance.atol,
    )


def _tally_chunk(
    tally: _Tally, start: int, expected: Array, actual: Array, tolerance: Tolerance
) -> None:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        want, got = expected.astype(np.float64), actual.astype(np.float64)
        error = np.abs(got - want)
        size = np.abs(want)
        if not np.isfinite(error).all():
            _settle_nonfinite(error, size, want, got)
        relative = np.divide(error, size, out=np.zeros_like(error), where=size > 0)
    excess = error - (tolerance.atol + tolerance.rtol * size)
    worst = int(np.argmax(excess))
    if excess[worst] > tally.worst_excess:
        tally.worst_excess, tally.worst = float(excess[worst]), start + worst
    tally.bad += int(np.count_nonzero(excess > 0))
    tally.max_abs = max(tally.max_abs, float(error.max()))
    tally.max_rel = max(tally.max_rel, float(relative.max()))


def _settle_nonfinite(error: Array, size: Array, want: Array, got: Array) -> None:
    """NaN and infinities: equal in the same place means no error, anything else an infinite one."""
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    error[same] = 0.0
    error[np.isnan(error) | (~same & ~np.isfinite(want))] = np.inf
    size[~np.isfinite(want)] = 0.0
