"""The decision rule on drawn samples: its error, its power, and what must not change its answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.judge.decision import (
    LOOKS,
    Rule,
    Verdict,
    aggregate,
    interval,
    judge,
    ratio_of,
)
from opratchet.ledger.words import Ratio

RULE = Rule(trials=30)
LOGS = st.lists(st.floats(-1, 1), min_size=5, max_size=60)


def verdict(logs: list[float], rule: Rule = RULE) -> Verdict:
    """The answer of the sequential rule on a stream of log ratios."""
    answer = Verdict.INCONCLUSIVE
    for look in LOOKS:
        total = ratio_of(logs[:look], rule.confidence)
        answer = judge(total, {"w": total}, rule)
        if answer is not Verdict.INCONCLUSIVE:
            break
    return answer


def draw(generator: np.random.Generator, gain: float, noise: float) -> list[float]:
    """Log ratios of a candidate that is faster by `gain`, with a burst of load now and then."""
    logs = generator.normal(math.log1p(gain), noise, LOOKS[-1])
    bursts = generator.random(LOOKS[-1]) < 0.02
    return [float(x) for x in logs + bursts * generator.normal(0, 1, LOOKS[-1])]


@pytest.mark.parametrize("gain", [0.0, -0.03])
def test_a_run_of_candidates_that_are_no_better_adopts_none(gain: float) -> None:
    generator = np.random.default_rng(7)
    answers = [verdict(draw(generator, gain, 0.01)) for _ in range(600)]
    assert Verdict.FASTER not in answers


def test_a_gain_of_three_per_cent_is_found() -> None:
    generator = np.random.default_rng(8)
    answers = [verdict(draw(generator, 0.03, 0.01)) for _ in range(200)]
    assert answers.count(Verdict.FASTER) >= 190


def test_a_clear_answer_is_given_at_the_first_look() -> None:
    logs = [0.5 + 0.001 * (-1) ** i for i in range(LOOKS[0])]
    assert judge(ratio_of(logs, RULE.confidence), {}, RULE) is Verdict.FASTER


def test_a_gain_below_the_minimum_effect_is_a_tie() -> None:
    logs = [0.004 + 1e-5 * (-1) ** i for i in range(LOOKS[0])]
    assert judge(ratio_of(logs, RULE.confidence), {}, RULE) is Verdict.TIE


def test_one_slower_workload_blocks_the_others_gain() -> None:
    good = Ratio(value=2.0, low=1.9, high=2.1, pairs=10, confidence=0.99)
    bad = Ratio(value=0.9, low=0.88, high=0.92, pairs=10, confidence=0.99)
    assert judge(good, {"a": good, "b": bad}, RULE) is Verdict.SLOWER


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(9)
    hits = 0
    for _ in range(2000):
        _centre, low, high = interval(list(generator.normal(0.1, 0.02, 20)), 0.95)
        hits += low <= 0.1 <= high
    assert 0.93 <= hits / 2000 <= 0.97


def test_one_wild_pair_does_not_move_the_centre() -> None:
    calm = [0.1 + 0.001 * (-1) ** i for i in range(20)]
    assert interval([*calm[:-1], 30.0], 0.99)[0] == pytest.approx(0.1, abs=2e-3)


@given(LOGS)
def test_swapping_the_sides_mirrors_the_interval(logs: list[float]) -> None:
    centre, low, high = interval(logs, 0.99)
    mirrored = interval([-x for x in logs], 0.99)
    assert mirrored == pytest.approx((-centre, -high, -low), abs=1e-9)


@given(LOGS)
def test_the_order_of_the_pairs_does_not_matter(logs: list[float]) -> None:
    assert interval(logs, 0.99) == pytest.approx(interval(logs[::-1], 0.99), abs=1e-12)


@given(LOGS, st.floats(0.5, 0.9), st.floats(0.91, 0.9999))
def test_more_confidence_is_a_wider_interval(logs: list[float], less: float, more: float) -> None:
    _c, low, high = interval(logs, less)
    _c, lower, higher = interval(logs, more)
    assert lower <= low
    assert high <= higher


def test_the_aggregate_is_the_geometric_mean_pair_by_pair() -> None:
    logs = {"a": [math.log(2.0)] * 5, "b": [math.log(8.0)] * 5}
    assert aggregate(logs) == pytest.approx([math.log(4.0)] * 5)


@pytest.mark.parametrize("bad", [[0.1] * 4, [0.1, 0.2, math.nan, 0.1, 0.1], [math.inf] * 6])
def test_what_is_no_sample_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="five finite"):
        interval(bad, 0.99)
