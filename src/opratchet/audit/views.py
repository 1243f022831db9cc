"""Every report against the ledger: each is made anew and compared with the file, character by character.

A report holds nothing but what the ledger says, so nothing in it may differ, not even within rounding. Three things are
not on record and are found by trying: the language, how the folder was called when the report was written, and, while
a run is going on or after it broke off, how much of the ledger the report has seen.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from opratchet.audit.findings import Finding, shown
from opratchet.audit.place import place_findings, written_folder
from opratchet.audit.reading import UnreadableError, first_difference, line_of, read
from opratchet.ledger.events import Delivered, Line, RoundFinished
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import LEDGER
from opratchet.report.views import views_of
from opratchet.report.words import Lang

ALWAYS = ("opt_log.md", "stage_result.md", "perf_records.jsonl", "workload_inventory.json")
"""The reports that every run has had since the first version of the tool; others are checked where they are."""
MOST = 20
"""Lines of a report that are named at most."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def known_states(lines: Sequence[Line]) -> list[RunState]:
    """What the reports of a run that is not over may show: all of it, or what was known at one of the last two times that
    they were written, or since.
    """
    refreshed = refreshes(lines)
    first = refreshed[-2] if len(refreshed) > 1 else min(3, len(lines))
    ends = [len(lines), *reversed(refreshed[-2:]), *range(len(lines) - 1, first, -1)]
    return [fold(lines[:end]) for end in dict.fromkeys(ends)]


def refreshes(lines: Sequence[Line]) -> list[int]:
    """How many lines there were each time that the run wrote its reports."""
    events = (RoundFinished, Delivered)
    return [n for n, line in enumerate(lines, 1) if isinstance(line.event, events)]


def view_findings(folder: Path, states: Sequence[RunState], due: bool) -> Iterator[Finding]:
    """What is wrong with the reports.

    Args:
        folder: The folder that is audited.
        states: What they may show; the first is the whole ledger.
        due: Whether the run has come so far that they must be there.
    """
    for name in views_of(states[0]):
        path = folder / name
        try:
            data = read(path)
        except UnreadableError as error:
            if os.path.lexists(path) or (due and name in ALWAYS):
                yield Finding("views", name, f"{error}; `opratchet report` writes it anew")
            continue
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = line_of(data, error.start)
            yield Finding("views", name, "this line is not UTF-8", line)
            continue
        try:
            yield from _compared(name, text, folder, states)
        except Exception as error:  # what is free in an event, e.g. the machine, may hold anything
            what = f"the ledger holds what this report cannot show: {shown(repr(error))}"
            yield Finding("views", name, what)


def _compared(name: str, text: str, folder: Path, states: Sequence[RunState]) -> Iterator[Finding]:
    place = written_folder(text, folder)
    made: list[str] = []
    for state in states:
        for lang in _languages(state):
            view = views_of(state).get(name)
            if view is None:
                continue
            expected = view(state, lang, place)
            if text == expected:
                if name == "stage_result.md":
                    yield from _too_early(state)
                yield from place_findings(name, text, folder, f"{state.run.operator}.py")
                return
            made.append(expected)
    nearest = max(made[:2], key=lambda expected: len(_common(text, expected)))
    yield from differences(name, text, nearest)


def _languages(state: RunState) -> tuple[Lang, Lang]:
    """Both, the one that the run was to write first."""
    return ("en", "zh") if state.options.get("language") == "en" else ("zh", "en")


def _common(text: str, expected: str) -> set[str]:
    return set(text.split("\n")) & set(expected.split("\n"))


def _too_early(state: RunState) -> Iterator[Finding]:
    """A run writes its reports when it has delivered, so reports of a finished run need a delivery on record."""
    if state.is_complete and state.delivered is None:
        what = (
            "the reports show a finished run, and the ledger ends before its delivery: lines are missing at its end, or "
            "`report` was called on a run that broke off (then `opratchet resume` ends it)"
        )
        yield Finding("views", LEDGER, what)


def differences(name: str, text: str, expected: str) -> Iterator[Finding]:
    """The lines of a report that are not what the ledger says, at most `MOST` of them."""
    found = list(_pairs(text.split("\n"), expected.split("\n")))
    for line, there, right in found[:MOST]:
        yield _difference(name, line, there, right)
    if len(found) > MOST:
        yield Finding("views", name, f"{len(found) - MOST} more lines are not what the ledger says")


def _pairs(
    found: Sequence[str], expected: Sequence[str]
) -> Iterator[tuple[int, str | None, str | None]]:
    """Number of the line, what stands there, what should; None for a line that is missing or too many."""
    if len(found) == len(expected):
        both = enumerate(zip(found, expected, strict=True), 1)
        yield from ((number, there, right) for number, (there, right) in both if there != right)
        return
    for kind, i, j, k, m in SequenceMatcher(None, found, expected, autojunk=False).get_opcodes():
        if kind != "equal":
            for n in range(max(j - i, m - k)):
                there = found[i + n] if i + n < j else None
                right = expected[k + n] if k + n < m else None
                yield min(i + n, j if j > i else i) + 1, there, right


def _difference(name: str, line: int, there: str | None, right: str | None) -> Finding:
    if there is None or right is None:
        what = "a line is missing here" if there is None else "this line is not in the ledger"
        return Finding("views", name, what, line, "", shown(there or ""), shown(right or ""))
    if name.endswith(".jsonl"):
        by_key = _by_key(there, right)
        if by_key is not None:
            key, found, expected = by_key
            return Finding("views", name, _what(found, expected), line, key, found, expected)
    at = first_difference(there, right)
    return Finding("views", name, _what(there, right), line, "", shown(there, at), shown(right, at))


def _what(there: str, right: str) -> str:
    """Whether it is a figure that differs, and by how much."""
    if _NUMBER.sub("0", there) == _NUMBER.sub("0", right):
        pairs = zip(_NUMBER.findall(there), _NUMBER.findall(right), strict=True)
        worst = max((_off(float(a), float(b)) for a, b in pairs), default=0.0)
        return f"a figure is not that of the ledger: {100 * worst:.2g} % off"
    return "this is not what the ledger says"


def _off(there: float, right: float) -> float:
    return abs(there - right) / abs(right) if right else abs(there - right)


def _by_key(there: str, right: str) -> tuple[str, str, str] | None:
    """The first key in which two JSON objects differ, with both values; None when they are not that much alike."""
    try:
        found, expected = json.loads(there), json.loads(right)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != expected.keys():
        return None
    for key, value in expected.items():
        if found[key] != value:
            return key, shown(json.dumps(found[key])), shown(json.dumps(value))
    return None
