"""The judge of commands on drawn turns: its error, its power, and what must not change its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.compare import rule_for
from opratchet.judge.decision import Decision, Rule, Tally, Verdict, judge
from opratchet.judge.spread import Spread
from opratchet.judge.turns import LOOKS, judge_turns, looks_until

RULE = rule_for(0.01)
MIRROR = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
Draw = Callable[[np.random.Generator], np.ndarray]


def gaussian(generator: np.random.Generator) -> np.ndarray:
    """Log disturbances of the four runs of a turn on a quiet machine."""
    return generator.normal(0.0, 0.005, 4)


def two_states(generator: np.random.Generator) -> np.ndarray:
    """Each process is 5 % faster or slower for its life."""
    return generator.normal(0.0, 0.003, 4) + 0.05 * (2 * generator.integers(0, 2, 4) - 1)


def loaded(generator: np.random.Generator) -> np.ndarray:
    """A loaded machine, where some runs take three times as long."""
    return generator.normal(0.0, 0.1, 4) + math.log(3) * (generator.random(4) < 0.03)


def turns(draw: Draw, gain: float, seed: int) -> Iterator[float]:
    """Turns without end."""
    generator = np.random.default_rng(seed)
    while True:
        first, second, third, fourth = draw(generator)
        yield float(first - second + fourth - third) / 2 + math.log1p(gain)


def verdicts(draw: Draw, gain: float, runs: int) -> list[Verdict | None]:
    """The answers to many comparisons."""
    found = (judge_turns(turns(draw, gain, seed), RULE, LOOKS) for seed in range(runs))
    return [decision.verdict if decision else None for decision in found]


@pytest.mark.parametrize("draw", [gaussian, two_states, loaded])
def test_equal_commands_are_hardly_ever_told_apart(draw: Draw) -> None:
    answers = verdicts(draw, 0.0, 300)
    assert answers.count(Verdict.FASTER) + answers.count(Verdict.SLOWER) <= 7


@pytest.mark.parametrize(
    ("draw", "gain"), [(gaussian, 0.03), (two_states, 0.03), (loaded, 0.1), (loaded, 0.5)]
)
def test_a_difference_is_found_both_ways(draw: Draw, gain: float) -> None:
    assert verdicts(draw, gain, 60).count(Verdict.FASTER) >= 57
    assert verdicts(draw, 1 / (1 + gain) - 1, 60).count(Verdict.SLOWER) >= 57


def test_equal_commands_on_a_quiet_machine_are_a_tie() -> None:
    assert verdicts(gaussian, 0.0, 60).count(Verdict.TIE) >= 57


@pytest.mark.parametrize("gain", [0.005, -0.005])
def test_a_difference_below_the_minimum_effect_is_a_tie_both_ways(gain: float) -> None:
    def precise(generator: np.random.Generator) -> np.ndarray:
        return generator.normal(0.0, 1e-4, 4)

    assert set(verdicts(precise, gain, 20)) == {Verdict.TIE}


def judged(values: list[float], rule: Rule = RULE) -> Decision | None:
    """The answer to a finite list of turns."""
    return judge_turns(iter(values), rule, LOOKS)


LOGS = st.lists(st.floats(-1, 1), min_size=6, max_size=30)


@settings(deadline=None)
@given(LOGS, st.floats(-0.5, 0.5))
def test_swapping_the_commands_mirrors_the_answer(values: list[float], shift: float) -> None:
    one, other = judged([x + shift for x in values]), judged([-x - shift for x in values])
    assert one is not None
    assert other is not None
    assert other.verdict is MIRROR.get(one.verdict, one.verdict)
    assert one.ratio.value * other.ratio.value == pytest.approx(1.0)
    assert one.ratio.low * other.ratio.high == pytest.approx(1.0)


@pytest.mark.parametrize("count", range(6))
def test_fewer_turns_than_can_be_judged_have_no_answer(count: int) -> None:
    assert judged([0.5] * count) is None


def test_the_order_of_looks_ends_at_the_limit() -> None:
    assert looks_until(6) == (6,)
    assert looks_until(30) == (6, 12, 24, 30)
    assert looks_until(192) == LOOKS
    with pytest.raises(ValueError, match="too few"):
        looks_until(5)


def test_what_comes_before_time_is_up_is_judged() -> None:
    clear = [0.05, 0.051, 0.02, 0.08, 0.01, 0.06, 0.05, 0.05, 0.05]
    assert judged(clear[:6]).verdict is Verdict.INCONCLUSIVE  # type: ignore[union-attr]
    late = judged(clear)
    assert late is not None
    assert late.ratio.pairs == 18
    assert late.verdict is Verdict.FASTER


def test_sampling_stops_as_soon_as_the_answer_is_clear() -> None:
    taken = 0

    def count() -> Iterator[float]:
        nonlocal taken
        while True:
            taken += 1
            yield 0.5 + 0.001 * (-1) ** taken

    found = judge_turns(count(), RULE, LOOKS)
    assert found is not None
    assert found.verdict is Verdict.FASTER
    assert taken == 6


@pytest.mark.parametrize(
    ("gain", "expected"),
    [(0.005, Verdict.TIE), (-0.005, Verdict.TIE), (0.05, Verdict.FASTER), (-0.05, Verdict.SLOWER)],
)
def test_processes_are_judged_alike_both_ways(gain: float, expected: Verdict) -> None:
    tally = Tally({"n64": 1.0})
    for bout in range(8):
        tally.add({"n64": [gain + 1e-5 * ((bout + turn) % 3) for turn in range(24)]})
    found = judge(tally, RULE, Spread())
    assert found.verdict is expected
    assert found.slower == (("n64",) if expected is Verdict.SLOWER else ())
