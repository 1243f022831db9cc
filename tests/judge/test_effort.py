"""What a comparison costs, when it is given up, and intervals under load, where little is known of the processes."""

from __future__ import annotations

import math
from functools import partial

import pytest

from benchmarks.rivals import Fixed, bouts_of
from opratchet.judge.decision import (
    GIVE_UP,
    PAIRS,
    TOTAL,
    Rule,
    Tally,
    Verdict,
    looked_for,
    vain_at,
)
from opratchet.judge.duel import calibrate, duel, size_for
from opratchet.judge.robust import Centre, by_turns
from tests.judge.machines import MODELS, WEIGHTS, Machine

RULE = Rule(trials=30)
TRIALS = 12
# The cheapest fixed size with the same error rates on every machine, as `benchmarks.decision` finds it.
FIXED = Fixed(bouts=141, pairs=4)


@pytest.mark.parametrize("model", MODELS)
def test_ties_cost_at_most_half_of_a_fixed_size_that_is_as_good(model: str) -> None:
    calls = 0
    for seed in range(3):
        machine = Machine(MODELS[model], seed)
        spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
        before = machine.calls
        for _ in range(TRIALS):
            machine.begin_trial()
            duel(partial(machine.bout, 0.0), RULE, spread, WEIGHTS)
        calls += machine.calls - before
    fixed = FIXED.calls(bouts_of(MODELS[model], FIXED.pairs, seed=1, count=200))
    assert calls / 3 / TRIALS <= fixed / 2


@pytest.mark.parametrize("count", [1, 2, 6])
def test_where_noise_hides_the_states_of_processes_the_interval_allows_for_them(count: int) -> None:
    missed = 0
    for seed in range(250):
        machine = Machine(MODELS["all together"], seed)
        spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
        machine.begin_trial()
        tally = Tally(WEIGHTS)
        for _ in range(count):
            with machine.bout(0.0) as bout:
                tally.add(bout.take(150))
        low, high = spread.pooled(TOTAL, tally.units[TOTAL]).interval(0.999)
        missed += not low <= 0.0 <= high
    assert missed <= 1


def test_a_worthwhile_gain_is_seldom_given_up() -> None:
    given_up = 0
    for seed in range(100):
        machine = Machine(MODELS["bimodal +-5 %"], seed)
        spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
        machine.begin_trial()
        found = duel(partial(machine.bout, RULE.worthwhile), RULE, spread, WEIGHTS)
        given_up += found.verdict is not Verdict.FASTER
    assert given_up <= 12


def test_a_comparison_is_given_up_where_no_gain_is_so_much_likelier() -> None:
    variance, hope = 1e-4, 0.03
    found = vain_at(variance, hope)
    likelier = ((found - hope) ** 2 - found**2) / (2 * variance)
    assert math.exp(likelier) == pytest.approx(1 / GIVE_UP)


def test_what_is_looked_for_is_what_so_many_pairs_show() -> None:
    quiet, loaded = Centre(0.0, 1e-6, 20), Centre(0.0, 4e-3, 20)
    worthwhile = math.log1p(RULE.worthwhile)
    assert looked_for(quiet, 10, 240, RULE) == worthwhile
    hope = looked_for(loaded, 10, 240, RULE)
    assert hope > worthwhile
    # Four times the pairs in as many bouts: a quarter of the variance, and the same can be shown.
    assert looked_for(Centre(0.0, 1e-3, 20), 40, 960, RULE) == pytest.approx(hope)
    # What is looked for is found with all pairs: its distance from zero is that of the quantiles of both errors.
    error = math.sqrt(loaded.variance * 240 / PAIRS)
    assert 5.0 < hope / error < 6.5


@pytest.mark.parametrize(("needed", "size"), [(0.0, 6), (5, 6), (12, 12), (59, 24), (1e9, 60)])
def test_a_bout_is_as_large_as_is_worth_it(needed: float, size: int) -> None:
    assert size_for(needed) == size


def test_a_few_pairs_are_taken_as_they_are() -> None:
    logs = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    assert by_turns(logs) == logs
    assert len(by_turns(logs * 2)) == 6
