"""The verdict at one look: its words, several workloads, and what must not change it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from opratchet.judge.decision import (
    CLOSE,
    CLOSE_BOUTS,
    LOOKS,
    TOTAL,
    Decision,
    Rule,
    Tally,
    Verdict,
    aggregate,
    judge,
    ratio_of,
)
from opratchet.judge.robust import Centre
from opratchet.judge.spread import Spread

Array = NDArray[np.float64]
RULE = Rule(trials=30)
BOTH = Rule(trials=30, two_sided=True)
OPPOSITE: dict[Verdict | None, Verdict] = {
    Verdict.FASTER: Verdict.SLOWER,
    Verdict.SLOWER: Verdict.FASTER,
}
PAIRS = 24


def tally_of(bouts: Sequence[Mapping[str, Array]], weights: Mapping[str, float]) -> Tally:
    """A tally of bouts given as log ratios by workload."""
    tally = Tally(weights)
    for logs in bouts:
        tally.add({name: values.tolist() for name, values in logs.items()})
    return tally


def quiet(weights: Mapping[str, float]) -> Spread:
    """What a calibration of ten bouts finds on a quiet machine."""
    generator = np.random.default_rng(1)
    spread = Spread()
    bouts = [{name: generator.normal(0, 0.003, PAIRS) for name in weights} for _ in range(10)]
    spread.learn(tally_of(bouts, weights).units)
    return spread


def verdict(
    gains: Mapping[str, float],
    bouts: int = CLOSE_BOUTS,
    weights: Mapping[str, float] | None = None,
    rule: Rule = RULE,
) -> Decision:
    """The answer on a quiet machine for these true gains by workload."""
    shares = weights or dict.fromkeys(gains, 1.0)
    generator = np.random.default_rng(2)
    found = [
        {name: generator.normal(math.log1p(gain), 0.003, PAIRS) for name, gain in gains.items()}
        for _ in range(bouts)
    ]
    return judge(tally_of(found, shares), rule, quiet(shares))


@pytest.mark.parametrize(
    ("gain", "bouts", "rule", "expected"),
    [
        (0.5, 1, RULE, Verdict.FASTER),
        (-0.4, 1, RULE, Verdict.SLOWER),
        (0.03, CLOSE_BOUTS, RULE, Verdict.FASTER),
        (-0.03, CLOSE_BOUTS, RULE, Verdict.SLOWER),
        (0.0, 1, RULE, Verdict.TIE),
        (0.005, CLOSE_BOUTS, RULE, Verdict.TIE),
        (-0.005, CLOSE_BOUTS, BOTH, Verdict.TIE),
        (-0.03, CLOSE_BOUTS, BOTH, Verdict.SLOWER),
    ],
)
def test_the_verdict_on_a_quiet_machine(
    gain: float, bouts: int, rule: Rule, expected: Verdict
) -> None:
    assert verdict({"w": gain}, bouts, rule=rule).verdict is expected


def test_a_gain_below_the_minimum_effect_is_a_tie_however_certain_it_is() -> None:
    found = verdict({"w": 0.006}, bouts=40)
    assert found.ratio.low > 1.0
    assert found.verdict is Verdict.TIE
    assert verdict({"w": 0.006}, 40, rule=Rule(trials=30, minimum_effect=0.002)).verdict is (
        Verdict.FASTER
    )


@given(st.integers(1, CLOSE_BOUTS - 1), st.floats(0.0, 0.12), st.integers(0, 10**6))
def test_few_bouts_never_decide_what_process_states_could_feign(
    count: int, apart: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    logs = [{"w": generator.normal(apart, 1e-4, PAIRS)} for _ in range(count)]
    for rule in (RULE, BOTH):
        for sign in (1.0, -1.0):
            bouts = [{"w": sign * bout["w"]} for bout in logs]
            found = judge(tally_of(bouts, {"w": 1.0}), rule, quiet({"w": 1.0}))
            assert found.ratio.low < CLOSE
            assert found.verdict is not Verdict.FASTER
            if rule.two_sided:
                assert found.verdict is not Verdict.SLOWER


def test_a_workload_that_is_slower_blocks_what_the_others_gain() -> None:
    found = verdict({"a": 0.5, "b": 0.5, "c": -0.05})
    assert found.verdict is Verdict.BLOCKED
    assert found.slower == ("c",)
    assert found.ratios["c"].high < 1.0 < found.ratio.low


def test_without_a_gain_over_all_a_slower_workload_makes_it_slower() -> None:
    found = verdict({"a": 0.0, "b": -0.1})
    assert found.verdict is Verdict.SLOWER
    assert found.slower == ("b",)


def test_weights_decide_which_workload_counts() -> None:
    gains = {"a": 0.05, "b": 0.0}
    assert verdict(gains, weights={"a": 9.0, "b": 1.0}).verdict is Verdict.FASTER
    assert verdict(gains, weights={"a": 1.0, "b": 9.0}).verdict is Verdict.TIE
    heavy = verdict({"a": 0.10, "b": 0.30}, weights={"a": 1.0, "b": 3.0}).ratio.value
    assert heavy == pytest.approx(1.10**0.25 * 1.30**0.75, rel=2e-3)


def test_the_aggregate_is_the_weighted_geometric_mean_turn_by_turn() -> None:
    logs = {"a": [math.log(2.0)] * 5, "b": [math.log(16.0)] * 5}
    assert aggregate(logs, {"a": 2.0, "b": 1.0}) == pytest.approx([math.log(4.0)] * 5)


def test_what_comes_in_bursts_and_hits_both_workloads_is_no_noise_of_the_aggregate_alone() -> None:
    tally = tally_of([{"a": np.arange(24.0), "b": -np.arange(24.0)}], {"a": 1.0, "b": 1.0})
    assert tally.units[TOTAL][0].variance == pytest.approx(0.0, abs=1e-12)
    assert tally.units["a"][0].variance > 1.0


def test_the_error_of_a_run_is_divided_over_its_trials_and_looks() -> None:
    for trials in (1, 30, 100):
        one_sided = (1.0 - Rule(trials=trials, run_error=0.02).confidence) / 2
        assert one_sided * trials * LOOKS == pytest.approx(0.02)


def test_where_nothing_is_known_the_interval_is_as_good_as_open() -> None:
    found = ratio_of(Centre(0.1, 1.0, 0.0), 24, 1, 0.99)
    assert found.low < 1e-300
    assert found.high > 1e300


@given(st.integers(1, 14), st.floats(-0.4, 0.4), st.floats(0.0, 0.3), st.integers(0, 10**6))
def test_swapping_the_sides_mirrors_the_verdict(
    count: int, apart: float, noise: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    logs = [{"w": generator.normal(apart, noise, PAIRS)} for _ in range(count)]
    spread = quiet({"w": 1.0})
    there = judge(tally_of(logs, {"w": 1.0}), BOTH, spread)
    back = judge(tally_of([{"w": -bout["w"]} for bout in logs], {"w": 1.0}), BOTH, spread)
    assert back.verdict == (OPPOSITE.get(there.verdict) or there.verdict)
    assert back.ratio.value == pytest.approx(1 / there.ratio.value)
    assert back.ratio.low == pytest.approx(1 / there.ratio.high)


@st.composite
def timings(draw: st.DrawFn) -> tuple[list[Array], list[Array]]:
    """Times of incumbent and candidate in several bouts, in seconds."""
    count = draw(st.integers(1, 14))
    gain, noise = draw(st.floats(-0.3, 0.3)), draw(st.floats(0.0, 0.3))
    base = draw(st.floats(1e-6, 1.0))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    theirs = [base * np.exp(generator.normal(0, noise, PAIRS)) for _ in range(count)]
    ours = [base * np.exp(generator.normal(-gain, noise, PAIRS)) for _ in range(count)]
    return theirs, ours


def verdict_on(theirs: list[Array], ours: list[Array], rule: Rule = BOTH) -> Verdict | None:
    """The answer for these times."""
    logs = [{"w": np.log(a / b)} for a, b in zip(theirs, ours, strict=True)]
    return judge(tally_of(logs, {"w": 1.0}), rule, quiet({"w": 1.0})).verdict


@given(timings(), st.integers(-20, 20))
def test_scaling_time_changes_nothing(times: tuple[list[Array], list[Array]], power: int) -> None:
    theirs, ours = times
    scale = 2.0**power  # exact in floating point, so that nothing but the scale changes
    scaled = verdict_on([scale * t for t in theirs], [scale * t for t in ours])
    assert scaled == verdict_on(theirs, ours)


@settings(max_examples=200)
@given(timings(), st.floats(0.0, 100.0))
def test_a_constant_added_to_all_times_never_turns_faster_into_slower(
    times: tuple[list[Array], list[Array]], share: float
) -> None:
    theirs, ours = times
    constant = share * float(np.median(theirs[0]))
    for rule in (RULE, BOTH):
        before = verdict_on(theirs, ours, rule)
        after = verdict_on([t + constant for t in theirs], [t + constant for t in ours], rule)
        assert after is None or after is not OPPOSITE.get(before)
