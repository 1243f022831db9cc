"""The rules that the bench holds the decision against: they do what they say, or the comparison is not fair."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rivals import PLAIN, Bouts, Fixed, PlainTuners, bouts_of, cheapest_for_all, smallest
from tests.judge.machines import MODELS

ERROR = 0.01 / 30


def shares(model: str, gain: float, trials: int = 400) -> dict[str, float]:
    """Share of trials that each plain rule adopts."""
    adopted = dict.fromkeys(PLAIN, 0)
    for seed in range(trials):
        for rule, yes in PlainTuners(MODELS[model], seed).trial(gain).items():
            adopted[rule] += yes
    return {rule: hits / trials for rule, hits in adopted.items()}


def test_keeping_what_was_faster_once_adopts_half_of_all_ties() -> None:
    found = shares("gaussian 1.1 %", 0.0)
    assert found["keep if faster (mean of 10)"] == pytest.approx(0.5, abs=0.08)
    assert found["3 % rule (median of 10)"] < 0.01


def test_on_a_quiet_machine_every_plain_rule_finds_ten_per_cent() -> None:
    assert set(shares("gaussian 0.3 %", 0.10, 50).values()) == {1.0}


def test_states_of_processes_fool_every_plain_rule() -> None:
    # The candidate's process is faster by 10 % in a quarter of all cases.
    for rule, share in shares("bimodal +-5 %", 0.0).items():
        assert share > 0.18, rule


def test_the_calls_of_the_plain_rules_are_those_that_they_make() -> None:
    tuners = PlainTuners(MODELS["first call 5x"], 1)
    assert set(tuners.trial(0.0)) == set(PLAIN)
    assert tuners.for_ten.calls == PLAIN["keep if faster (mean of 10)"]
    assert tuners.for_signs.calls == PLAIN["sign test (3 pairs)"]


@pytest.mark.parametrize("pairs", [1, 12])
def test_the_bouts_of_a_quiet_machine_are_as_theory_has_them(pairs: int) -> None:
    found = bouts_of(MODELS["gaussian 1.1 %"], pairs, seed=1)
    trimming = (
        1.0 if pairs < 12 else 1.06
    )  # a trimmed mean of six spreads a little more than their mean
    assert found.sd == pytest.approx(trimming * 0.011 * np.sqrt(2 / pairs), rel=0.08)
    assert found.calls == pytest.approx(8 + 2 * pairs, rel=0.02)  # 4 to warm up each process


def test_a_fixed_size_has_the_rates_that_it_is_sized_for() -> None:
    kinds = Bouts(4, 0.07, 16.0)
    rule = smallest(kinds, 0.03, 0.9, ERROR)
    assert rule.adopts(kinds, 0.03, ERROR) >= 0.9
    assert Fixed(rule.bouts - 1, 4).adopts(kinds, 0.03, ERROR) < 0.9
    assert rule.adopts(kinds, 0.0, ERROR) == pytest.approx(ERROR)


def test_a_size_for_all_machines_is_enough_on_each() -> None:
    known = {
        "quiet": {
            pairs: Bouts(pairs, 0.004 / pairs**0.5, 8 + 2 * pairs)
            for pairs in (1, 4, 12, 24, 60, 150)
        },
        "loaded": {
            pairs: Bouts(pairs, 0.4 / pairs**0.5, 42 + 2 * pairs)
            for pairs in (1, 4, 12, 24, 60, 150)
        },
    }
    wanted = {"quiet": (0.03, 0.95), "loaded": (0.10, 0.95)}
    rule = cheapest_for_all(known, wanted, ERROR)
    for machine, (gain, power) in wanted.items():
        assert rule.adopts(known[machine][rule.pairs], gain, ERROR) >= power
