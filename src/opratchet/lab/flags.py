"""Start and end of a batch, in a page of memory that the supervisor and one run worker share. Standard library only.

A message wakes its receiver, and that can take longer than a batch: hundreds of microseconds on a virtual machine whose CPU
went idle. So both sides watch the page without sleeping while a batch is being timed, and what the supervisor's clock holds
besides the batch is one to three microseconds. Where both have to share a CPU, the supervisor naps instead. The page orders nothing else: answers come by the channel.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable

from opratchet.lab.memory import memory_file
from opratchet.lab.progress import Witness

READY, GO, DONE = range(3)
SPIN_NS = 50_000_000  # a batch that lasts longer is not hurt by naps
NAP_SECONDS = 2e-5
LOOKS = 4096  # between looks whether the worker still lives
TURNS = 1024  # after so many looks a worker lets others have its CPU


class Flags:
    """The page. Each batch has a number; a flag holds the number of the last batch for which it was raised.

    Args:
        fd: Descriptor of a memory file of a page; it stays the caller's.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._words = memoryview(mmap.mmap(fd, mmap.PAGESIZE)).cast("q")
        self._batch = 0

    @classmethod
    def made(cls) -> Flags:
        """A new page."""
        return cls(memory_file("flags", mmap.PAGESIZE))

    def start_and_wait(
        self,
        timeout: float,
        is_gone: Callable[[], bool],
        *,
        alone: bool = True,
        witness: Witness | None = None,
    ) -> tuple[int, int]:
        """The supervisor's side of a batch: start it as soon as the worker is ready, and wait for its end.

        Args:
            timeout: Seconds that it may take, until the worker is ready included.
            is_gone: Whether the worker has ended; asked now and then.
            alone: Whether the worker has a CPU that this process keeps off.
            witness: What is looked at meanwhile, until it is overwritten.

        Returns:
            When it started and when it ended, nanoseconds; or when the worker was gone, or the time over.
        """
        self._batch += 1
        until = time.perf_counter_ns() + round(timeout * 1e9)
        spin_ns = SPIN_NS if alone else 0
        self._watch(READY, until, is_gone, spin_ns)
        words, number = self._words, self._batch
        start = time.perf_counter_ns()
        words[GO] = number
        if witness is not None:
            self._look_at(witness, until)
        self._watch(DONE, until, is_gone, spin_ns)
        return start, time.perf_counter_ns()

    def _look_at(self, witness: Witness, until: int) -> None:
        """Watch until the poison is overwritten or the batch is over; the worker is not asked for, as this is short."""
        words, number, until = (
            self._words,
            self._batch,
            min(until, time.perf_counter_ns() + SPIN_NS),
        )
        while words[DONE] != number and not witness.is_gone() and witness.poisoned_at < until:
            pass

    def _watch(self, flag: int, until: int, is_gone: Callable[[], bool], spin_ns: int) -> None:
        """Return when the flag is raised, the time is over or the worker gone; without sleeping at first."""
        words, number = self._words, self._batch
        naps_from = time.perf_counter_ns() + spin_ns
        while (now := time.perf_counter_ns()) < until and not is_gone():
            for _ in range(LOOKS):
                if words[flag] == number:
                    return
                if now > naps_from:
                    time.sleep(NAP_SECONDS)

    def wait_for_start(self) -> tuple[memoryview, int]:
        """The worker's side: say that it is ready, and wait for the start.

        Returns:
            The flags and the number of the batch; to be put at `DONE` when it is done.
        """
        self._batch += 1
        words, number = self._words, self._batch
        words[READY] = number
        while True:
            for _ in range(TURNS):
                if words[GO] == number:
                    return words, number
            os.sched_yield()

    def close(self) -> None:
        """Give the page back; a second time does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
