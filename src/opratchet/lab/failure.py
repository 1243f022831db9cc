"""How a worker fails: to be told as an outcome of the candidate that it ran."""

from __future__ import annotations

import signal

from opratchet.ledger.words import Outcome

REASON_LENGTH, LOG_LENGTH = 4 << 10, 64 << 10
MEMORY_SIGNS = ("MemoryError", "bad_alloc", "Cannot allocate memory", "out of memory")


class WorkerFailed(Exception):
    """A worker did not do its job.

    Attributes:
        outcome: `timeout`, `out_of_memory`, `crashed`, `compile_failed` or `cheated`.
        reason: What happened, for people.
        log: The end of what it printed.
    """

    def __init__(self, outcome: Outcome, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = readable(reason)[:REASON_LENGTH]
        self.log = readable(log[-LOG_LENGTH:])

    def on(self, workload: str) -> WorkerFailed:
        """The same failure, with the workload on which it happened."""
        return WorkerFailed(self.outcome, f"{workload}: {self.reason}", self.log)


def readable(text: str) -> str:
    """What a candidate said, as text: it may be no Unicode, or hold what moves a terminal's cursor over what stands there."""
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in valid
    )


def died(status: int, output: str) -> WorkerFailed:
    """What it means that a worker ended without an answer.

    Args:
        status: Its exit code, negative for a signal.
        output: The end of what it printed.
    """
    if any(sign in output for sign in MEMORY_SIGNS):
        return WorkerFailed(Outcome.OUT_OF_MEMORY, "ran into the memory limit", output)
    if status < 0:
        return WorkerFailed(Outcome.CRASHED, f"killed by {_signal_name(-status)}", output)
    return WorkerFailed(Outcome.CRASHED, f"ended with exit code {status} and no result", output)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
