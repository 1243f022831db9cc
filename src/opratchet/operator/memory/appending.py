"""Adding to a MEMORY.md without changing what is there.

The file belongs to everybody who takes part in the procedure, so sections are only appended, and rows only added to the
end of a table. The line ends of the file are kept, and so is its habit of ending without one. A block of code or a
comment that the file leaves open is closed first: what is added would be a part of it, and nobody would read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opratchet.operator.markdown import BREAK, closing, lines_of
from opratchet.operator.memory.reading import Section, Table, read_memory


def append_section(text: str, title: str, body: str) -> str:
    """The text with a section `## title` at its end.

    Args:
        text: The file as it is, with its own line ends.
        title: Heading of the section.
        body: Its text.
    """
    lines = ["## " + " ".join(title.split()), "", *re.split(BREAK, body.strip("\r\n"))]
    return _at_end(text, lines)


def append_rows(text: str, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The text with rows added to a table: the last one in the last section `title` that has just these columns.

    Without such a table it is begun at the end of that section, and without the section, at the end of the file.

    Args:
        text: The file as it is, with its own line ends.
        title: Heading of the section.
        header: Titles of the columns.
        rows: The rows, a cell for each column.

    Raises:
        ValueError: a row has not as many cells as the header.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"a row has not the {len(header)} cells of the header")
    written = [_row(row) for row in rows]
    begun = [_row(header), _row(["---"] * len(header)), *written]
    section = read_memory(text).section(" ".join(title.split()))
    if section is None:
        return append_section(text, title, "\n".join(begun))
    table = _table(section, header)
    if table is not None:
        return _insert(text, table.end, written)
    return _at_end_of(text, section, begun)


def _table(section: Section, header: Sequence[str]) -> Table | None:
    wanted = tuple(_cell(title) for title in header)
    same = [table for table in section.tables if tuple(map(_cell, table.header)) == wanted]
    return same[-1] if same else None


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return re.sub(rf"(?:{BREAK})+", " ", text).strip().replace("|", "\\|")


def _at_end_of(text: str, section: Section, lines: Sequence[str]) -> str:
    """Lines after the last line of a section that is not blank, with blank lines around."""
    whole = lines_of(text)
    if section.end >= len(whole):
        return _at_end(text, lines)
    last = next(at for at in range(section.end, 0, -1) if whole[at - 1].strip())
    after = [] if last < section.end else [""]
    return _insert(text, last, ["", *lines, *after])


def _at_end(text: str, lines: Sequence[str]) -> str:
    """Lines at the end of the text, with a blank line before."""
    whole = lines_of(text)
    open_end = [mark] if (mark := closing(text)) else []
    blank = [""] if whole and (open_end or whole[-1].strip()) else []
    return _insert(text, len(whole), [*open_end, *blank, *lines])


def _insert(text: str, after: int, lines: Sequence[str]) -> str:
    """The text with lines put in after its line `after`, counted from 1."""
    if not lines:
        return text
    ends = [match.end() for match in re.finditer(BREAK, text)]
    at = ends[after - 1] if 0 < after <= len(ends) else len(text)
    end = _line_end(text)
    if at == len(text) and text.removeprefix("\ufeff") and len(ends) < after:
        return text + end + end.join(lines)  # it ends without a line end, and goes on doing so
    return text[:at] + "".join(line + end for line in lines) + text[at:]


def _line_end(text: str) -> str:
    """The line end that the text uses most."""
    windows, all_feeds = text.count("\r\n"), text.count("\n")
    if not all_feeds and "\r" in text:
        return "\r"
    return "\r\n" if windows * 2 > all_feeds else "\n"
