"""The ledger replayed: each line is judged by the state before it, then the state moves on.

The rules are small functions of the state before a line and the line; each says what is wrong with it. A line that
contradicts the ones before it is named, and the replay goes on behind it, so that all of them are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from opratchet.audit.chain import Entry
from opratchet.audit.findings import Finding, shown
from opratchet.errors import LedgerError
from opratchet.ledger.events import Line
from opratchet.ledger.state import RunState, apply
from opratchet.ledger.store import LEDGER

Watcher = Callable[[RunState, Line], Iterable[Finding]]
"""Judges a line by the state before it. What it yields needs neither file nor line."""


def complaint(check: str, what: str, key: str = "", found: str = "", expected: str = "") -> Finding:
    """A finding about the line that is being replayed."""
    return Finding(check, LEDGER, what, key=key, found=found, expected=expected)


class Replay:
    """The state after all lines that can be read, and what the watchers found on the way.

    Args:
        entries: The lines of the ledger.
        watchers: Who judges them.

    Attributes:
        lines: What could be read, with the number of its line.
        state: The state after them.
        findings: What is wrong with them.
        gap: Number of the first line that cannot be read; None when all can. What is said behind it counts for
            little, as what it rests on may have stood there.
        contradicts: Whether a line contradicts those before it.
    """

    def __init__(self, entries: Sequence[Entry], watchers: Sequence[Watcher]) -> None:
        self.lines = [(e.number, e.line) for e in entries if e.line is not None]
        self.gap = next((e.number for e in entries if e.line is None), None)
        self.state = RunState()
        self.findings: list[Finding] = []
        self.contradicts = False
        for number, line in self.lines:
            for found in self._judged(line, watchers):
                self.findings.append(replace(found, line=number))

    def _judged(self, line: Line, watchers: Sequence[Watcher]) -> list[Finding]:
        found: list[Finding] = []
        try:
            if self.state.header is not None:
                for watcher in watchers:
                    found += watcher(self.state, line)
            apply(self.state, line)
        except LedgerError as error:
            self.contradicts = True
            found.append(complaint("order", error.what))
        except Exception as error:  # what is free in an event, e.g. the options, may hold anything
            found.append(complaint("order", f"this cannot be judged: {shown(repr(error))}"))
        return found
