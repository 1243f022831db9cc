"""The weighted geometric mean, and that no impossible figure is averaged."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from opratchet.ledger.means import geometric_mean

VALUES = st.floats(1e-6, 1e9)
WEIGHTED = st.lists(st.tuples(VALUES, st.floats(1e-3, 1e3)), min_size=1, max_size=30)
NUMBERS = st.one_of(VALUES, st.sampled_from([0.0, -1.0, math.nan, math.inf, -math.inf]))


def test_a_mean_that_can_be_worked_out_by_hand() -> None:
    assert geometric_mean([100.0, 400.0]) == approx(200.0)
    assert geometric_mean([100.0, 1600.0], [3, 1]) == approx(200.0)
    assert geometric_mean([2.0, 0.5]) == approx(1.0)


@given(WEIGHTED, st.floats(1e-3, 1e3))
def test_it_scales_and_stays_within_its_values(
    pairs: list[tuple[float, float]], factor: float
) -> None:
    values, weights = zip(*pairs, strict=True)
    mean = geometric_mean(values, weights)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert geometric_mean([v * factor for v in values], weights) == approx(mean * factor)
    assert geometric_mean(values, [w * factor for w in weights]) == approx(mean)


@given(WEIGHTED)
def test_swapping_both_sides_of_a_ratio_turns_the_mean_over(
    pairs: list[tuple[float, float]],
) -> None:
    values, weights = zip(*pairs, strict=True)
    turned = geometric_mean([1 / v for v in values], weights)
    assert turned * geometric_mean(values, weights) == approx(1.0)


@given(st.lists(st.tuples(VALUES, st.integers(1, 5)), min_size=1, max_size=8))
def test_a_whole_weight_counts_as_so_many_workloads(pairs: list[tuple[float, int]]) -> None:
    values, weights = zip(*pairs, strict=True)
    repeated = [value for value, weight in pairs for _ in range(weight)]
    assert geometric_mean(values, weights) == approx(geometric_mean(repeated))


def test_weights_at_the_ends_of_what_a_float_can_hold() -> None:
    assert geometric_mean([1.0, 4.0], [1.7e308, 1.7e308]) == approx(2.0)
    assert geometric_mean([1.0, 4.0], [5e-324, 5e-324]) == approx(2.0)
    assert geometric_mean([1.0, 4.0], [1.7e308, 5e-324]) == approx(1.0)


@given(st.lists(NUMBERS, max_size=5), st.lists(NUMBERS, max_size=5))
def test_it_gives_a_true_mean_or_refuses(values: list[float], weights: list[float]) -> None:
    fine = bool(values) and len(values) == len(weights)
    if fine and all(0 < x < math.inf for x in (*values, *weights)):
        assert 0 < geometric_mean(values, weights) < math.inf
    else:
        with pytest.raises(ValueError, match="mean"):
            geometric_mean(values, weights)
