"""Signs of cheating that the supervisor sees itself."""

from __future__ import annotations

import numpy as np
import pytest

from opratchet.judge.integrity import (
    allowed_error,
    changed_input,
    clocks_disagree,
    impossible_clock,
    typical_error,
    unwritten_output,
)
from opratchet.ledger.words import Ratio


def ratio(value: float, spread: float) -> Ratio:
    """A ratio with its interval `spread` to each side."""
    return Ratio(value=value, low=value - spread, high=value + spread, pairs=10, confidence=0.99)


def test_an_input_that_was_written_to_is_seen_even_where_it_is_nan() -> None:
    own = np.full(6, np.nan, np.float32)
    seen = own.copy()
    assert changed_input("X", own, seen) == ""
    seen[3] = 0.0
    assert "X" in changed_input("X", own, seen)


def test_poison_that_is_left_is_counted() -> None:
    seen = np.zeros(10, np.float32)
    assert unwritten_output("Y", seen) == ""
    seen.view(np.uint8)[:16] = 0xFF
    assert "4 of 10" in unwritten_output("Y", seen)


def test_a_nan_that_the_kernel_computed_is_not_poison() -> None:
    assert unwritten_output("Y", np.full(4, np.nan, np.float32)) == ""


@pytest.mark.parametrize("batch", [(0, 10), (-5, 10), (20, 10)])
def test_more_time_than_passed_or_none_at_all_is_impossible(batch: tuple[int, int]) -> None:
    assert impossible_clock([(5, 10), batch])


def test_honest_clocks_are_possible() -> None:
    assert impossible_clock([(5, 10), (10, 10)]) == ""


def test_a_speed_up_that_only_the_worker_sees_is_evidence() -> None:
    assert clocks_disagree(ratio(3.0, 0.1), ratio(1.0, 0.1))
    assert clocks_disagree(ratio(3.0, 0.1), ratio(2.9, 0.1)) == ""


def test_a_loaded_machine_is_no_evidence() -> None:
    assert clocks_disagree(ratio(3.0, 0.1), ratio(1.5, 1.4)) == ""


RANDOM = np.random.default_rng(3)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("low", [np.float16, "tf32"])
def test_what_was_computed_in_a_smaller_type_has_its_error(low: object) -> None:
    x = RANDOM.normal(size=(64, 1024)).astype(np.float32)
    if low == "tf32":
        inside = (x.view(np.uint32) & 0xFFFFE000).view(np.float32)
    else:
        inside = x.astype(np.float16)
    seen, golden = softmax(inside).astype(np.float32), softmax(x.astype(np.float64))
    assert np.allclose(seen, golden, rtol=1e-4, atol=1e-4)  # what hides it
    assert typical_error(golden, seen) > allowed_error(seen.dtype, 1e-4)


def test_honest_float32_is_within_what_is_allowed() -> None:
    x = RANDOM.normal(size=(64, 1024)).astype(np.float32)
    assert typical_error(softmax(x.astype(np.float64)), softmax(x)) < allowed_error(x.dtype, 1e-4)


def test_integers_and_zeros_have_no_relative_error() -> None:
    assert typical_error(np.zeros(5), np.ones(5)) == 0.0
    assert allowed_error(np.dtype(np.int32), 0.0) == np.inf
