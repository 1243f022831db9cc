"""Small edits as splices: the syntax tree says where, and every byte that is not named stays as it was.

A rewrite that moves statements exchanges nodes of the tree (`opratchet.edit.tree`). A knob changes a token or two, so
it is written as splices of the text, at the places that the tree gives. Byte order mark, line ends, tabs and comments
survive by construction, and what is put into a list can be taken out again to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from opratchet.edit.source import KernelSource

Item: TypeAlias = "cst.Arg | cst.BaseElement | cst.BaseDictElement"

BOM = "\ufeff"


@dataclass(frozen=True, order=True)
class Splice:
    """Put `text` in the place of the bytes from `start` to `end`, counted in UTF-8 after any byte order mark."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text after splices that do not overlap."""
    mark, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    raw = body.encode()
    for splice in sorted(splices, reverse=True):
        raw = raw[: splice.start] + splice.text.encode() + raw[splice.end :]
    return mark + raw.decode()


class Places:
    """Where the nodes of a source stand in its text.

    Args:
        source: The source; nodes are those of its tree.
    """

    def __init__(self, source: KernelSource) -> None:
        self._source = source
        self._raw = source.text.removeprefix(BOM).encode()

    @cached_property
    def _spans(self) -> Mapping[cst.CSTNode, CodeSpan]:
        # The parser makes every node once, so the copy that guards against shared nodes is not needed; it would also
        # change the identity of the nodes.
        wrapper = MetadataWrapper(self._source.module, unsafe_skip_copy=True)
        return cast("Mapping[cst.CSTNode, CodeSpan]", wrapper.resolve(ByteSpanPositionProvider))

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """First byte of a node, and the one behind its last."""
        found = self._spans[node]
        return found.start, found.start + found.length

    def line(self, node: cst.CSTNode) -> int:
        """The line that a node begins in, from 1."""
        return self._raw.count(b"\n", 0, self.span(node)[0]) + 1

    def replace(self, node: cst.CSTNode, text: str) -> Splice:
        """Write something else in the place of a node."""
        return Splice(*self.span(node), text)

    def append(self, items: Sequence[Item], whole: cst.CSTNode, text: str) -> Splice:
        """Put one more item at the end of a list, dict or call.

        It takes a line of its own where the last item has one. Where a comment follows the last item, the new one
        stands in front of it, so that the comment stays with what it speaks of.
        """
        if not items:
            closing = (
                0 if isinstance(whole, cst.Tuple) else 1
            )  # a tuple does not own its parentheses
            end = self.span(whole)[1] - closing
            return Splice(end, end, text)
        start, end = self.span(items[-1])
        gap = "," + self._line_before(start)
        if self._comment_after(end) and not _is_positional(items[-1]):
            return Splice(start, start, text + gap)
        return Splice(end, end, gap + text)

    def drop(self, items: Sequence[Item], which: int) -> Splice:
        """Take an item out; exactly undoes `append`."""
        return self.drop_all(items, [which])[0]

    def drop_all(self, items: Sequence[Item], which: Collection[int]) -> list[Splice]:
        """Take items out, with the commas between them and what stays."""
        splices = []
        for first in which:
            if first - 1 not in which:
                behind = next(k for k in range(first, len(items) + 1) if k not in which)
                splices.append(self._gap(items, first, behind))
        return splices

    def _gap(self, items: Sequence[Item], first: int, behind: int) -> Splice:
        """From one item to the one behind the last that goes; at the end of the list, from the item before."""
        start = self.span(items[first])[0]
        if behind < len(items):
            return Splice(start, self.span(items[behind])[0], "")
        return Splice(
            self.span(items[first - 1])[1] if first else start, self.span(items[-1])[1], ""
        )

    def _line_before(self, start: int) -> str:
        """Line break and indentation when the byte is the first on its line, else one blank."""
        line = self._raw[:start].rpartition(b"\n")[2]
        newline = self._source.module.default_newline
        return newline + line.decode() if line.strip() == b"" else " "

    def _comment_after(self, end: int) -> bool:
        return re.match(rb"\s*,?[ \t]*#", self._raw[end:]) is not None


def _is_positional(item: Item) -> bool:
    return isinstance(item, cst.Arg) and item.keyword is None
