"""The items of one array in a JSON file, one after another, so that a file of any size needs little memory.

The standard decoder reads one item at a time out of a buffer that is refilled when an item is not whole. That is as
fast as streaming parsers are, and safe with a file that something untrusted may have written: nesting is bounded by
the decoder, and the size of an item here. (ijson keeps the path of every open bracket, which two megabytes of `[`
turn into more memory than a machine has.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from opratchet.profile.swimlane.reading import damaged, unreadable

CHUNK = 1 << 20
LARGEST = 32 << 20  # characters of one item: a core on a device holds some megabytes
BLANKS = " \t\n\r"
AFTER_A_VALUE = frozenset(f"{BLANKS},:]}}")


def json_items(path: Path, key: str | None = None) -> Iterator[Any]:
    """Yield the items of an array, and check that the file is JSON to its end.

    Args:
        path: The file, in UTF-8.
        key: Where the array is in the object at the top; None for an array at the top. Where there is none, nothing
            is yielded.

    Raises:
        BadInput: the file cannot be read, is empty, is not JSON, or holds an item of more than 32 MB.
    """
    try:
        if path.stat().st_size == 0:
            raise damaged(path, "the file is empty")
        with path.open(encoding="utf-8") as file:
            yield from _Stream(file).items(key)
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError) as error:
        said = str(error).partition(": line")[0]
        raise damaged(path, f"the file is torn, or not JSON ({said})") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


class _Stream:
    """A file as a buffer with a place in it."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.text = ""
        self.at = 0
        self.decoder = json.JSONDecoder(parse_constant=_refuse)

    def items(self, key: str | None) -> Iterator[Any]:
        """The items of the array, then nothing more may follow."""
        if key is None:
            yield from self._array() if self._next() == "[" else self._nothing()
        else:
            yield from self._member(key) if self._next() == "{" else self._nothing()
        if self._next():
            raise ValueError("more follows after its end")

    def _nothing(self) -> Iterator[Any]:
        self._value()
        return iter(())

    def _array(self) -> Iterator[Any]:
        self._take("[")
        more = self._next() != "]"
        while more:
            yield self._value()
            more = self._goes_on("]")
        self._take("]")

    def _member(self, wanted: str) -> Iterator[Any]:
        """The items under one key of an object; what is under others is read and dropped."""
        self._take("{")
        more = self._next() != "}"
        while more:
            key = self._value()
            if not isinstance(key, str):
                raise ValueError("a key is missing")
            self._take(":")
            if key == wanted and self._next() == "[":
                yield from self._array()
            else:
                self._value()
            more = self._goes_on("}")
        self._take("}")

    def _goes_on(self, closing: str) -> bool:
        """Whether another entry follows the one that was read."""
        if self._next() == closing:
            return False
        self._take(",")
        if self._next() == closing:
            raise ValueError("an entry is missing")
        return True

    def _next(self) -> str:
        """The next character that is not blank, left in its place; empty at the end of the file."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in BLANKS:
                self.at += 1
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise ValueError(f"`{expected}` is missing")
        self.at += 1

    def _value(self) -> Any:
        """The value that begins here; more of the file is read until it is whole."""
        self._next()
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError:
                if not self._more():
                    raise
                continue
            length = end - self.at  # reading more drops what lies before the place
            # a number that ends with the buffer may go on in the file, as 1 does in 1.5
            if self.text[end : end + 1] in AFTER_A_VALUE or not self._more():
                self.at += length
                return value

    def _more(self) -> bool:
        """Twice as much of the file as is left of the buffer; False at its end."""
        rest = self.text[self.at :]
        if len(rest) > LARGEST:
            raise ValueError("an item of it is not whole within 32 MB")
        read = self.file.read(max(CHUNK, len(rest)))
        self.text, self.at = rest + read, 0
        return bool(read)
