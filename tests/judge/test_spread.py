"""What is learned of the states of processes, and intervals with the process as the unit."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.judge.decision import TOTAL, Tally
from opratchet.judge.duel import calibrate
from opratchet.judge.robust import Centre
from opratchet.judge.spread import Spread, own_variance, within_variance
from tests.judge.machines import MODELS, NAME, WEIGHTS, Machine

STATES = 2 * 0.05**2  # variance of the difference of two processes with states of +-5 %


def units(values: list[float], variance: float = 1e-8) -> list[Centre]:
    """Bouts with these centres, each known well from its own samples."""
    return [Centre(value, variance, 7) for value in values]


def learned(model: str, seed: int) -> tuple[Machine, Spread]:
    """A machine, and the spread that a calibration finds on it."""
    machine = Machine(MODELS[model], seed)
    spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
    return machine, spread


def test_the_spread_of_two_state_processes_is_found() -> None:
    found = [learned("bimodal +-5 %", seed)[1].variance(TOTAL) for seed in range(200)]
    assert np.mean(found) == pytest.approx(STATES, rel=0.1)
    # Ten bouts of three values each: their variance is known to about a third.
    assert np.std(found) == pytest.approx(STATES / 3, rel=0.3)


@pytest.mark.parametrize("model", ["gaussian 0.3 %", "gaussian 1.1 %", "drift 1 % a trial"])
def test_where_processes_have_no_state_hardly_any_spread_is_found(model: str) -> None:
    found = [learned(model, seed)[1].variance(TOTAL) for seed in range(30)]
    assert math.sqrt(np.mean(found)) < 0.002


def test_it_gets_better_with_every_comparison() -> None:
    errors: dict[int, list[float]] = {1: [], 10: []}
    for seed in range(40):
        machine = Machine(MODELS["bimodal +-5 %"], seed)
        spread = Spread()
        for done in range(1, 11):
            machine.begin_trial()
            tally = bouts(machine, 10)
            spread.learn(tally.units)
            if done in errors:
                errors[done].append(spread.variance(TOTAL) - STATES)
    assert np.std(errors[10]) < 0.6 * np.std(errors[1])


def bouts(machine: Machine, count: int, pairs: int = 24) -> Tally:
    """So many bouts of ties."""
    tally = Tally(WEIGHTS)
    for _ in range(count):
        with machine.bout(0.0) as bout:
            tally.add(bout.take(pairs))
    return tally


def test_one_bout_teaches_nothing_and_without_a_spread_says_nothing() -> None:
    spread = Spread()
    spread.learn({TOTAL: units([0.1])})
    assert spread.variance(TOTAL) == 0.0
    assert spread.pooled(TOTAL, units([0.1])).interval(0.95) == (-math.inf, math.inf)


def test_bouts_without_a_spread_are_judged_by_their_own() -> None:
    values = [0.1, 0.12, 0.09, 0.11]
    found = Spread().pooled(TOTAL, units(values))
    assert found.value == pytest.approx(np.mean(values))
    assert found.variance == pytest.approx(np.var(values, ddof=1) / 4)
    assert found.freedom == 3


def test_bouts_that_differ_more_than_chance_allows_are_judged_by_their_own_spread() -> None:
    _machine, spread = learned("gaussian 0.3 %", 0)
    wild = units([0.3, -0.2, 0.25, -0.3, 0.1, 0.2])
    found = spread.pooled(TOTAL, wild)
    assert found.variance == pytest.approx(own_variance(wild) / 6)
    assert found.freedom == 5


def test_bouts_that_agree_by_chance_do_not_shrink_the_interval_to_nothing() -> None:
    _machine, spread = learned("bimodal +-5 %", 0)
    found = spread.pooled(TOTAL, units([0.1, 0.1]))
    assert math.sqrt(found.variance) > 0.03


@pytest.mark.parametrize("count", [2, 6, 14, 32])
def test_the_interval_covers_the_truth_where_every_process_has_its_state(count: int) -> None:
    hits, total = 0, 300
    for seed in range(total):
        machine, spread = learned("bimodal +-5 %", seed)
        machine.begin_trial()
        low, high = spread.pooled(TOTAL, bouts(machine, count).units[TOTAL]).interval(0.95)
        hits += low <= 0.0 <= high
    assert hits / total >= 0.92


def test_samples_alone_would_be_far_too_sure_of_themselves() -> None:
    hits = 0
    for seed in range(100):
        machine = Machine(MODELS["bimodal +-5 %"], seed)
        low, high = bouts(machine, 1).units[TOTAL][0].interval(0.95)
        hits += low <= 0.0 <= high
    assert (
        hits < 70
    )  # what the interval of a single process says holds only where both have the same state


def test_it_goes_to_the_ledger_and_back() -> None:
    _machine, spread = learned("bimodal +-5 %", 3)
    again = Spread.from_record(spread.record())
    assert again == spread
    few = units([0.02, -0.01])
    assert again.pooled(NAME, few) == spread.pooled(NAME, few)


@given(st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=12), st.integers(0, 5))
def test_swapping_the_sides_mirrors_the_mean_and_keeps_its_error(
    values: list[float], seed: int
) -> None:
    _machine, spread = learned("gaussian 1.1 %", seed)
    found = spread.pooled(TOTAL, units(values))
    mirrored = spread.pooled(TOTAL, units([-value for value in values]))
    assert mirrored.value == pytest.approx(-found.value)
    assert mirrored.variance == pytest.approx(found.variance)
    assert mirrored.freedom == pytest.approx(found.freedom)


def test_own_and_within_variance_are_those_of_numpy() -> None:
    some = [Centre(0.1, 1.0, 3), Centre(0.3, 3.0, 3)]
    assert own_variance(some) == pytest.approx(0.02)
    assert within_variance(some) == pytest.approx(2.0)


@given(
    st.integers(0, 20),
    st.floats(1e-9, 1e-3),
    st.floats(0.0, 1.0),
    st.sampled_from([0.95, 0.999987]),
)
def test_more_precise_samples_hardly_ever_make_an_interval_wider(
    seed: int, noisy: float, share: float, confidence: float
) -> None:
    """However little is known of the spread, so that only it is left to doubt."""
    _machine, spread = learned("gaussian 1.1 %", seed)
    one, other = (
        spread.pooled(TOTAL, units([0.1], variance)).margin(confidence)
        for variance in (noisy, noisy * share)
    )
    assert other <= 1.3 * one
