"""Timing two versions against each other: both alive in their own processes, in turns, on one CPU.

Before anything counts, each side is warmed until it is steady: batches are run until the last three lie within a few
per cent of each other, and the first call is never among them. The batch is then sized so that the clock and the call
itself are a small part of it. Pairs are taken in ABBA order: whatever grows steadily over time hits both sides alike.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opratchet.lab.bench import Rig
from opratchet.operator.model import Workload

BATCH_NS = 4_000_000
STEADY = 0.04
WARM_BATCHES = 12


@dataclass(frozen=True)
class Sample:
    """One timed batch: how many calls, and both clocks' nanoseconds for all of them."""

    count: int
    worker_ns: int
    supervisor_ns: int

    @property
    def ns(self) -> float:
        """Nanoseconds a call."""
        return self.worker_ns / self.count


@dataclass(frozen=True)
class Pair:
    """One batch of each side, taken next to each other."""

    incumbent: Sample
    candidate: Sample


class Timer:
    """Times one workload on one rig in batches of a fixed size, warmed up on construction."""

    def __init__(self, rig: Rig, workload: Workload) -> None:
        self._rig = rig
        self._workload = workload
        rig.batch(workload, 1)
        self.count = _batch_size(rig, workload)
        self._warm_up()

    def _warm_up(self) -> None:
        recent: list[float] = []
        for _ in range(WARM_BATCHES):
            recent = [*recent[-2:], self.sample().ns]
            if len(recent) == 3 and max(recent) <= min(recent) * (1 + STEADY):
                return

    def sample(self) -> Sample:
        """Time one batch."""
        worker_ns, supervisor_ns = self._rig.batch(self._workload, self.count)
        return Sample(self.count, worker_ns, supervisor_ns)


def _batch_size(rig: Rig, workload: Workload) -> int:
    """Calls a batch, so that a batch lasts about `BATCH_NS`; found by doubling, as one call may be below the clock."""
    count = 1
    while True:
        worker_ns, _ = rig.batch(workload, count)
        if worker_ns >= BATCH_NS // 4 or count >= 1 << 16:
            return max(1, round(count * BATCH_NS / max(worker_ns, 1)))
        count *= 4


def pairs(incumbent: Timer, candidate: Timer) -> Iterator[Pair]:
    """Pairs without end, in ABBA order."""
    while True:
        first = incumbent.sample()
        yield Pair(first, candidate.sample())
        second = candidate.sample()
        yield Pair(incumbent.sample(), second)


@contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold the machine-wide lock of a device, so that two runs take turns and no two timings overlap."""
    path = Path(tempfile.gettempdir()) / f"opratchet-{device}.lock"
    with path.open("a+") as file:
        if path.stat().st_mode & 0o777 != 0o666:
            _share(path)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _share(path: Path) -> None:
    """Let other users of the machine take the same lock; only the file's owner can."""
    try:
        path.chmod(0o666)
    except PermissionError:
        return
