"""How much CPU time a worker uses beyond what it was given, by the kernel's own clock of a foreign process.

A kernel that goes on computing after its batch is over, keeps the CPU busy while the other side is timed, or has others help
it on further CPUs, cannot hide it there: the clock counts all threads of the process, and nothing in the process can change
it. See clock_getcpuclockid(3); the number of the clock is made as the C library makes it.

The clock is exact for a process that sleeps; for one that runs it can be late by a tick of the kernel. So it is read when the
next command is given, and what was used since the last one is set against the time from that command to the end of its batch:
one thread cannot use more, except for the answer that follows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

_PROCESS_CLOCK = 2
SEVERAL_CPUS = 1.1  # CPU time over wall time, from which on more than one CPU was used
GRAIN_NS = 20_000_000  # what the clocks may be off by in all
BUSIER = 1.5  # excess over the other side's, from which on it has to be explained
SLACK_NS = 60_000  # and so much more of it


@dataclass
class Effort:
    """CPU time of one worker, nanoseconds.

    Attributes:
        pid: The worker.
        used: CPU time, from each command for a batch to the command after it.
        passed: Wall time from the same commands to the ends of their batches.
    """

    pid: int
    used: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    _given: tuple[int, int] | None = None
    _wall: int = 0

    def _read(self) -> int | None:
        try:
            return time.clock_gettime_ns((~self.pid << 3) | _PROCESS_CLOCK)
        except OSError:
            return None

    def command(self) -> None:
        """The worker is given its next command now."""
        used, now = self._read(), time.perf_counter_ns()
        if self._given is not None and self._wall and used is not None:
            self.used.append(used - self._given[1])
            self.passed.append(self._wall)
        self._given, self._wall = None if used is None else (now, used), 0

    def ended(self) -> None:
        """The batch of the last command has ended."""
        if self._given is not None:
            self._wall = time.perf_counter_ns() - self._given[0]

    def evidence(self) -> str:
        """Evidence that more than one CPU was used, or an empty text."""
        used, passed = sum(self.used), sum(self.passed)
        if used <= SEVERAL_CPUS * passed + GRAIN_NS:
            return ""
        return (
            f"it used {used / 1e6:.1f} ms of CPU time in {passed / 1e6:.1f} ms: more than one CPU"
        )

    @property
    def excess_ns(self) -> float:
        """CPU time beyond the end of a batch, nanoseconds: the upper quartile over the batches.

        What happens after fewer batches than a quarter does not move a comparison, which trims as much.
        """
        over = sorted(u - p for u, p in zip(self.used, self.passed, strict=True))
        return max(0.0, over[3 * len(over) // 4]) if over else 0.0

    def busier(self, other: Effort) -> str:
        """Evidence that this worker computes when it has nothing to do, or an empty text.

        Args:
            other: The worker on the other side, which is given the same commands in turns.
        """
        if self.excess_ns <= BUSIER * other.excess_ns + SLACK_NS:
            return ""
        return (
            f"it uses {self.excess_ns / 1e3:.0f} us of CPU time after each batch, when it has nothing to do; "
            f"the incumbent {other.excess_ns / 1e3:.0f} us"
        )
