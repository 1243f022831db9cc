"""Two sides whose work is known, timed against each other exactly as a run times two builds.

A `Side` is a fresh run worker with work of `lab.selftest_runtime`; a `PlantedBout` takes pairs of two of them, and knows
afterwards what it cost and how noisy it was.
"""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from itertools import islice
from statistics import median

from opratchet.judge.decision import Logs
from opratchet.judge.robust import by_turns, trimmed
from opratchet.lab.pairs import Pair, Timer, pairs
from opratchet.lab.selftest_runtime import size
from opratchet.lab.supervisor import RunWorker
from opratchet.operator.model import Workload

RUNTIME = "opratchet.lab.selftest_runtime"
WORKER_SECONDS = 30.0
SPARE_BYTES = 1 << 30


@dataclass(frozen=True)
class BoutSeen:
    """What one bout cost and how noisy it was.

    Attributes:
        pairs: Pairs of batches.
        pair_variance: Variance of one pair's log ratio, as the trimmed mean sees it.
        seconds: Wall time of the bout, processes included.
        pair_seconds: Wall time of one pair.
    """

    pairs: int
    pair_variance: float
    seconds: float
    pair_seconds: float


class Side:
    """One fresh worker with its work: what a `Timer` needs of a rig. A context manager: leaving it ends the worker.

    Args:
        kind: Kind of work.
        units: Units of a call.
        cpu: CPU to keep to.
        memory: Memory file that both sides read, as both sides of a run share their tensors.
    """

    def __init__(self, kind: str, units: int, cpu: int, memory: int) -> None:
        self._work = {"kind": kind, "units": units}
        self._memory = memory
        length = max(size(kind, units), os.fstat(memory).st_size, mmap.PAGESIZE)
        os.ftruncate(memory, length)
        self.worker = RunWorker(RUNTIME, cpu, length + SPARE_BYTES)

    def load(self) -> None:
        """Load the work into the worker.

        Raises:
            WorkerFailed: it could not.
        """
        length = os.fstat(self._memory).st_size
        message = {
            "op": "load",
            "workload": self._work["kind"],
            "artifact": self._work,
            "bytes": length,
            "stride": length,
            "offsets": [0],
        }
        self.worker.ask(message, WORKER_SECONDS, [self._memory])

    def batch(self, workload: Workload, count: int) -> tuple[int, int]:
        """Time `count` calls: nanoseconds by the worker's clock, and by ours."""
        message = {"op": "batch", "workload": workload.id, "n": count}
        return self.worker.timed(message, WORKER_SECONDS)

    def reserve(self, workload: Workload, count: int) -> None:
        """Nothing to prepare: what is read stays the same."""

    def timer(self, workload: Workload) -> Timer:
        """A timer on it."""
        return Timer(self, workload)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_error: object) -> None:
        self.worker.close()


class PlantedBout:
    """Two loaded sides in turns.

    Args:
        theirs: The incumbent.
        ours: The candidate.
        workload: Their work, by its kind.
    """

    def __init__(self, theirs: Side, ours: Side, workload: Workload) -> None:
        self._taken: list[Pair] = []
        self._stream = pairs(theirs.timer(workload), ours.timer(workload))
        self._name = workload.id

    def take(self, count: int) -> Logs:
        """Time this many more pairs: log ratios in ABBA order."""
        more = list(islice(self._stream, count))
        self._taken += more
        return {self._name: [_log_ratio(pair) for pair in more]}

    def seen(self, seconds: float) -> BoutSeen:
        """What it cost and how noisy it was.

        Args:
            seconds: Wall time of the bout.
        """
        centre = trimmed(by_turns([_log_ratio(pair) for pair in self._taken]))
        count = len(self._taken)
        return BoutSeen(
            pairs=count,
            pair_variance=count * centre.variance,
            seconds=seconds,
            pair_seconds=median(map(_pair_seconds, self._taken)),
        )


def _log_ratio(pair: Pair) -> float:
    return math.log(pair.incumbent.ns / pair.candidate.ns)


def _pair_seconds(pair: Pair) -> float:
    """Wall time of a pair, with the call in front of each batch that does not count."""
    batches = (pair.incumbent, pair.candidate)
    return 1e-9 * sum(
        one.supervisor_ns + (one.worker_ns / one.count if one.count > 1 else 0.0) for one in batches
    )
