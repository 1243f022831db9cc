"""The audit of a folder: the ledger first, then everything that is computed from it or kept beside it.

Nothing is written and nothing of the folder is run. What is wrong with one thing does not keep the others from being
checked; only behind a line of the ledger that cannot be read at all, what depends on the whole of it is left out, and the
audit says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opratchet.audit.chain import Entry, chain_findings, read_entries
from opratchet.audit.edits import edit_findings
from opratchet.audit.facts import Time, facts
from opratchet.audit.files import (
    Sources,
    delivered_findings,
    leftover_findings,
    source_findings,
    version_findings,
)
from opratchet.audit.findings import Audit, Finding
from opratchet.audit.order import Order
from opratchet.audit.replay import Replay
from opratchet.audit.stops import Stops
from opratchet.audit.views import known_states, refreshes, view_findings
from opratchet.errors import BadInput
from opratchet.ledger.events import TrialPassed
from opratchet.ledger.store import LEDGER, OWNER, holder

LOOKS = 3
"""How often a folder is looked at, at most, in which a run writes at the same time."""


def examine(folder: Path) -> Audit:
    """Everything that is wrong with the folder of a run.

    While a run writes in it, what is found is looked for again: only what lasts is a finding.

    Raises:
        BadInput: there is no ledger, or it cannot be read.
    """
    found, rests = _look(folder)
    for _ in range(LOOKS - 1):
        if rests or not found.findings:
            break
        before = found.findings
        found, rests = _look(folder)
        if not rests:
            found.findings = [finding for finding in found.findings if finding in before]
    return found


def _look(folder: Path) -> tuple[Audit, bool]:
    """What one look finds, and whether nothing was written meanwhile."""
    before = _stamp(folder)
    found = _examined(folder)
    return found, found.running is None and _stamp(folder) == before


def _stamp(folder: Path) -> tuple[int, int]:
    """Size and time of the ledger; it changes with every event."""
    try:
        stat = (folder / LEDGER).stat()
    except OSError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


def _examined(folder: Path) -> Audit:
    audit = Audit(folder, running=_writer(folder))
    entries = _entries(folder)
    if audit.running is not None and entries and entries[-1].is_cut_short:
        entries.pop()  # it is being written
    audit.take(chain_findings(entries))
    passing = any(e.line is not None and isinstance(e.line.event, TrialPassed) for e in entries)
    replay = Replay(entries, [Order(passing), facts, Stops(), Time()])
    audit.counts["lines"], audit.state = len(entries), replay.state
    if replay.state.header is not None:
        audit.complete = replay.state.delivered is not None
        audit.take(_events(replay))
        audit.take(_sources(audit, replay))
        audit.take(_views(audit, replay))
        audit.take(leftover_findings(folder, audit.running is not None))
    elif entries:
        audit.add(
            Finding("ledger", LEDGER, "the first line that says what was tuned cannot be read")
        )
    return audit


def _writer(folder: Path) -> int | None:
    """Process that writes in the folder; what is no file is not opened, as opening it may never end."""
    return holder(folder) if (folder / OWNER).is_file() and (folder / LEDGER).is_file() else None


def _entries(folder: Path) -> list[Entry]:
    path, fix = folder / LEDGER, "Give the folder that a run left behind (perf_opt)."
    try:
        if path.is_file():
            return read_entries(path)
        raise BadInput("there is no ledger here", where=str(folder), fix=fix)
    except OSError as error:
        what = f"the ledger cannot be read: {error.strerror}"
        raise BadInput(what, where=str(path), fix=fix) from None


def _events(replay: Replay) -> Iterator[Finding]:
    """What is wrong with the events, as far as all lines before them can be read."""
    for finding in replay.findings:
        if replay.gap is None or finding.line < replay.gap or finding.check == "figures":
            yield finding
    if replay.gap is not None:
        what = f"the order of events and the stop rules are not judged behind line {replay.gap}, which cannot be read"
        yield Finding("order", LEDGER, what, remark=True)


def _sources(audit: Audit, replay: Replay) -> Iterator[Finding]:
    """What is wrong with the sources: by their hashes, as versions, and as edits of one another."""
    folder, state = audit.folder, replay.state
    unfinished = not audit.complete
    sources = Sources(folder)
    whole = replay.gap is None
    yield from source_findings(sources, state, unfinished, whole)
    yield from version_findings(folder, sources, state, unfinished, whole)
    if whole or state.delivered is not None:
        lines = [line for _number, line in replay.lines]
        yield from delivered_findings(folder, sources, state, lines)
    yield from edit_findings(sources, state)
    audit.counts["sources"] = len(sources.sound)
    audit.counts["versions"] = len(state.finished_rounds)


def _views(audit: Audit, replay: Replay) -> Iterator[Finding]:
    """What is wrong with the reports."""
    if replay.gap is not None:
        what = "the reports are not compared with a ledger that cannot be read as a whole"
        yield Finding("views", LEDGER, what, remark=True)
        return
    lines = [line for _number, line in replay.lines]
    is_over = audit.complete and audit.running is None
    states = [replay.state]
    if not is_over and not replay.contradicts:
        states = known_states(lines)
    written = refreshes(lines)
    if not is_over and written and written[-1] == len(lines):
        written.pop()  # the reports follow the event: they may be on their way, or the run broke off before them
    yield from view_findings(audit.folder, states, due=bool(written))
