"""The lines of a Markdown text that say something, and those that only show something.

A document that is read as evidence needs the difference: what stands in a comment or in a block of code is an example,
a log or a form that was not filled in. Only a block marked as YAML states facts, and those lines are told apart from the
text around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BREAK = r"\r\n|\n|\r"
_FENCE = re.compile(r"\s*(?P<fence>`{3,}(?=[^`]*$)|~{3,})\s*(?P<info>[^\s`]*)")
_INLINE_COMMENT = re.compile(r"<!--.*?-->")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*?)(?:[ \t]+#+)?[ \t]*$")


@dataclass(frozen=True)
class Line:
    """One line that states something.

    Attributes:
        number: Line in the text, from 1.
        text: What it says, without comments.
        is_yaml: It stands in a block of code marked as YAML.
    """

    number: int
    text: str
    is_yaml: bool = False


def lines_of(text: str) -> list[str]:
    """Lines of a text, without their ends and without a byte order mark; a final line end begins no further line."""
    lines = re.split(BREAK, text.removeprefix("\ufeff"))
    return lines if lines[-1] else lines[:-1]


def plain(text: str) -> str:
    """Full-width signs and digits as plain ones, without emphasis, code marks and the spaces around."""
    return re.sub(r"[*`]", "", unicodedata.normalize("NFKC", text)).replace("\ufe0f", "").strip()


def heading(line: str) -> tuple[int, str] | None:
    """Depth and title of a heading; None for any other line."""
    found = _HEADING.match(line)
    return (len(found["marks"]), found["title"].strip()) if found else None


def statements(lines: Sequence[str], first: int = 1) -> Iterator[Line]:
    """The lines that state something, in order; the others are left out. `first` is the number of the first line."""
    scan = _Scan()
    for number, line in enumerate(lines, start=first):
        yield from scan.take(number, line)


def closing(text: str) -> str:
    """The line that ends a block of code or a comment which the text leaves open; empty when it leaves none."""
    scan = _Scan()
    for number, line in enumerate(lines_of(text), start=1):
        list(scan.take(number, line))
    return "-->" if scan.in_comment else scan.fence


class _Scan:
    """Where in a text the reading stands: in a comment, in a block of code (`fence` is what opened it), or outside."""

    def __init__(self) -> None:
        self.in_comment = False
        self.fence = ""
        self._is_yaml = False

    def take(self, number: int, line: str) -> Iterator[Line]:
        if self.in_comment:
            self.in_comment = "-->" not in line
        elif self.fence:
            if self._closes(line):
                self.fence = ""
            elif self._is_yaml:
                yield Line(number, line, is_yaml=True)
        elif opened := _FENCE.match(line):
            self.fence = opened["fence"]
            self._is_yaml = opened["info"].lower() in ("yaml", "yml")
        else:
            said = _INLINE_COMMENT.sub("", line)
            self.in_comment = said.lstrip().startswith("<!--")
            if not self.in_comment:
                yield Line(number, said)

    def _closes(self, line: str) -> bool:
        mark = line.strip()
        return len(mark) >= len(self.fence) and set(mark) == {self.fence[0]}
