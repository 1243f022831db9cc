"""A whole comparison on simulated machines: its errors, its power, its cost and its ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from opratchet.judge import duel as room
from opratchet.judge.decision import (
    BOUT_LOOKS,
    CLOSE_BOUTS,
    FIRST_LOOKS,
    TOTAL,
    Decision,
    Logs,
    Rule,
    Verdict,
)
from opratchet.judge.duel import CALIBRATION, PROMISING, Arena, calibrate, duel
from opratchet.judge.spread import Spread
from tests.judge.machines import MODELS, NAME, WEIGHTS, Machine, SimulatedBout

RULE = Rule(trials=30)
QUIET = [name for name, noise in MODELS.items() if noise.sd[1] < 0.1 and not noise.states]
LOADED = ["heavy-tailed", "all together"]
STATES = "bimodal +-5 %"


def known(model: str, seed: int) -> tuple[Machine, Spread]:
    """A machine and its spread, before its first trial."""
    machine = Machine(MODELS[model], seed)
    spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
    return machine, spread


def trial(machine: Machine, spread: Spread, gain: float, rule: Rule = RULE) -> Decision:
    """The next trial."""
    machine.begin_trial()
    return duel(partial(machine.bout, gain), rule, spread, WEIGHTS)


def share_found(model: str, gain: float, trials: int) -> float:
    """Share of single trials that adopt."""
    found = [trial(*known(model, seed), gain).verdict for seed in range(100, 100 + trials)]
    return found.count(Verdict.FASTER) / trials


@pytest.mark.parametrize("model", MODELS)
def test_a_run_of_ties_adopts_none(model: str) -> None:
    for seed in range(2 if model == "all together" else 4):
        machine, spread = known(model, seed)
        verdicts = [trial(machine, spread, 0.0).verdict for _ in range(30)]
        assert Verdict.FASTER not in verdicts
        assert None not in verdicts


@pytest.mark.parametrize("model", MODELS)
def test_a_loss_is_not_adopted(model: str) -> None:
    assert share_found(model, -0.03, 30) == 0.0


@pytest.mark.parametrize("model", QUIET)
def test_a_gain_of_three_per_cent_is_found_on_a_quiet_machine(model: str) -> None:
    assert share_found(model, 0.03, 60) >= 0.95


def test_a_gain_of_three_per_cent_is_found_among_processes_that_differ_by_ten() -> None:
    assert share_found(STATES, 0.03, 50) >= 0.86


@pytest.mark.parametrize("model", LOADED)
def test_a_gain_of_ten_per_cent_is_found_under_load(model: str) -> None:
    assert share_found(model, 0.10, 50) >= 0.92


def test_a_clear_gain_takes_one_bout_and_a_close_one_several() -> None:
    machine, spread = known("gaussian 0.3 %", 1)
    assert trial(machine, spread, 1.0).ratio.processes == 1
    close = trial(machine, spread, 0.10)
    assert close.verdict is Verdict.FASTER
    assert close.ratio.processes >= CLOSE_BOUTS


def test_a_tie_on_a_quiet_machine_takes_the_fewest_samples_there_are() -> None:
    machine, spread = known("gaussian 0.3 %", 1)
    found = trial(machine, spread, 0.0)
    assert found.verdict is Verdict.TIE
    assert (found.ratio.processes, found.ratio.pairs) == (1, FIRST_LOOKS[0])


def test_states_of_processes_never_pass_for_a_gain_in_few_bouts() -> None:
    for seed in range(20):
        machine, spread = known(STATES, seed)
        found = trial(machine, spread, 0.03)
        assert found.verdict is not Verdict.FASTER or found.ratio.processes >= CLOSE_BOUTS


def test_the_bouts_end_where_nothing_can_be_told() -> None:
    @contextmanager
    def undecided() -> Iterator[Turncoat]:
        yield Turncoat(next(counter))

    counter = iter(range(10**6))
    found = duel(undecided, Rule(worthwhile=1e-6, minimum_effect=1e-9), Spread(), WEIGHTS)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.ratio.processes <= BOUT_LOOKS[-1]


class Turncoat:
    """A bout that is clearly faster or clearly slower, in turns."""

    def __init__(self, index: int) -> None:
        self._apart = 0.2 * (-1) ** index
        self._generator = np.random.default_rng(index)

    def take(self, pairs: int) -> Logs:
        """Log ratios around its own centre."""
        return {NAME: self._generator.normal(self._apart, 1e-3, pairs).tolist()}


def test_the_budget_of_time_ends_it_as_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, spread = known(STATES, 5)
    clock = Clock(machine)
    monkeypatch.setattr(room, "time", clock)
    machine.begin_trial()
    found = duel(partial(machine.bout, 0.03), RULE, spread, WEIGHTS, seconds=0.0)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.ratio.processes <= CLOSE_BOUTS
    for gain, limit in ((0.0, 2.0), (0.03, 2.0 * PROMISING)):
        machine.begin_trial()
        start = clock.monotonic()
        duel(partial(machine.bout, gain), RULE, spread, WEIGHTS, seconds=2.0)
        # It looks ahead by what the bouts so far have cost.
        assert clock.monotonic() - start <= 1.25 * limit


def test_a_gain_that_shows_gets_the_time_to_be_made_sure_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for seed in range(20):
        machine, spread = known(STATES, seed)
        clock = Clock(machine)
        monkeypatch.setattr(room, "time", clock)
        machine.begin_trial()
        found.append(duel(partial(machine.bout, 0.08), RULE, spread, WEIGHTS, seconds=0.5))
    assert sum(one.verdict is Verdict.FASTER for one in found) >= 18


def test_a_gain_is_found_where_the_incumbent_is_much_calmer_than_the_baseline_was() -> None:
    """What was learned of the spread on noisy samples is uncertain; it must not make precise ones worthless."""
    for seed in range(10):
        _noisy, spread = known("gaussian 1.1 %", seed)
        calm = Machine(MODELS["gaussian 0.3 %"], seed)
        calm.begin_trial()
        found = duel(partial(calm.bout, 0.20), RULE, spread, WEIGHTS)
        assert found.verdict is Verdict.FASTER
        assert found.ratio.processes <= CLOSE_BOUTS


class Clock:
    """One millisecond for each call of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def monotonic(self) -> float:
        """Seconds."""
        return self._machine.calls * 1e-3


def test_the_spread_learns_from_what_took_several_bouts() -> None:
    machine, spread = known(STATES, 3)
    before = spread.freedom[TOTAL]
    found = trial(machine, spread, 0.03)
    assert found.ratio.processes > 1
    assert before < spread.freedom[TOTAL] <= before + found.ratio.processes - 1


def test_a_calibration_takes_its_bouts_and_counts_them() -> None:
    machine = Machine(MODELS["first call 5x"], 1)
    spread, tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
    assert tally.bouts == CALIBRATION
    assert tally.pairs == CALIBRATION * FIRST_LOOKS[0]
    assert spread.freedom[TOTAL] == CALIBRATION - 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("gain", [0.0, 0.05, 0.3])
def test_swapping_the_sides_mirrors_a_whole_comparison(model: str, gain: float) -> None:
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    rule = Rule(trials=30, two_sided=True)
    answers = []
    for sign in (1, -1):
        machine, spread = known(model, 11)
        machine.begin_trial()
        answers.append(duel(turned(machine, gain, sign), rule, spread, WEIGHTS))
    there, back = answers
    assert back.verdict == opposite.get(there.verdict, there.verdict)  # type: ignore[arg-type]
    assert back.ratio.value == pytest.approx(1 / there.ratio.value)
    assert (back.ratio.pairs, back.ratio.processes) == (there.ratio.pairs, there.ratio.processes)


def turned(machine: Machine, gain: float, sign: int) -> Arena:
    """Bouts of a machine, with the sides swapped where the sign is negative."""

    @contextmanager
    def arena() -> Iterator[Turned]:
        with machine.bout(gain) as bout:
            yield Turned(bout, sign)

    return arena


class Turned:
    """A bout whose sides may be swapped."""

    def __init__(self, bout: SimulatedBout, sign: int) -> None:
        self._bout = bout
        self._sign = sign

    def take(self, pairs: int) -> Logs:
        """Log ratios, of the sides as they are or swapped."""
        taken = self._bout.take(pairs)
        return {name: [self._sign * value for value in values] for name, values in taken.items()}


def test_the_interval_of_a_fixed_number_of_bouts_covers_a_true_gain() -> None:
    hits, total = 0, 150
    for seed in range(total):
        machine, spread = known(STATES, seed)
        machine.begin_trial()
        _own, tally = calibrate(partial(machine.bout, 0.05), WEIGHTS, bouts=8)
        low, high = spread.pooled(TOTAL, tally.units[TOTAL]).interval(0.95)
        hits += low <= math.log1p(0.05) <= high
    assert hits / total >= 0.9


def test_two_rules_on_machines_of_one_seed_meet_the_same_disturbances() -> None:
    one, two = (Machine(MODELS["all together"], 4) for _ in range(2))
    one.times(7)
    for machine in (one, two):
        machine.begin_trial()
    assert [one.process() for _ in range(9)] == [two.process() for _ in range(9)]
    drift = one.noise.drift / 20
    apart = np.concatenate([one.times(3000), one.times(500)]) - two.times(3500)
    # Only the drift tells them apart: it goes by the clock, and the first machine has seen seven calls more.
    assert np.abs(apart) == pytest.approx(7 * drift)
