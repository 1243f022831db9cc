"""Timing two versions against each other: both alive in their own processes, in turns, on one CPU.

What disturbs a timing on a shared machine comes in bursts of milliseconds, so the two sides take turns faster than
that: a batch is short, and both sides of a pair see the same burst. The order is ABBA: whatever grows steadily over time
hits both sides alike. Both run the same number of calls a batch, and a batch of several begins with one that does not
count, because it finds the caches as the other side left them.

What decides is the supervisor's clock around a batch (`lab.flags` says how it gets by without messages). The worker's clock
must agree; it runs in the candidate's process, which can change it.

Before anything counts, each side is warmed until it is steady: batches are run until the last three lie within a few
per cent of each other. The first call is never among them.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from opratchet.operator.model import Workload

BATCH_NS = 1_000_000
LONGEST_NS = 20 * BATCH_NS
MOST_CALLS = 1 << 16
EMPTY_BATCHES = 20  # the first ones find the loop around the calls cold
OVERHEAD = 0.005  # share of a batch that the clock and the loop around the calls may take
STEADY = 0.04
WARM_BATCHES = 20
LOCKS = ("/run/lock", "/tmp")


@dataclass(frozen=True)
class Sample:
    """One timed batch: how many calls, and both clocks' nanoseconds for all of them."""

    count: int
    worker_ns: int
    supervisor_ns: int

    @property
    def ns(self) -> float:
        """Nanoseconds a call by the supervisor's clock; never below a billionth of a second a batch."""
        return max(self.supervisor_ns, 1) / self.count


@dataclass(frozen=True)
class Pair:
    """One batch of each side, taken next to each other."""

    incumbent: Sample
    candidate: Sample


class Batches(Protocol):
    """What is timed: a loaded worker, as far as a timer knows it."""

    def batch(self, workload: Workload, count: int) -> tuple[int, int]:
        """Time `count` calls: nanoseconds by the worker's clock, and by the supervisor's."""

    def reserve(self, workload: Workload, count: int) -> None:
        """Prepare for batches of `count` calls."""


class Timer:
    """Times one workload on one rig, `count` calls a batch; both sides of a comparison get the same count."""

    def __init__(self, rig: Batches, workload: Workload) -> None:
        self._rig = rig
        self._workload = workload
        self.count = 1
        self.sample()

    def size(self) -> int:
        """Calls that make a batch; found by growing, as one call may be below the clock's resolution."""
        wanted = self.shortest_batch()
        self.count = 1
        while True:
            taken = min(self.sample(), self.sample(), key=lambda sample: sample.ns)
            if taken.supervisor_ns >= wanted // 4 or self.count >= MOST_CALLS:
                return max(1, round(wanted / taken.ns))
            self.count *= 4

    def reserve(self, count: int) -> None:
        """From here on batches of `count` calls."""
        self._rig.reserve(self._workload, count)
        self.count = count

    def shortest_batch(self) -> int:
        """Nanoseconds of a batch: `BATCH_NS`, more where the clock and what stands around the calls would show in it.

        An empty batch takes what reading the clock twice and beginning the loop take; where it takes much longer, a loaded
        machine has not let one of the two run, and longer batches would not help.
        """
        empty = [self._rig.batch(self._workload, 0)[1] for _ in range(EMPTY_BATCHES)]
        resolution = round(time.get_clock_info("perf_counter").resolution * 1e9)
        return min(max(BATCH_NS, round((min(empty) + resolution) / OVERHEAD)), LONGEST_NS)

    def warm_up(self) -> None:
        """Run batches until they are steady."""
        recent: list[float] = []
        for _ in range(WARM_BATCHES):
            recent = [*recent[-2:], self.sample().ns]
            if len(recent) == 3 and max(recent) <= min(recent) * (1 + STEADY):
                return

    def sample(self) -> Sample:
        """Time one batch; in front of several calls goes one that does not count."""
        if self.count > 1:
            self._rig.batch(self._workload, 1)
        worker_ns, supervisor_ns = self._rig.batch(self._workload, self.count)
        return Sample(self.count, worker_ns, supervisor_ns)


def pairs(incumbent: Timer, candidate: Timer) -> Iterator[Pair]:
    """Pairs without end, in ABBA order, after both sides were sized and warmed."""
    count = max(incumbent.size(), candidate.size())
    incumbent.reserve(count)
    candidate.reserve(count)
    incumbent.warm_up()
    candidate.warm_up()
    while True:
        first = incumbent.sample()
        yield Pair(first, candidate.sample())
        second = candidate.sample()
        yield Pair(incumbent.sample(), second)


@contextmanager
def timing(device: str, cpu: int) -> Iterator[None]:
    """Hold the lock of a CPU, and keep this thread off it as long as there is another: it watches while batches run."""
    allowed = os.sched_getaffinity(0)
    with device_lock(f"{device}{cpu}"):
        os.sched_setaffinity(0, allowed - {cpu} or allowed)
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)


@contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold the machine-wide lock of a device, so that two runs take turns and no two timings overlap."""
    with _opened(lock_folder() / f"opratchet-{device}.lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lock_folder() -> Path:
    """Where all runs of this machine look, whatever folder each was given for its temporary files.

    `OPRATCHET_LOCKS` names another one, e.g. one that several containers share.
    """
    places = [os.environ.get("OPRATCHET_LOCKS", ""), *LOCKS]
    usable = (Path(place) for place in places if place and os.access(place, os.W_OK | os.X_OK))
    return next(usable, Path(tempfile.gettempdir()))


def _opened(path: Path) -> IO[str]:
    """The file, made where it is missing. One of another user is only read: in such folders the system allows no more."""
    try:
        return path.open("r")
    except FileNotFoundError:
        file = path.open("a+")
        path.chmod(0o644)
        return file
