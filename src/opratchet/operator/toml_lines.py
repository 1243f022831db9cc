"""On which line of a TOML text each key stands.

The standard reader gives a value without its place, and a message without a place is of little use to whoever
has to mend the file. This walks once over a text *that the standard reader has already accepted*, so it need not
check anything: it only tells strings, arrays, inline tables and headers apart, and notes the line of every key
path, e.g. `("workloads", 2, "shape", "M")`.
"""

from __future__ import annotations

import bisect
import re
import sys
from collections.abc import Mapping
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]*")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'  # multi-line basic; up to two more quotes belong to the content
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Values of a TOML text.

    Raises:
        ValueError: it is not valid TOML.
        RecursionError: it is nested too deep.
    """
    return dict(tomllib.loads(text))


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of each key path of a valid TOML text."""
    return _Walker(text.replace("\r\n", "\n")).walk()


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Line of the path, or of the nearest table around it; 1 when nothing of it is in the text."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


class _Walker:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._last: dict[KeyPath, int] = {}  # index of the last element of each array of tables

    def walk(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip(_BLANK):
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _header(self) -> KeyPath:
        """`[a.b]` or `[[a.b]]`: the path of the table that begins here."""
        line = self._line()
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        key = self._key()
        self.at += brackets
        path: KeyPath = ()
        for depth, part in enumerate(key, start=1):
            path = (*path, part)
            self.lines.setdefault(path, line)
            if brackets == 2 and depth == len(key):
                self._last[path] = self._last.get(path, -1) + 1
            if path in self._last:
                path = (*path, self._last[path])
                self.lines.setdefault(path, line)
        return path

    def _pair(self, table: KeyPath) -> None:
        """`key = value`."""
        line = self._line()
        path = table
        for part in self._key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        """A bare, quoted or dotted key; stops at what follows it."""
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            parts.append(self._key_part())
            self._skip(_SPACE)
            if self._peek() != ".":
                return parts
            self.at += 1

    def _key_part(self) -> str:
        if self._peek() in ('"', "'"):
            return str(parse_toml(f"key = {self._take(_STRING)}")["key"])
        return self._take(_BARE_KEY)

    def _value(self, path: KeyPath) -> None:
        first = self._peek()
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            self._take(_STRING if first in ('"', "'") else _SCALAR)

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while self._skip(_BLANK) and self._peek() != "]":
            self.lines.setdefault((*path, index), self._line())
            self._value((*path, index))
            index += 1
            self._comma()
        self.at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self._skip(_BLANK) and self._peek() != "}":
            self._pair(path)
            self._comma()
        self.at += 1

    def _comma(self) -> None:
        self._skip(_BLANK)
        if self._peek() == ",":
            self.at += 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, "the text was accepted by the TOML reader"
        self.at = match.end()
        return match.group()

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Pass over what the pattern matches; False at the end of the text."""
        self._take(pattern)
        return self.at < len(self.text)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _line(self) -> int:
        return bisect.bisect_left(self._newlines, self.at) + 1
