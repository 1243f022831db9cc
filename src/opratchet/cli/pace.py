"""How long a run may still take, from the rounds that are finished. An estimate, for people only."""

from __future__ import annotations

from datetime import datetime

from opratchet.ledger.events import BaselineMeasured, Line, RoundFinished, RoundStarted, RunResumed


class Pace:
    """Mean seconds of a round. What lies between two rounds counts with the later one.

    A round that was interrupted and gone on with is left out: nobody knows how long it would have taken.
    """

    def __init__(self) -> None:
        self._mark: datetime | None = None
        self._seen = 0.0
        self._rounds = 0
        self._seconds = 0.0

    def see(self, line: Line, now: float) -> None:
        """Take note of one event.

        Args:
            line: The event.
            now: Seconds of a clock that never goes back, when it was seen.
        """
        event, at = line.event, datetime.fromisoformat(line.at)
        if isinstance(event, RunResumed):
            self._mark, self._seen = None, now
        elif isinstance(event, BaselineMeasured) or (
            isinstance(event, RoundStarted) and self._mark is None
        ):
            self._mark, self._seen = at, now
        elif isinstance(event, RoundFinished):
            if self._mark is not None:
                self._rounds += 1
                self._seconds += max(0.0, (at - self._mark).total_seconds())
            self._mark, self._seen = at, now

    def left(self, rounds: int, now: float) -> float | None:
        """Seconds that this many more rounds take, the present one among them; None before one round is finished."""
        if not self._rounds:
            return None
        mean = self._seconds / self._rounds
        return max(mean * (rounds - 1), mean * rounds - (now - self._seen), 0.0)


def about(seconds: float) -> str:
    """An estimated time: `~40 s`, `~3 min`, `~1.5 h`."""
    if seconds < 90:
        return f"~{seconds:.0f} s"
    return f"~{seconds / 60:.0f} min" if seconds < 5400 else f"~{seconds / 3600:.1f} h"
