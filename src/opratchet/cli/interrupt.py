"""Ctrl-C: once means "finish the current step and deliver the best so far", twice means "stop now"."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType


class Interrupts:
    """Counts requests to stop while it is entered. SIGTERM counts as one Ctrl-C."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        self._tell = tell
        self._before: dict[int, object] = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
        self._tell("stopping after this step, then delivering the best so far (again: stop now)")

    def __call__(self) -> bool:
        """Whether the user asked to stop."""
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
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
