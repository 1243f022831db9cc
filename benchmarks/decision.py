"""How often the decision is wrong, how often it finds a gain and what it costs, on simulated machines with the truth known.

    python -m benchmarks.decision [--runs 2000] [--seed 0] [--only MODEL] [--jobs 2]

For each model of a machine (`tests/judge/machines.py`):

- `runs` runs of a calibration and 30 trials, all of exact ties: of all candidates that are no better, these are the hardest to
  tell from a gain. A run is wrong when it adopts any.
- as many single trials each of a true gain of 3 %, a gain of 10 % and a loss of 3 %, each after a calibration of its own, which
  is the hardest case: in a run, later trials know more of the noise.

Calls are timed batches, warm-up included. The calibration's are spread over the 30 trials of a run. The plain rules meet the same
machines: same processes, same disturbances, call after call. Those with ten calls of each count the first
call of a process, as tuners without a warm-up do; the sign test leaves it out.

A fixed-size rule takes so many pairs of so many fresh pairs of processes and knows the true standard error of their mean. It is
sized for an error of 0.01 / 30 a trial and for the gain that must be found. Its rates are computed, not simulated. Sized for one
model it would have to know beforehand what machine it runs on; one that does not has to be sized for all of them, and
ours must spend at most half of that one's calls in a run of 29 trials without a gain and one with 3 %.

Exit status 1 when anything that must hold does not; with few runs that can be chance.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial

from benchmarks.rivals import PLAIN, Census, Fixed, PlainTuners, census, cheapest, cheapest_for_all
from opratchet.judge.decision import Rule, Verdict
from opratchet.judge.duel import calibrate, duel
from opratchet.judge.power import share_interval
from opratchet.judge.spread import Spread
from tests.judge.machines import MODELS, WEIGHTS, Machine

TRIALS = 30
RULE = Rule(trials=TRIALS)
ERROR = RULE.run_error / TRIALS
GAINS = (0.03, 0.10, -0.03)
OURS = "opratchet"
CHUNK = 20
SINGLES = 10**6  # seeds of the single trials begin here

# What must hold.
MOST_RUNS_WRONG = 0.01
MOST_LOSSES = 0.001
MOST_CALLS = 0.5
FOUND = dict.fromkeys(MODELS, (0.03, 0.95)) | {
    "bimodal +-5 %": (0.03, 0.90),
    "drift 1 % a trial": (0.03, 0.90),
    "heavy-tailed": (0.10, 0.95),
    "all together": (0.10, 0.95),
}


@dataclass
class Cell:
    """What was counted on one model; keys of the counters are a rule, and a gain where it depends on that (0: ties).

    Attributes:
        runs: Runs of ties.
        wrong_runs: Runs that adopted any tie, by rule.
        adopted: Trials that adopted, by rule and gain.
        trials: Trials by gain.
        calls: Calls of our trials by gain.
        calibration: Calls of all calibrations of the runs.
    """

    runs: int = 0
    wrong_runs: Counter[str] = field(default_factory=Counter)
    adopted: Counter[tuple[str, float]] = field(default_factory=Counter)
    trials: Counter[float] = field(default_factory=Counter)
    calls: Counter[float] = field(default_factory=Counter)
    calibration: int = 0

    def add(self, other: Cell) -> None:
        """Take in what was counted elsewhere."""
        self.runs += other.runs
        self.calibration += other.calibration
        self.wrong_runs += other.wrong_runs
        self.adopted += other.adopted
        self.trials += other.trials
        self.calls += other.calls

    def share(self, rule: str, gain: float) -> float:
        """Share of trials that adopted."""
        return self.adopted[rule, gain] / self.trials[gain]

    def calls_a_trial(self, gain: float) -> float:
        """Mean calls of one of our trials, with its part of the calibration."""
        return self.calls[gain] / self.trials[gain] + self.calibration / self.runs / TRIALS

    @property
    def calls_in_a_run(self) -> float:
        """Mean calls of one of our trials in a run of 29 ties and one gain of 3 %."""
        return ((TRIALS - 1) * self.calls_a_trial(0.0) + self.calls_a_trial(GAINS[0])) / TRIALS


def ours(machine: Machine, spread: Spread, gain: float) -> tuple[bool, int]:
    """Whether our rule adopts in the next trial, and the calls that it took."""
    machine.begin_trial()
    before = machine.calls
    decision = duel(partial(machine.bout, gain), RULE, spread, WEIGHTS)
    return decision.verdict is Verdict.FASTER, machine.calls - before


def run_of_ties(model: str, seed: int) -> Cell:
    """One run of exact ties, by all rules."""
    machine, others = Machine(MODELS[model], seed), PlainTuners(MODELS[model], seed)
    spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
    cell = Cell(runs=1, calibration=machine.calls)
    for _ in range(TRIALS):
        _count(cell, 0.0, *ours(machine, spread, 0.0), others.trial(0.0))
    cell.wrong_runs.update(rule for rule, _gain in cell.adopted)
    return cell


def single_trials(model: str, seed: int) -> Cell:
    """One trial of each gain, each after a calibration of its own, by all rules."""
    cell = Cell()
    for gain in GAINS:
        machine, others = Machine(MODELS[model], seed), PlainTuners(MODELS[model], seed)
        spread, _tally = calibrate(partial(machine.bout, 0.0), WEIGHTS)
        _count(cell, gain, *ours(machine, spread, gain), others.trial(gain))
    return cell


def _count(cell: Cell, gain: float, adopts: bool, calls: int, others: Mapping[str, bool]) -> None:
    cell.trials[gain] += 1
    cell.calls[gain] += calls
    cell.adopted.update((rule, gain) for rule, yes in {OURS: adopts, **others}.items() if yes)


def count(model: str, seeds: range) -> tuple[str, Cell]:
    """Runs of ties and single trials with these seeds."""
    cell = Cell()
    for seed in seeds:
        cell.add(run_of_ties(model, seed))
        cell.add(single_trials(model, SINGLES + seed))
    return model, cell


def count_all(models: Iterable[str], runs: int, seed: int, jobs: int) -> dict[str, Cell]:
    """All cells; tells on stderr how far it is."""
    first = seed * 2 * SINGLES
    chunks = [range(at, min(at + CHUNK, first + runs)) for at in range(first, first + runs, CHUNK)]
    cells = {model: Cell() for model in models}
    start = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        # The slow models first, or one of them is left for a single process at the end.
        todo = [(m, c) for m in sorted(cells, key=lambda m: -MODELS[m].states) for c in chunks]
        waiting = [pool.submit(count, model, chunk) for model, chunk in todo]
        for done, future in enumerate(as_completed(waiting), 1):
            model, part = future.result()
            cells[model].add(part)
            passed = time.monotonic() - start
            print(f"\r{done} of {len(todo)} parts, {passed:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    return cells


@dataclass(frozen=True)
class Sized:
    """The fixed-size rules for one model.

    Attributes:
        known: The cheapest one that knows the model.
        unknown: The cheapest one that is enough on every model.
    """

    known: Fixed
    unknown: Fixed


HEAD = (
    "| model | rule | ties adopted | runs with one, 95 % upper end | 3 % gain found | 10 % found | 3 % loss adopted "
    "| calls a tie | calls a 3 % gain | ours / its calls in a run |\n|" + "---|" * 10
)


def table(cells: dict[str, Cell], known: Census, sized: dict[str, Sized]) -> Iterator[str]:
    """The table, line by line."""
    yield HEAD
    for model, cell in cells.items():
        costs = [cell.calls_a_trial(gain) for gain in (0.0, GAINS[0])]
        yield _counted_line(model, OURS, cell, *costs)
        for rule, calls in PLAIN.items():
            yield _counted_line(model, rule, cell, calls, calls)
        yield _fixed_line(model, "fixed size, model known", sized[model].known, cell, known)
        yield _fixed_line(model, "fixed size, for all models", sized[model].unknown, cell, known)


def _counted_line(model: str, rule: str, cell: Cell, tie: float, gain: float) -> str:
    wrong = cell.wrong_runs[rule]
    upper = share_interval(wrong, cell.runs)[1]
    shares = [f"{cell.share(rule, of):.2%}" for of in (0.0, *GAINS)]
    runs = f"{wrong / cell.runs:.2%}, {upper:.2%}"
    return _line(model, rule, shares[0], runs, *shares[1:], f"{tie:.0f}", f"{gain:.0f}", "")


def _fixed_line(model: str, rule: str, fixed: Fixed, cell: Cell, known: Census) -> str:
    kinds = known[model][fixed.pairs]
    shares = [f"{fixed.adopts(kinds, of, ERROR):.2%}" for of in (0.0, *GAINS)]
    name = f"{rule}: {fixed.bouts} x {fixed.pairs} pairs"
    calls = f"{fixed.calls(kinds):.0f}"
    ratio = f"{cell.calls_in_a_run / fixed.calls(kinds):.2f}"
    run = f"{1 - (1 - ERROR) ** TRIALS:.2%}"
    return _line(model, name, shares[0], run, *shares[1:], calls, calls, ratio)


def _line(*columns: str) -> str:
    return f"| {' | '.join(columns)} |"


def missed(cells: dict[str, Cell], known: Census, sized: dict[str, Sized]) -> Iterator[str]:
    """What must hold and does not."""
    for model, cell in cells.items():
        wrong = cell.wrong_runs[OURS] / cell.runs
        if wrong > MOST_RUNS_WRONG:
            yield f"{model}: {wrong:.2%} of runs adopt a tie, at most {MOST_RUNS_WRONG:.0%} may"
        gain, power = FOUND[model]
        if (found := cell.share(OURS, gain)) < power:
            yield f"{model}: {found:.1%} of gains of {gain:.0%} are found, at least {power:.0%} must be"
        if (losses := cell.share(OURS, GAINS[-1])) > MOST_LOSSES:
            yield f"{model}: {losses:.2%} of losses of 3 % are adopted, at most {MOST_LOSSES:.1%} may be"
        fixed = sized[model].unknown
        ratio = cell.calls_in_a_run / fixed.calls(known[model][fixed.pairs])
        if ratio > MOST_CALLS:
            yield f"{model}: {ratio:.2f} of the fixed size's calls, at most {MOST_CALLS} may be spent"


def main() -> None:
    """Count, print the table and what does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(MODELS), default=None)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    models = [arguments.only] if arguments.only else list(MODELS)
    known = census(arguments.seed)
    unknown = cheapest_for_all(known, FOUND, ERROR)
    sized = {m: Sized(cheapest(known[m], *FOUND[m], ERROR), unknown) for m in models}
    cells = count_all(models, arguments.runs, arguments.seed, arguments.jobs)
    print(f"{arguments.runs} runs of {TRIALS} ties and {arguments.runs} single trials a gain\n")
    print("\n".join(table(cells, known, sized)))
    wrong = list(missed(cells, known, sized))
    print("\nEverything that must hold does." if not wrong else "\nDoes not hold:")
    for line in wrong:
        print(f"- {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
