"""The memory that kernels are called on: what is drawn, what is poisoned, and what the supervisor notices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.backend.base import TensorSpec
from opratchet.lab.ring import MOST_SETS, RING_BYTES, STRETCH, Ring
from opratchet.operator.model import InputSpec

SPECS = (
    TensorSpec("X", (6, 50), "float32"),
    TensorSpec("W", (50,), "float16"),
    TensorSpec("Y", (6, 50), "float32"),
    TensorSpec("N", (3,), "int32"),
)


def ring(specs: tuple[TensorSpec, ...] = SPECS, inputs: int = 2) -> Ring:
    return Ring(specs, inputs, {"W": InputSpec("uniform", 2.0, 3.0)}, np.random.default_rng(1))


@pytest.fixture
def filled() -> Iterator[Ring]:
    made = ring()
    made.reserve(8)
    made.renew(8)
    yield made
    made.close()


def call(at: Ring, of_set: int) -> None:
    """An honest kernel: twice the first input, and three numbers."""
    at.tensors.array(2, of_set)[...] = at.tensors.array(0, of_set) * 2
    at.tensors.array(3, of_set)[...] = (1, 2, 3)


def test_every_call_of_a_batch_has_inputs_of_its_own(filled: Ring) -> None:
    contents = {filled.tensors.array(0, of_set).tobytes() for of_set in range(8)}
    assert len(contents) == 8


def test_no_batch_repeats_the_inputs_of_another(filled: Ring) -> None:
    before = {filled.tensors.array(0, of_set).tobytes() for of_set in range(8)}
    filled.renew(8)
    assert before.isdisjoint({filled.tensors.array(0, of_set).tobytes() for of_set in range(8)})


def test_what_was_given_is_known_whatever_the_kernel_writes(filled: Ring) -> None:
    given_before = filled.given(0, 3).copy()
    assert np.array_equal(given_before, filled.tensors.array(0, 3))
    filled.tensors.array(0, 3)[...] = 0
    assert np.array_equal(filled.given(0, 3), given_before)


def test_inputs_are_what_the_operator_describes(filled: Ring) -> None:
    weights = filled.tensors.array(1, 5)
    assert weights.dtype == np.float16
    assert ((weights >= 2) & (weights <= 3)).all()


def test_a_kernel_that_did_all_its_calls_leaves_nothing_untouched(filled: Ring) -> None:
    for of_set in range(8):
        call(filled, of_set)
    assert filled.untouched() == ""


@pytest.mark.parametrize("skipped", range(8))
def test_a_single_call_that_did_nothing_is_seen(filled: Ring, skipped: int) -> None:
    for of_set in set(range(8)) - {skipped}:
        call(filled, of_set)
    assert "1 of 8 calls" in filled.untouched()


def test_an_integer_output_that_was_not_written_is_seen_too(filled: Ring) -> None:
    for of_set in range(8):
        filled.tensors.array(2, of_set)[...] = 1
    assert "N" in filled.untouched()


def test_half_an_output_is_soon_seen_to_be_missing() -> None:
    at = ring()
    seen = 0
    for _batch in range(200):
        at.renew(1)
        at.tensors.array(3)[...] = (1, 2, 3)
        at.tensors.array(2)[:3] = 0
        seen += bool(at.untouched())
    at.close()
    assert seen > 40  # a stretch of 64 of 300 elements lies in the missing half in a third of cases


def test_growing_keeps_what_was_seen_and_stays_within_its_memory() -> None:
    at = ring()
    at.renew(1)
    view = at.tensors.array(0)
    content = view.tobytes()
    at.reserve(10_000)
    assert view.tobytes() == content == at.tensors.array(0).tobytes()
    assert at.tensors.sets == MOST_SETS
    assert at.tensors.size <= RING_BYTES
    at.close()


def test_a_tensor_larger_than_the_ring_has_one_set() -> None:
    at = ring((TensorSpec("X", (RING_BYTES // 4,), "float32"), TensorSpec("Y", (1,), "float32")), 1)
    at.reserve(100)
    assert at.tensors.sets == 1
    at.renew(100)
    assert at.untouched()
    at.close()


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    sets=st.integers(1, 9),
    dtype=st.sampled_from(["float32", "float64", "int8", "uint8", "int64"]),
)
def test_sets_never_overlap(shape: list[int], sets: int, dtype: str) -> None:
    specs = (TensorSpec("X", tuple(shape), dtype), TensorSpec("Y", tuple(shape), dtype))
    at = ring(specs, 1)
    at.reserve(sets)
    places = [(index, of_set) for of_set in range(sets) for index in range(2)]
    for number, (index, of_set) in enumerate(places):
        at.tensors.array(index, of_set)[...] = number
    for number, (index, of_set) in enumerate(places):
        assert (at.tensors.array(index, of_set) == number).all()
        start = max(0, specs[0].size - STRETCH)
        stretch = at.tensors.stretch(index, sets, start, min(STRETCH, specs[0].size))
        assert (stretch[of_set] == number).all()
    at.close()
