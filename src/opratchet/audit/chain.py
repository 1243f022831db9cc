"""The ledger line by line: every damaged line is named, and what can still be read is read.

`ledger.store` refuses a ledger at its first flaw, as a run must; an audit has to name them all. So the lines are read one
by one, each by itself, and the chain is followed from each line to the next as far as both can be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from opratchet.audit.findings import Finding, shown
from opratchet.ledger.events import LINE, Line
from opratchet.ledger.store import LEDGER, unseal

LONGEST = 64 << 20
"""Bytes of a line at most; no event is that long."""


@dataclass(frozen=True)
class Entry:
    """One line of the file.

    Attributes:
        number: Its number in the file, from 1.
        line: What it says; None when it cannot be read.
        claimed: Hash that stands in it; empty when it has none.
        computed: Hash of what stands in it.
        problem: What is wrong with the line by itself; empty when nothing is.
        is_cut_short: Whether its end is missing, as while it is being written.
    """

    number: int
    line: Line | None
    claimed: str
    computed: str
    problem: str = ""
    is_cut_short: bool = False


def read_entries(path: Path) -> list[Entry]:
    """All lines of a ledger, sound or not. A last line without its end is among them.

    Raises:
        OSError: the file cannot be read.
    """
    entries: list[Entry] = []
    with path.open("rb") as file:
        while raw := file.readline(LONGEST):
            entries.append(_entry(len(entries) + 1, raw))
    return entries


def _entry(number: int, ended: bytes) -> Entry:
    raw = ended.removesuffix(b"\n")
    is_cut = raw == ended
    try:
        body, claimed = unseal(raw)
    except ValueError as error:
        problem = "this line was cut short" if is_cut else f"this line is damaged: {error}"
        return Entry(number, None, "", "", problem, is_cut)
    computed = hashlib.sha256(body).hexdigest()
    problem = "" if computed == claimed else "this line was changed after it was written"
    line: Line | None = None
    try:
        line = LINE.validate_json(body)
    except (ValidationError, ValueError) as error:
        problem = problem or "its hash is right, but this version of the tool cannot read it"
        problem = f"{problem} ({_first_line(error)})"
    if is_cut:
        problem = problem or "this line was cut short: its end is missing"
    return Entry(number, line, claimed, computed, problem, is_cut)


def _first_line(error: Exception) -> str:
    """What pydantic says, without its links: the place and what is wrong there."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return shown(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")
    return shown(str(error).partition("\n")[0])


def chain_findings(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Every line that is damaged, out of order or not chained to the one before."""
    if not entries:
        yield Finding("ledger", LEDGER, "the ledger is empty: no run is recorded")
        return
    for entry in entries:
        if entry.problem:
            expected, found = ("", "")
            if entry.claimed and entry.claimed != entry.computed:
                expected, found = f"hash {entry.computed}", f"hash {shown(entry.claimed)}"
            yield Finding(
                "ledger", LEDGER, entry.problem, entry.number, found=found, expected=expected
            )
    yield from _begins(entries[0])
    for before, entry in pairwise(entries):
        yield from _follows(before, entry)


def _begins(first: Entry) -> Iterator[Finding]:
    line = first.line
    if line is None or first.problem or (line.prev == "" and line.seq == 0):
        return
    yield Finding(
        "ledger",
        LEDGER,
        "the lines before the first one are missing",
        1,
        found=f"line {line.seq}",
        expected="line 0",
    )


def _follows(before: Entry, entry: Entry) -> Iterator[Finding]:
    """Whether a line is the one after its predecessor. A damaged line was named already, so it is not named again."""
    line = entry.line
    if line is None or entry.problem or not before.claimed:
        return
    what = "the line before this one was changed, added, moved or taken out"
    if line.prev not in (before.claimed, before.computed):
        yield Finding(
            "ledger",
            LEDGER,
            what,
            entry.number,
            "prev",
            found=shown(line.prev),
            expected=before.computed,
        )
    elif before.line is not None and not before.problem and line.seq != before.line.seq + 1:
        seq = before.line.seq + 1
        yield Finding(
            "ledger", LEDGER, what, entry.number, "seq", found=str(line.seq), expected=str(seq)
        )
