"""The judge tried on the user's own machine: work whose speed is known, compared exactly as a run compares candidates.

Both sides of a comparison do a known number of equal units of work (`lab.selftest_runtime`). Where they do the same, or the
candidate does more, an adoption is false; where the incumbent does more, the candidate is faster by what was planted, and
has to be found. Processes, batches, lock, rule and time limit are those of a run, so what comes out holds for a run here,
under the conditions found.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean, median

from opratchet.contest import CONTEST_SECONDS
from opratchet.errors import OpratchetError
from opratchet.flow.model import StopRules
from opratchet.judge.decision import Rule, Verdict
from opratchet.judge.duel import CALIBRATION, Arena, calibrate, duel
from opratchet.judge.power import Sampling, ToldApart, told_apart
from opratchet.judge.spread import Spread
from opratchet.lab.conditions import together, watch
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.pairs import timing
from opratchet.lab.planted import BoutSeen, PlantedBout, Side
from opratchet.lab.selftest_runtime import UNIT
from opratchet.ledger.plural import counted
from opratchet.ledger.words import Conditions, WorkloadKind
from opratchet.operator.model import Workload
from opratchet.profile.machine import read_machine

KINDS = ("compute", "memory")
# What the candidate is faster by in work: the incumbent has that much more to do, or the candidate where it is below zero.
EFFECTS = (0.0, 0.01, 0.03, 0.10, -0.01, -0.03, -0.10)
# All effects are whole numbers of units where the smaller side has a multiple of so many.
GRAIN = 100
CALL_NS = 250_000
PROBE_UNITS = 1000
# Times the level 2 cache that `memory` reads, so that hardly anything of the last call is left there.
CACHES = 8
UNKNOWN_CACHE = 1 << 20
SIZING_BATCHES = 12
TRIALS = StopRules().max_experiments


@dataclass(frozen=True)
class Options:
    """What is tried.

    Attributes:
        kind: `compute` or `memory`.
        seconds: Wall time after which no comparison is begun.
        seed: Seed of the order of the comparisons.
        rule: The decision rule.
    """

    kind: str = "compute"
    seconds: float = 150.0
    seed: int = 0
    rule: Rule = field(default_factory=lambda: Rule(trials=TRIALS))


@dataclass(frozen=True)
class Tried:
    """One comparison.

    Attributes:
        effect: What was planted, of `EFFECTS`.
        verdict: What the rule said.
        ratio: Speed-up that was found.
        pairs: Pairs of batches it took.
        bouts: Pairs of processes.
        seconds: Wall time.
    """

    effect: float
    verdict: Verdict
    ratio: float
    pairs: int
    bouts: int
    seconds: float

    @property
    def adopted(self) -> bool:
        """Whether a run would have adopted the candidate."""
        return self.verdict is Verdict.FASTER


@dataclass
class Findings:
    """What was found so far.

    Attributes:
        options: What is tried.
        units: Units of work of a call of the side that has less to do.
        call_us: What that call takes, microseconds, measured.
        spread: What fresh processes alone do to a timing; None before the calibration is done.
        bouts: All bouts.
        tried: All comparisons.
        conditions: What the machine did besides, by bout.
        seconds: Wall time of all of it.
        complete: Whether the time was used up, so that nobody stopped it.
    """

    options: Options
    units: int = 0
    call_us: float = 0.0
    spread: Spread | None = None
    bouts: list[BoutSeen] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    conditions: list[Conditions] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = False

    @property
    def not_faster(self) -> list[Tried]:
        """The comparisons whose candidate is no faster, so that each adoption is false."""
        return [one for one in self.tried if one.effect <= 0.0]

    @property
    def sampling(self) -> Sampling:
        """What samples cost and are worth here, on average over all bouts: a noisy one spoils the comparison it is in."""
        pair = fmean(seen.pair_seconds for seen in self.bouts)
        opening = fmean(seen.seconds - seen.pairs * seen.pair_seconds for seen in self.bouts)
        return Sampling(fmean(seen.pair_variance for seen in self.bouts), max(0.0, opening), pair)

    @property
    def pair_noise(self) -> float:
        """Standard deviation of the log ratio of one pair, in a typical bout."""
        return math.sqrt(median(seen.pair_variance for seen in self.bouts))

    @property
    def told_apart(self) -> ToldApart | None:
        """The smallest gain that is found here nine times out of ten; None before the calibration is done."""
        if self.spread is None:
            return None
        return told_apart(self.options.rule, self.spread, self.sampling, CONTEST_SECONDS)

    @property
    def machine(self) -> Conditions | None:
        """What the machine did besides, all bouts together."""
        return together(self.conditions)


class SelfTest:
    """Runs the comparisons. A context manager; `findings` is up to date at any time, also when it is interrupted.

    Args:
        options: What to try.
        tell: Told what is being done.
    """

    def __init__(self, options: Options, tell: Callable[[str], None]) -> None:
        self.findings = Findings(options)
        self.cpu = max(os.sched_getaffinity(0))
        self._tell = tell
        self._begun = time.monotonic()
        self._weights = {options.kind: 1.0}
        self._workload = Workload(options.kind, {}, "uint8", {}, WorkloadKind.TUNE)
        self._memory = os.memfd_create("selftest", os.MFD_CLOEXEC)

    def run(self) -> None:
        """Size the work, learn the noise, then compare until the time is spent.

        Raises:
            OpratchetError: a worker failed.
        """
        try:
            self._run()
        except WorkerFailed as error:
            said = error.log.strip().splitlines()[-1:]
            raise OpratchetError(
                ": ".join([f"a worker of the self-test failed: {error}", *said]),
                fix="It needs two small processes on one CPU and some tens of MiB of memory.",
            ) from None
        finally:
            self.findings.seconds = self._passed

    def _run(self) -> None:
        options, found = self.findings.options, self.findings
        self._tell("sizing the work")
        found.units = self._sized(options.kind)
        self._tell(f"learning the noise: the same work against itself in {CALIBRATION} bouts")
        found.spread, _tally = calibrate(self._arena(0.0), self._weights)
        for effect in effects(options.seed):
            if self._passed >= options.seconds:
                break
            self._tell(f"{counted(len(found.tried), 'comparison')}   now {label(effect)}")
            found.tried.append(self._compare(effect, found.spread))
        found.complete = True

    def _compare(self, effect: float, spread: Spread) -> Tried:
        start = time.monotonic()
        rule = self.findings.options.rule
        decision = duel(self._arena(effect), rule, spread, self._weights, CONTEST_SECONDS)
        return Tried(
            effect=effect,
            verdict=decision.verdict or Verdict.INCONCLUSIVE,
            ratio=decision.ratio.value,
            pairs=decision.ratio.pairs,
            bouts=decision.ratio.processes,
            seconds=time.monotonic() - start,
        )

    def _arena(self, effect: float) -> Arena:
        incumbent, candidate = planted(self.findings.units, effect)

        @contextmanager
        def bout() -> Iterator[PlantedBout]:
            start = time.monotonic()
            with self._open(candidate) as ours, self._open(incumbent) as theirs:
                pids = [ours.worker.process.pid, theirs.worker.process.pid]
                ours.load()
                theirs.load()
                with timing("cpu", self.cpu), watch(self.cpu, pids) as seen:
                    bout = PlantedBout(theirs, ours, self._workload)
                    yield bout
            self.findings.conditions.append(seen.result)
            self.findings.bouts.append(bout.seen(time.monotonic() - start))

        return bout

    def _sized(self, kind: str) -> int:
        """Units of a call: `compute` lasts about `CALL_NS`, `memory` reads more than the cache holds."""
        cache = read_machine().l2 or UNKNOWN_CACHE
        units = PROBE_UNITS if kind == "compute" else math.ceil(CACHES * cache / UNIT)
        ns = self._probe(units)
        if kind == "compute":
            units = round(PROBE_UNITS * CALL_NS / ns)
        whole = max(1, round(units / GRAIN)) * GRAIN
        self.findings.call_us = ns / 1e3 * whole / (PROBE_UNITS if kind == "compute" else units)
        return whole

    def _probe(self, units: int) -> float:
        """Nanoseconds of a call, the least of some batches."""
        with self._open(units) as side, timing("cpu", self.cpu):
            side.load()
            timer = side.timer(self._workload)
            timer.count = timer.size()
            return min(timer.sample().ns for _ in range(SIZING_BATCHES))

    def _open(self, units: int) -> Side:
        return Side(self.findings.options.kind, units, self.cpu, self._memory)

    @property
    def _passed(self) -> float:
        return time.monotonic() - self._begun

    def __enter__(self) -> SelfTest:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._memory)


def planted(units: int, effect: float) -> tuple[int, int]:
    """Units of work of the incumbent and of the candidate.

    Args:
        units: Units of the side that has less to do.
        effect: What the other one has more to do, as a fraction: the incumbent, or the candidate where it is below zero.
    """
    more = round(units * (1 + abs(effect)))
    return (more, units) if effect > 0 else (units, more)


def effects(seed: int) -> Iterator[float]:
    """Effects without end in random order, each once before any comes again."""
    generator = random.Random(seed)
    while True:
        order = list(EFFECTS)
        generator.shuffle(order)
        yield from order


def label(effect: float) -> str:
    """What was planted, in words."""
    if effect == 0.0:
        return "identical"
    return f"{'incumbent' if effect > 0 else 'candidate'} {100 * abs(effect):.0f} % slower"


def by_effect(tried: Sequence[Tried]) -> Mapping[float, list[Tried]]:
    """The comparisons by what was planted, gains first, in the order in which they are shown."""
    order = sorted(EFFECTS, reverse=True)
    return {effect: [one for one in tried if one.effect == effect] for effect in order}
