"""The end of what a worker prints. However much it is, only the end is kept, in memory, and the worker never waits.

A thread reads the other end of a pipe. While nothing is printed it sleeps, and costs a timed kernel nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading

CHUNK = 1 << 16
LAST_WORDS = 1.0  # seconds to wait for what was printed before the end


class Tail:
    """A pipe for a worker's output.

    Attributes:
        descriptor: What the worker prints to; to be closed with `handed_over` once it has it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._left_out = 0
        self._source, self.descriptor = os.pipe()
        self._stop, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._read, name="worker output", daemon=True)
        self._thread.start()

    def handed_over(self) -> None:
        """Close our copy of the worker's end, so that its end is seen."""
        os.close(self.descriptor)

    def _read(self) -> None:
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        ready.register(self._stop, select.POLLIN)
        while all(descriptor == self._source for descriptor, _event in ready.poll()):
            data = os.read(self._source, CHUNK)
            if not data:
                return
            self._kept += data
            surplus = max(0, len(self._kept) - self._limit)
            self._left_out += surplus
            del self._kept[:surplus]

    def text(self) -> str:
        """The end of it so far; what is no UTF-8 is replaced. To be complete, the worker must have ended."""
        self._thread.join(LAST_WORDS)
        text = bytes(self._kept).decode("utf-8", "replace")
        return (
            f"[{self._left_out} bytes before this are left out]\n{text}" if self._left_out else text
        )

    def close(self) -> None:
        """Stop reading, also where something still holds the worker's end."""
        if self._stopper < 0:
            return
        os.close(self._stopper)
        self._stopper = -1
        self._thread.join()
        for descriptor in (self._source, self._stop):
            with contextlib.suppress(OSError):
                os.close(descriptor)
