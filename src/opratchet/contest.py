"""Gates 4 to 6 for two builds: bouts between fresh pairs of processes, every one of them checked and watched.

`duel` decides when to sample what; here is what it samples. In a bout, both builds run in a fresh process each, on the same
memory and CPU. The candidate's outputs are compared with the golden before its first timing on every workload, and after
its timed calls in every bout, so that one which is right only until it is timed is caught.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from opratchet.gates import GateClosed, check_accuracy, check_signature, verify
from opratchet.judge.decision import (
    DOUBTLESS,
    FIRST_LOOKS,
    TOTAL,
    Logs,
    Rule,
    Tally,
    Verdict,
    ratio_of,
)
from opratchet.judge.duel import CALIBRATION, calibrate, duel
from opratchet.judge.floor import below_floor, impossible
from opratchet.judge.integrity import clocks_disagree
from opratchet.judge.robust import by_turns, trimmed
from opratchet.judge.spread import Spread
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.conditions import together, watch
from opratchet.lab.latency import latency
from opratchet.lab.pairs import Pair, Timer, pairs, timing
from opratchet.lab.rig import Rig
from opratchet.lab.ring import Ring
from opratchet.ledger.words import Accuracy, Conditions, Latency, Outcome, Ratio

CONTEST_SECONDS = 8.0
FINAL_BOUTS = 8

Samples = dict[str, list[list[float]]]
"""Nanoseconds a call by workload, one list a bout."""


@dataclass
class Comparison:
    """What timing two builds against each other gave.

    Attributes:
        verdict: Answer for the candidate.
        ratio: Aggregate speed-up over the workloads (weighted geometric mean).
        ratios: Speed-up by workload.
        slower: Workloads on which the candidate is credibly slower.
        incumbent: Latency of the incumbent by workload.
        candidate: Latency of the candidate by workload.
        accuracy: Comparison with the golden, of fresh calls and of timed ones.
        conditions: What the machine did besides.
        seconds: Wall time by kind: `accuracy`, `measure`.
    """

    verdict: Verdict
    ratio: Ratio
    ratios: dict[str, Ratio]
    slower: Sequence[str]
    incumbent: dict[str, Latency]
    candidate: dict[str, Latency]
    accuracy: list[Accuracy]
    conditions: Conditions | None
    seconds: dict[str, float]


@dataclass
class Match:
    """A meeting of two builds: opens its bouts, and keeps what they left behind. A context manager.

    Attributes:
        lab: Where they run.
        incumbent: The one to beat.
        candidate: The one that is checked.
        accuracy: Comparisons with the golden so far.
        theirs: Samples of the incumbent.
        ours: Samples of the candidate.
        conditions: What the machine did during the latest bout.
    """

    lab: Lab
    incumbent: Build
    candidate: Build
    accuracy: list[Accuracy] = field(default_factory=list)
    theirs: Samples = field(default_factory=dict)
    ours: Samples = field(default_factory=dict)
    conditions: list[Conditions] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_signature(self.incumbent, self.candidate)
        self._memory: dict[str, Ring] = {}
        self._begun = time.monotonic()
        self._checking = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each tune workload."""
        return {workload.id: workload.weight for workload in self.lab.operator.tuned}

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time so far by kind."""
        measure = time.monotonic() - self._begun - self._checking
        return {"accuracy": self._checking, "measure": measure}

    @contextmanager
    def bout(self) -> Iterator[LabBout]:
        """One pair of fresh processes, warmed up.

        Raises:
            GateClosed: the candidate is inaccurate or caught.
            WorkerFailed: it crashed, hung or ran out of memory.
        """
        with (
            self.lab.open(self.candidate, watched=True) as ours,
            self.lab.open(self.incumbent) as theirs,
        ):
            with self._clock():
                self._load(ours, theirs)
            with (
                timing(self.lab.backend.device(), self.lab.cpu),
                watch(self.lab.cpu, [ours.worker.pid, theirs.worker.pid]) as seen,
            ):
                bout = LabBout(self.lab, theirs, ours, lambda: self._judge(ours))
                yield bout
                bout.last_calls()
                require_regular(ours)
            self.conditions.append(seen.result)
            self._keep(bout)

    def _judge(self, ours: Rig) -> None:
        """Compare what was kept of the candidate's timed calls with the golden."""
        with self._clock():
            for workload, call in ours.judged():
                self.accuracy += check_accuracy(self.lab.operator, workload, call)

    def _load(self, ours: Rig, theirs: Rig) -> None:
        """Load both; in the first bout the candidate is checked on every workload."""
        for workload in self.lab.operator.tuned:
            if workload.id not in self._memory:
                artifact = self.candidate.artifacts[workload.id]
                self._memory[workload.id] = self.lab.memory(workload, artifact)
            ours.load(workload, self._memory[workload.id])
            theirs.load(workload, self._memory[workload.id])
        if not self.accuracy:
            self.accuracy += verify(self.lab, ours, theirs)

    def _keep(self, bout: LabBout) -> None:
        for name, taken in bout.taken.items():
            require_above_floor(self.lab, self.candidate, name, taken)
            self.theirs.setdefault(name, []).append([pair.incumbent.ns for pair in taken])
            self.ours.setdefault(name, []).append([pair.candidate.ns for pair in taken])
        if suspicion(bout) and (proved := self._suspected_again()):
            raise GateClosed(Outcome.CHEATED, proved)

    def _suspected_again(self) -> str:
        """The evidence of a second look, in fresh processes: a loaded machine can delay one side's messages for a while."""
        with self.lab.open(self.candidate) as ours, self.lab.open(self.incumbent) as theirs:
            self._load(ours, theirs)
            with timing(self.lab.backend.device(), self.lab.cpu):
                bout = LabBout(self.lab, theirs, ours, lambda: None)
                bout.take(FIRST_LOOKS[1])
        return suspicion(bout)

    @contextmanager
    def _clock(self) -> Iterator[None]:
        """Book what is done inside as accuracy."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._checking += time.monotonic() - start

    def __enter__(self) -> Match:
        return self

    def __exit__(self, *_error: object) -> None:
        for ring in self._memory.values():
            ring.close()


class LabBout:
    """Two loaded rigs in turns.

    Args:
        lab: Where they run.
        theirs: The incumbent.
        ours: The candidate.
        judge: Judges what was kept of the candidate's calls; called after each look, while nothing is timed.

    Attributes:
        taken: All pairs so far by workload.
    """

    def __init__(self, lab: Lab, theirs: Rig, ours: Rig, judge: Callable[[], None]) -> None:
        self._judge = judge
        self._tuned = lab.operator.tuned
        self.taken: dict[str, list[Pair]] = {w.id: [] for w in self._tuned}
        self._rig, self._their_rig = ours, theirs
        self._ours = {w.id: Timer(ours, w) for w in self._tuned}
        self._streams = {w.id: pairs(Timer(theirs, w), self._ours[w.id]) for w in self._tuned}

    def take(self, count: int) -> Logs:
        """Time this many more pairs of each workload: log ratios in ABBA order.

        Raises:
            GateClosed: a worker sends what cannot be a time, or a timed call was wrong.
        """
        logs: dict[str, list[float]] = {}
        for name, stream in self._streams.items():
            more = list(islice(stream, count))
            require_possible(name, more)
            logs[name] = [math.log(pair.incumbent.ns / pair.candidate.ns) for pair in more]
            self.taken[name] += more
        self._judge()
        return logs

    def out_of_turn(self) -> str:
        """Evidence that the candidate computes when it should not, or does not when it should; or an empty text."""
        ours, theirs = self._rig.worker, self._their_rig.worker
        return ours.progress.evidence() or ours.effort.busier(theirs.effort)

    def last_calls(self) -> None:
        """One more batch of the candidate on every workload, of which one call is kept: so each bout is looked into."""
        for workload in self._tuned:
            self._ours[workload.id].sample()
            self._rig.keep_one(workload)
        self._judge()


def require_possible(name: str, taken: Sequence[Pair]) -> None:
    """Gate 5: every batch took a time that there is.

    Raises:
        GateClosed: one did not.
    """
    for sample in (side for pair in taken for side in (pair.incumbent, pair.candidate)):
        for taken_ns in (sample.worker_ns, sample.supervisor_ns):
            if wrong := impossible(taken_ns, "ns", f"{name}: a batch of {sample.count} calls"):
                raise GateClosed(Outcome.PROFILE_INVALID, wrong)


def require_regular(rig: Rig) -> None:
    """Gate 5: the candidate's process is what it was before the kernel was loaded.

    Raises:
        GateClosed: it is not.
    """
    if evidence := rig.worker.irregular():
        raise GateClosed(Outcome.CHEATED, f"the process that calls the kernel: {evidence}")


def suspicion(bout: LabBout) -> str:
    """Gate 5: evidence that the candidate's clock lies, or that it computes out of turn; or an empty text."""
    if evidence := bout.out_of_turn():
        return evidence
    for name, taken in bout.taken.items():
        inside = [math.log(p.incumbent.worker_ns / p.candidate.worker_ns) for p in taken]
        outside = [math.log(p.incumbent.ns / p.candidate.ns) for p in taken]
        if evidence := clocks_disagree(_ratio(inside), _ratio(outside)):
            return f"{name}: {evidence}"
    return ""


def require_above_floor(lab: Lab, candidate: Build, name: str, taken: Sequence[Pair]) -> None:
    """Gate 5: no latency is below what the machine can do.

    Raises:
        GateClosed: one is, with the arithmetic.
    """
    workload = next(w for w in lab.operator.tuned if w.id == name)
    floor = lab.backend.floor(lab.operator, workload, candidate.artifacts[name])
    measured = math.exp(trimmed([math.log(p.candidate.ns) for p in taken]).value) / 1e3
    if evidence := below_floor(measured, floor):
        raise GateClosed(Outcome.PROFILE_INVALID, f"{name}: {evidence}")


CLOCK_CONFIDENCE = 0.99999


def _ratio(logs: Sequence[float]) -> Ratio:
    return ratio_of(trimmed(by_turns(logs)), len(logs), 1, CLOCK_CONFIDENCE)


def contest(lab: Lab, incumbent: Build, candidate: Build, rule: Rule, spread: Spread) -> Comparison:
    """Whether the candidate is faster.

    Raises:
        GateClosed: the candidate is inaccurate or caught, before or in its timed calls.
        WorkerFailed: the candidate crashed, hung or ran out of memory.
    """
    with Match(lab, incumbent, candidate) as match:
        found = duel(match.bout, rule, spread, match.weights, CONTEST_SECONDS)
        verdict = found.verdict or Verdict.INCONCLUSIVE
        return _comparison(match, verdict, found.ratio, found.ratios, found.slower, spread)


def measured_against(
    lab: Lab, incumbent: Build, candidate: Build, spread: Spread | None, bouts: int | None = None
) -> tuple[Comparison, Spread]:
    """The speed-up from a fixed number of bouts: what a figure to be reported needs, as the decision itself favours winners.

    Without a spread, that of these bouts alone counts, and is given. There are `FINAL_BOUTS` of them unless told otherwise.

    Raises:
        GateClosed: the candidate is inaccurate or caught.
        WorkerFailed: it crashed, hung or ran out of memory.
    """
    with Match(lab, incumbent, candidate) as match:
        own, tally = calibrate(match.bout, match.weights, bouts or FINAL_BOUTS)
        known = own if spread is None else spread
        ratios = fixed_ratios(tally, known)
        total = ratios.pop(TOTAL)
        verdict = Verdict.FASTER if total.low > 1.0 else Verdict.INCONCLUSIVE
        slower = [name for name, ratio in ratios.items() if ratio.high < 1.0]
        return _comparison(match, verdict, total, ratios, slower, known), own


def fixed_ratios(tally: Tally, spread: Spread) -> dict[str, Ratio]:
    """Ratios by workload, and for the aggregate, where the number of bouts was fixed beforehand."""
    return {
        name: ratio_of(spread.pooled(name, units), tally.pairs, tally.bouts, DOUBTLESS)
        for name, units in tally.units.items()
    }


def _comparison(
    match: Match,
    verdict: Verdict,
    total: Ratio,
    ratios: Mapping[str, Ratio],
    slower: Sequence[str],
    spread: Spread,
) -> Comparison:
    def latencies(samples: Samples) -> dict[str, Latency]:
        return {name: latency(taken, spread.variance(name) / 2) for name, taken in samples.items()}

    return Comparison(
        verdict=verdict,
        ratio=total,
        ratios=dict(ratios),
        slower=slower,
        incumbent=latencies(match.theirs),
        candidate=latencies(match.ours),
        accuracy=match.accuracy,
        conditions=together(match.conditions),
        seconds=match.seconds,
    )


def learn_noise(lab: Lab, build: Build) -> tuple[Comparison, Spread]:
    """A build against itself in `CALIBRATION` bouts: its latency, and what "no change" looks like on this machine."""
    return measured_against(lab, build, build, None, CALIBRATION)
