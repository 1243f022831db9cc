"""The comparison with the golden: what passes, what does not, and what it says of the worst element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opratchet.judge import accuracy
from opratchet.judge.accuracy import compare
from opratchet.operator.model import Tolerance

TOLERANCE = Tolerance(rtol=1e-4, atol=1e-4)
ANY = st.floats(width=32, allow_nan=True, allow_infinity=True)


def test_within_tolerance_passes_and_reports_the_worst_element() -> None:
    expected = np.ones((2, 3), np.float32)
    actual = expected.copy()
    actual[1, 2] += 1.5e-4
    result = compare(expected, actual, TOLERANCE, workload="w", output="Y")
    assert result.passed
    assert result.worst_index == (1, 2)
    assert result.max_abs == pytest.approx(1.5e-4, rel=1e-2)


def test_out_of_tolerance_fails_with_its_share() -> None:
    expected = np.zeros(1000, np.float32)
    actual = expected.copy()
    actual[10:20] = 1.0
    result = compare(expected, actual, TOLERANCE)
    assert not result.passed
    assert result.out_of_tolerance == pytest.approx(0.01)
    assert 10 <= result.worst_index[0] < 20


@pytest.mark.parametrize(
    ("expected", "actual", "passes"),
    [
        (np.nan, np.nan, True),
        (np.nan, 0.0, False),
        (0.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.inf, 1e30, False),
        (1.0, np.inf, False),
        (-np.inf, np.nan, False),
    ],
)
def test_nan_and_infinity_are_no_wildcards(expected: float, actual: float, passes: bool) -> None:
    result = compare(np.array([1.0, expected]), np.array([1.0, actual]), TOLERANCE)
    assert result.passed is passes
    if not passes:
        assert result.worst_index == (1,)


def test_a_shape_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        compare(np.zeros((2, 3)), np.zeros((3, 2)), TOLERANCE)


@given(arrays(np.float32, st.integers(1, 40), elements=ANY), st.integers(1, 9))
def test_the_size_of_the_chunks_changes_nothing(values: np.ndarray, chunk: int) -> None:
    actual = np.roll(values, 1)
    whole = compare(values, actual, TOLERANCE)
    before, accuracy.CHUNK = accuracy.CHUNK, chunk
    try:
        assert compare(values, actual, TOLERANCE) == whole
    finally:
        accuracy.CHUNK = before


@given(arrays(np.float32, st.integers(1, 40), elements=ANY))
def test_anything_equals_itself(values: np.ndarray) -> None:
    result = compare(values, values.copy(), TOLERANCE)
    assert result.passed
    assert result.max_abs == 0.0


@given(
    arrays(np.float64, 8, elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 8, elements=st.floats(-1e6, 1e6)),
)
def test_it_agrees_with_numpy_on_finite_values(expected: np.ndarray, actual: np.ndarray) -> None:
    result = compare(expected, actual, TOLERANCE)
    near = np.isclose(actual, expected, rtol=TOLERANCE.rtol, atol=TOLERANCE.atol)
    assert result.passed == bool(near.all())
