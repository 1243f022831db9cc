"""Ctrl-C: once means "finish the current step and deliver the best so far", twice means "stop now".

Stopping now is an ordinary `KeyboardInterrupt` that unwinds the run: the ledger and the device lock are let go on the
way. The workers are killed first, because the way out waits for builds that run in threads.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType

from opratchet.lab.processes import halt


def kill_workers() -> None:
    """Kill every process below this one, each with its session."""
    halt()


class Interrupts:
    """Counts requests to stop while it is entered. SIGTERM counts as one Ctrl-C.

    Args:
        tell: Told what a first request means.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        self.halted = False
        self._tell = tell
        self._before: dict[int, object] = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            self.halted = True
            kill_workers()
            raise KeyboardInterrupt
        self.asked = True
        self._tell("stopping after this step, then delivering the best so far (again: stop now)")

    def __call__(self) -> bool:
        """Whether the user asked to stop.

        Raises:
            KeyboardInterrupt: twice, and the first such exception was lost (one that is raised in a finaliser is).
        """
        if self.halted:
            raise KeyboardInterrupt
        return self.asked

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the signals back. What fails because its worker was killed does not hide that the user stopped."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self.halted and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error
