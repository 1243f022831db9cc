"""Start and end of a batch, in a page of memory that the supervisor and one run worker share. Standard library only.

A message wakes its receiver, and that can take longer than a batch: hundreds of microseconds on a virtual machine whose CPU
went idle. So both sides watch the page without sleeping while a batch is being timed, and what the supervisor's clock holds
besides the batch is below a microsecond. The page orders nothing else: answers come by the channel.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Callable

READY, GO, DONE = range(3)
SPIN_NS = 50_000_000  # a batch that lasts longer is not hurt by naps
NAP_SECONDS = 2e-5
LOOKS = 4096  # between looks whether the worker still lives


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
        fd = os.memfd_create("flags", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, mmap.PAGESIZE)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
        return cls(fd)

    def start_and_wait(self, timeout: float, is_gone: Callable[[], bool]) -> int:
        """The supervisor's side of a batch: start it as soon as the worker is ready, and wait for its end.

        Args:
            timeout: Seconds that it may take.
            is_gone: Whether the worker has ended; asked now and then.

        Returns:
            Nanoseconds from the start to the end; or until the worker was gone, or the time over.
        """
        self._batch += 1
        begun = time.perf_counter_ns()
        self._watch(READY, begun + round(timeout * 1e9), is_gone)
        words, number = self._words, self._batch
        start = time.perf_counter_ns()
        words[GO] = number
        self._watch(DONE, start + round(timeout * 1e9), is_gone)
        return time.perf_counter_ns() - start

    def _watch(self, flag: int, until: int, is_gone: Callable[[], bool]) -> None:
        words, number = self._words, self._batch
        naps_from = time.perf_counter_ns() + SPIN_NS
        while True:
            for _ in range(LOOKS):
                if words[flag] == number:
                    return
            now = time.perf_counter_ns()
            if now > until or is_gone():
                return
            while now > naps_from and words[flag] != number:
                time.sleep(NAP_SECONDS)
                if time.perf_counter_ns() > min(until, now + SPIN_NS):
                    break

    def wait_for_start(self) -> tuple[memoryview, int]:
        """The worker's side: say that it is ready, and wait for the start.

        Returns:
            The flags and the number of the batch; to be put at `DONE` when it is done.
        """
        self._batch += 1
        words, number = self._words, self._batch
        words[READY] = number
        while words[GO] != number:
            pass
        return words, number

    def close(self) -> None:
        """Give the page back; a second time does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
