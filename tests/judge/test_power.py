"""The smallest gain that is said to be found, against the rule itself on simulated machines with a clock of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.judge import duel as sampling_room
from opratchet.judge.decision import TOTAL, Logs, Rule, Verdict
from opratchet.judge.duel import PROMISING, duel
from opratchet.judge.power import Sampling, noncentrality, share_interval, told_apart
from opratchet.judge.spread import Spread

NAME = "w"
WEIGHTS = {NAME: 1.0}
RULE = Rule(trials=120)
SECONDS = 8.0
# Variance of the 20 % trimmed mean of Gaussian samples against that of their mean.
TRIMMED = 1.14


@dataclass
class Machine:
    """Gaussian noise of pairs and of processes, and a clock that only its own work moves on."""

    process: float
    sampling: Sampling
    seed: int
    now: float = 0.0
    generator: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def monotonic(self) -> float:
        return self.now

    @contextmanager
    def bout(self, gain: float = 0.0) -> Iterator[Bout]:
        self.now += self.sampling.bout_seconds
        apart = self.generator.normal(math.log1p(gain), math.sqrt(self.process))
        yield Bout(self, apart)


@dataclass
class Bout:
    machine: Machine
    apart: float

    def take(self, pairs: int) -> Logs:
        self.machine.now += pairs * self.machine.sampling.pair_seconds
        deviation = math.sqrt(self.machine.sampling.pair_variance / TRIMMED)
        return {NAME: self.machine.generator.normal(self.apart, deviation, pairs).tolist()}


def known(process: float, freedom: float = 30.0) -> Spread:
    """A spread that was learned exactly."""
    return Spread(
        {TOTAL: process * freedom, NAME: process * freedom},
        {TOTAL: freedom, NAME: freedom},
        {TOTAL: process**2 * freedom, NAME: process**2 * freedom},
    )


def share_found(
    monkeypatch: pytest.MonkeyPatch, process: float, sampling: Sampling, gain: float, runs: int = 60
) -> float:
    """Share of comparisons that adopt a gain."""
    adopted = 0
    for seed in range(runs):
        machine = Machine(process, sampling, seed)
        monkeypatch.setattr(sampling_room, "time", machine)
        arena = partial(machine.bout, gain)
        decision = duel(arena, RULE, known(process), WEIGHTS, SECONDS)
        adopted += decision.verdict is Verdict.FASTER
    return adopted / runs


@pytest.mark.parametrize(
    ("process", "sampling"),
    [
        pytest.param(0.0, Sampling(0.004**2, 0.1, 0.003), id="quiet: the minimum effect decides"),
        pytest.param(2e-4, Sampling(0.01**2, 0.1, 0.003), id="processes 1 % apart"),
        pytest.param(1.8e-3, Sampling(0.004**2, 0.1, 0.003), id="processes 3 % apart"),
        pytest.param(0.0, Sampling(0.3**2, 0.1, 0.003), id="loaded"),
        pytest.param(1e-4, Sampling(0.1**2, 0.7, 0.003), id="loaded, processes start slowly"),
    ],
)
def test_the_gain_that_is_named_is_found_nine_times_out_of_ten_and_a_smaller_one_is_not(
    monkeypatch: pytest.MonkeyPatch, process: float, sampling: Sampling
) -> None:
    named = told_apart(RULE, known(process), sampling, SECONDS)
    assert named.seconds <= PROMISING * SECONDS
    assert share_found(monkeypatch, process, sampling, named.gain) >= 0.78
    assert share_found(monkeypatch, process, sampling, 0.7 * named.gain) <= 0.6


def test_where_hardly_two_bouts_fit_into_the_time_the_named_gain_is_on_the_safe_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A win is confirmed in as many bouts as that takes, whatever the time; smaller gains profit from it too.
    sampling = Sampling(0.01**2, 2.0, 0.003)
    named = told_apart(RULE, known(1e-4), sampling, SECONDS)
    assert named.seconds <= PROMISING * SECONDS
    assert share_found(monkeypatch, 1e-4, sampling, named.gain) >= 0.9


variances = st.floats(1e-6, 1e-2)
samplings = st.builds(Sampling, st.floats(1e-6, 0.1), st.floats(0.01, 3.0), st.floats(0.001, 0.02))


@given(variances, samplings, st.floats(1.0, 20.0), st.floats(1.0, 20.0))
def test_more_time_never_finds_less_and_no_gain_below_the_minimum_effect_is_promised(
    process: float, sampling: Sampling, seconds: float, more: float
) -> None:
    short = told_apart(RULE, known(process), sampling, seconds)
    long = told_apart(RULE, known(process), sampling, seconds + more)
    assert RULE.minimum_effect < long.gain <= short.gain < math.inf


@given(variances, samplings)
def test_what_is_to_be_found_more_often_has_to_be_larger(
    process: float, sampling: Sampling
) -> None:
    often, mostly = (told_apart(RULE, known(process), sampling, 8.0, p) for p in (0.9, 0.6))
    assert often.gain >= mostly.gain


def test_a_machine_without_any_noise_finds_the_minimum_effect() -> None:
    silent = told_apart(RULE, known(0.0), Sampling(0.0, 0.1, 0.003), SECONDS)
    assert silent.gain == pytest.approx(RULE.minimum_effect)


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_interval_of_a_share_lies_around_it_and_mirrors(hits: int, others: int) -> None:
    total = hits + others
    low, high = share_interval(hits, total)
    assert 0.0 <= low <= (hits / total if total else 0.5) <= high <= 1.0
    assert share_interval(others, total) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),
        (10, 10, 0.6915, 1.0),
        (1, 20, 0.00127, 0.2487),
        (5, 10, 0.1871, 0.8129),
    ],
)
def test_the_interval_of_a_share_is_that_of_the_tables(
    hits: int, total: int, low: float, high: float
) -> None:
    assert share_interval(hits, total) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("freedom", [0.4, 1.0, 2.0, 9.0, 200.0])
@pytest.mark.parametrize("quantile", [4.0, 29.0, 31.0, 1e3, 1e7])
def test_thenoncentrality_is_found_for_any_quantile(freedom: float, quantile: float) -> None:
    found = noncentrality(quantile, freedom, 0.9)
    generator = np.random.default_rng(3)
    errors = np.sqrt(generator.chisquare(freedom, 100_000) / freedom)
    t = (generator.normal(size=100_000) + found) / errors
    assert np.mean(t > quantile) == pytest.approx(0.9, abs=0.02)


def test_where_almost_nothing_is_known_of_the_spread_there_is_an_answer_all_the_same() -> None:
    spread = Spread({TOTAL: 1e-6}, {TOTAL: 0.3}, {TOTAL: 0.3 * 1e-4})
    found = told_apart(RULE, spread, Sampling(1e-4, bout_seconds=5.0, pair_seconds=0.002), SECONDS)
    assert 0.5 < found.gain < math.inf
