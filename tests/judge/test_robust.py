"""The trimmed mean and its error, against scipy, a direct formula and drawn samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from opratchet.judge.robust import TRIM, Centre, by_turns, trimmed

SAMPLES = st.lists(st.floats(-10, 10), min_size=5, max_size=60)
PARTS = st.sampled_from([0.0, 0.1, TRIM, 0.3])


def by_hand(values: list[float], part: float) -> float:
    """Variance of the trimmed mean as Yuen writes it, element by element."""
    ordered = sorted(values)
    count = len(ordered)
    cut = int(part * count)
    kept = count - 2 * cut
    inner = ordered[cut : count - cut]
    winsorised = [inner[0]] * cut + inner + [inner[-1]] * cut
    middle = math.fsum(winsorised) / count
    squares = math.fsum((value - middle) ** 2 for value in winsorised)
    return squares / (kept * (kept - 1))


@given(SAMPLES, PARTS)
def test_the_centre_is_scipys_trimmed_mean(values: list[float], part: float) -> None:
    assert trimmed(values, part).value == pytest.approx(stats.trim_mean(values, part), abs=1e-9)


@given(SAMPLES, PARTS)
def test_its_variance_is_that_of_the_formula(values: list[float], part: float) -> None:
    found = trimmed(values, part)
    assert found.variance == pytest.approx(by_hand(values, part), rel=1e-9, abs=1e-12)
    assert found.freedom == len(values) - 2 * int(part * len(values)) - 1


@given(SAMPLES)
def test_swapping_the_sides_mirrors_the_interval(values: list[float]) -> None:
    low, high = trimmed(values).interval(0.99)
    assert trimmed([-x for x in values]).interval(0.99) == pytest.approx((-high, -low), abs=1e-7)


@given(SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(values: list[float], random: object) -> None:
    mixed = list(values)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert trimmed(mixed) == trimmed(values)


@given(SAMPLES, st.floats(0.5, 0.9), st.floats(0.91, 0.9999))
def test_more_confidence_is_a_wider_interval(values: list[float], less: float, more: float) -> None:
    centre = trimmed(values)
    (low, high), (lower, higher) = centre.interval(less), centre.interval(more)
    assert lower <= low <= centre.value <= high <= higher


@pytest.mark.parametrize("count", [6, 12, 75])
def test_the_interval_covers_the_truth_as_often_as_it_says(count: int) -> None:
    generator = np.random.default_rng(9)
    hits = 0
    for _ in range(3000):
        low, high = trimmed(generator.normal(0.1, 0.02, count).tolist()).interval(0.95)
        hits += low <= 0.1 <= high
    assert 0.93 <= hits / 3000 <= 0.97


def test_bursts_of_load_do_not_make_it_too_narrow() -> None:
    generator = np.random.default_rng(10)
    hits = 0
    for _ in range(3000):
        bursts = generator.choice((-1.1, 0.0, 1.1), 12, p=(0.05, 0.9, 0.05))
        low, high = trimmed(list(generator.normal(0.1, 0.02, 12) + bursts)).interval(0.95)
        hits += low <= 0.1 <= high
    assert hits / 3000 >= 0.93


def test_one_wild_value_does_not_move_the_centre() -> None:
    calm = [0.1 + 0.001 * (-1) ** i for i in range(20)]
    assert trimmed([*calm[:-1], 30.0]).value == pytest.approx(0.1, abs=2e-3)


@pytest.mark.parametrize("bad", [[0.1] * 4, [0.1, 0.2, math.nan, 0.1, 0.1], [math.inf] * 6])
def test_what_is_no_sample_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="five finite"):
        trimmed(bad)


@pytest.mark.parametrize("centre", [Centre(0.1, 1.0, 0.0), Centre(0.1, math.inf, 5.0)])
def test_where_nothing_is_known_of_the_error_the_interval_is_open(centre: Centre) -> None:
    assert centre.interval(0.95) == (-math.inf, math.inf)


def test_a_steady_drift_cancels_within_a_turn() -> None:
    drift = 0.01
    # In the order AB BA, the later one of a pair is slower by the drift: log ratios of -d, +d and so on.
    logs = [0.2 + drift * (-1) ** (i + 1) for i in range(24)]
    assert by_turns(logs) == pytest.approx([0.2] * 12)


def test_a_last_single_pair_is_left_out() -> None:
    assert by_turns([0.1] * 12 + [9.0]) == pytest.approx([0.1] * 6)
