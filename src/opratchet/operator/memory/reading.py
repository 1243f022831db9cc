"""A MEMORY.md taken apart: sections by heading, and in each its `key: value` lines and its tables.

Anything is a MEMORY.md: people and agents write it by hand, so reading never fails, and whatever has no form is passed
over. Comments, blocks of code (apart from YAML) and boxes that are not ticked state nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opratchet.operator.markdown import Line, heading, lines_of, plain, statements

_MARKER = re.compile(r"^\s*(?:(?:[-*+]|\d+[.)])\s+)?(?:\[[xX]\]\s+)?")
_STATES_NOTHING = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+\[[^xX]?\]|>)")
_COLON = re.compile(r"[:：]")
_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r":?-+:?")
_YAML_REMARK = re.compile(r"(?:^|\s+)#.*$")


@dataclass(frozen=True)
class Pair:
    """One `key: value` line.

    Attributes:
        key: The key without emphasis, e.g. `all_close`.
        value: The value without emphasis and quotes.
        line: Line in the text.
        text: The whole line.
        group: Pairs that stand directly below each other have the same number.
    """

    key: str
    value: str
    line: int
    text: str
    group: int


@dataclass(frozen=True)
class Row:
    """One row of a table; as many cells as the table has columns."""

    cells: tuple[str, ...]
    line: int
    text: str


@dataclass(frozen=True)
class Table:
    """A table. Its `line` is that of the header, its `end` the last line that belongs to it."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    line: int
    end: int


@dataclass(frozen=True)
class Section:
    """What stands between a heading and the next one, whatever its depth; before the first one there is no title.

    Attributes:
        title: Text of the heading.
        level: Number of its `#`; 0 for what stands before the first.
        line: Its line.
        end: Last line of the section.
        pairs: Its `key: value` lines.
        tables: Its tables.
    """

    title: str
    level: int
    line: int
    end: int
    pairs: tuple[Pair, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Memory:
    """All sections, in order."""

    sections: tuple[Section, ...]

    @property
    def pairs(self) -> Iterator[Pair]:
        """The `key: value` lines of all sections."""
        return (pair for section in self.sections for pair in section.pairs)

    @property
    def tables(self) -> Iterator[Table]:
        """The tables of all sections."""
        return (table for section in self.sections for table in section.tables)

    def section(self, title: str) -> Section | None:
        """The last section with that title; None when there is none."""
        named = [section for section in self.sections if section.level and section.title == title]
        return named[-1] if named else None


def read_memory(text: str) -> Memory:
    """The sections of a MEMORY.md. Any text can be read."""
    whole = lines_of(text)
    parts: list[tuple[int, str, int, list[Line]]] = [(0, "", 1, [])]
    for line in statements(whole):
        found = None if line.is_yaml else heading(line.text)
        if found:
            parts.append((*found, line.number, []))
        else:
            parts[-1][3].append(line)
    ends = [start - 1 for _, _, start, _ in parts[1:]] + [len(whole)]
    return Memory(
        tuple(
            _section(title, level, start, end, lines)
            for (level, title, start, lines), end in zip(parts, ends, strict=True)
        )
    )


def cells_of(line: str) -> tuple[str, ...]:
    """Cells of a row, trimmed; `\\|` is a bar within a cell."""
    inner = line.strip().removeprefix("|")
    parts = _PIPE.split(inner)
    if len(parts) > 1 and not parts[-1].strip():
        parts = parts[:-1]
    return tuple(part.replace("\\|", "|").strip() for part in parts)


def _section(title: str, level: int, line: int, end: int, lines: Sequence[Line]) -> Section:
    pairs: list[Pair] = []
    tables: list[Table] = []
    at = 0
    while at < len(lines):
        if table := _table(lines, at):
            tables.append(table)
            at += table.end - table.line
        elif pair := _pair(lines[at], pairs[-1] if pairs else None):
            pairs.append(pair)
        at += 1
    return Section(title, level, line, end, tuple(pairs), tuple(tables))


def _table(lines: Sequence[Line], at: int) -> Table | None:
    """The table that begins with that line; None when none does."""
    if not (_is_row(lines, at) and _continues(lines, at + 1)):
        return None
    header, marks = cells_of(lines[at].text), cells_of(lines[at + 1].text)
    if len(marks) != len(header) or not all(_DELIMITER.fullmatch(mark) for mark in marks):
        return None
    end = at + 2
    while _is_row(lines, end) and _continues(lines, end):
        end += 1
    rows = tuple(_row(line, len(header)) for line in lines[at + 2 : end])
    return Table(header, rows, lines[at].number, lines[end - 1].number)


def _is_row(lines: Sequence[Line], at: int) -> bool:
    return at < len(lines) and not lines[at].is_yaml and bool(_PIPE.search(lines[at].text))


def _continues(lines: Sequence[Line], at: int) -> bool:
    """Whether the line stands directly below the one before it."""
    return at < len(lines) and lines[at].number == lines[at - 1].number + 1


def _row(line: Line, width: int) -> Row:
    cells = cells_of(line.text)[:width]
    return Row(cells + ("",) * (width - len(cells)), line.number, line.text.strip())


def _pair(line: Line, previous: Pair | None) -> Pair | None:
    """The line as `key: value` or `key | value`; None when it is neither."""
    if _STATES_NOTHING.match(line.text):
        return None
    said = _YAML_REMARK.sub("", line.text) if line.is_yaml else line.text
    said = _MARKER.sub("", said, count=1).strip().strip("|")
    colon, pipe = _COLON.search(said), None if line.is_yaml else _PIPE.search(said)
    mark = min(filter(None, (colon, pipe)), key=lambda match: match.start(), default=None)
    if mark is None or not (key := plain(said[: mark.start()])):
        return None
    value = plain(said[mark.end() :]).strip("\"'")
    group = 0
    if previous:
        group = previous.group + (previous.line + 1 != line.number)
    return Pair(key, value, line.number, line.text.strip(), group)
