"""PyPTO as an edit sees it: the calls that set tiles, the loops, and the options of the jit decorator.

Tile setters are global in effect until the next one, so each call is a place of its own, told by its number in the order of the
text. What is not written as literal numbers is not seen as a tile: the layout check demands literals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from opratchet.edit.source import KernelSource, dotted
from opratchet.edit.splice import Places, Splice, spliced

VECTOR, CUBE = "set_vec_tile_shapes", "set_cube_tile_shapes"
LOOPS = ("loop", "loop_unroll")
DTYPE_BYTES = {
    "DT_FP32": 4,
    "DT_INT32": 4,
    "DT_UINT32": 4,
    "DT_FP16": 2,
    "DT_BF16": 2,
    "DT_INT16": 2,
    "DT_UINT16": 2,
    "DT_INT8": 1,
    "DT_UINT8": 1,
    "DT_BOOL": 1,
    "DT_INT64": 8,
    "DT_UINT64": 8,
}

Numbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class VectorTile:
    """One call of `set_vec_tile_shapes`: its number among those of the kernel, and the tile."""

    number: int
    node: cst.Call
    tile: Numbers


@dataclass(frozen=True)
class CubeTile:
    """One call of `set_cube_tile_shapes`: its number, and the tiles of m, k and n as `[L0, L1]`."""

    number: int
    node: cst.Call
    m: Numbers
    k: Numbers
    n: Numbers


@dataclass(frozen=True)
class LoopCall:
    """One `for` over `pypto.loop(...)`.

    Attributes:
        number: Its number among those of the kernel.
        node: The `for`.
        call: The call that gives the loop.
        name: Its `name=`, or the loop variable.
        unroll: Its `unroll_list`; empty where it has none.
        innermost: Whether no other loop of PyPTO lies inside.
    """

    number: int
    node: cst.For
    call: cst.Call
    name: str
    unroll: Numbers
    innermost: bool


class Pypto:
    """A kernel as PyPTO's edits see it.

    Args:
        source: The source.
    """

    def __init__(self, source: KernelSource) -> None:
        self.source = source

    @classmethod
    def of(cls, source: KernelSource) -> Pypto:
        """The view of a source; made once for each."""
        found = source.views.get(cls)
        if not isinstance(found, cls):
            found = source.views[cls] = cls(source)
        return found

    @cached_property
    def places(self) -> Places:
        """Where its nodes stand."""
        return Places(self.source)

    @cached_property
    def vector_tiles(self) -> list[VectorTile]:
        """The vector tiles, in the order of the text."""
        calls = _calls(self.source.factory, VECTOR)
        found = [(call, [number(argument.value) for argument in call.args]) for call in calls]
        whole = [(call, tile) for call, tile in found if None not in tile and tile]
        return [
            VectorTile(i, call, tuple(extent for extent in tile if extent is not None))
            for i, (call, tile) in enumerate(whole)
        ]

    @cached_property
    def cube_tiles(self) -> list[CubeTile]:
        """The cube tiles, in the order of the text."""
        found: list[CubeTile] = []
        for call in _calls(self.source.factory, CUBE):
            parts = [numbers(argument.value) for argument in call.args[:3]]
            if len(parts) == 3 and all(parts):
                found.append(CubeTile(len(found), call, *parts))
        return found

    @cached_property
    def loops(self) -> list[LoopCall]:
        """The loops of PyPTO, in the order of the text."""
        return [
            LoopCall(
                i,
                node,
                call,
                _name(node, call),
                numbers(value) if (value := keyword(call, "unroll_list")) is not None else (),
                not any(inner is not node for inner, _ in _loops(node)),
            )
            for i, (node, call) in enumerate(_loops(self.source.factory))
        ]

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of the smallest element among the kernel's tensors; 4 where the signature does not tell."""
        nodes = _below(self.source.factory.params)
        names = [node.attr.value for node in nodes if isinstance(node, cst.Attribute)]
        return min((DTYPE_BYTES[name] for name in names if name in DTYPE_BYTES), default=4)

    def write(self, node: cst.CSTNode, text: str) -> str:
        """The whole text with one node written otherwise."""
        return self.splice(self.places.replace(node, text))

    def splice(self, *splices: Splice) -> str:
        """The whole text with some bytes written otherwise."""
        return spliced(self.source.text, splices)


def number(node: cst.BaseExpression) -> int | None:
    """A literal positive integer, else None."""
    if isinstance(node, cst.Integer):
        value = node.evaluated_value
        return value if value > 0 else None
    return None


def numbers(node: cst.BaseExpression) -> Numbers:
    """A list or tuple of literal positive integers; empty when it is something else."""
    if not isinstance(node, (cst.List, cst.Tuple)):
        return ()
    found = [number(element.value) for element in node.elements]
    whole = tuple(extent for extent in found if extent is not None)
    return whole if len(whole) == len(found) else ()


def keyword(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The value of a keyword argument, or None."""
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == name:
            return argument.value
    return None


def listed(values: Sequence[int]) -> str:
    """`[64, 256]`."""
    return f"[{', '.join(map(str, values))}]"


def _calls(node: cst.CSTNode, function: str) -> Iterator[cst.Call]:
    for found in _below(node):
        if isinstance(found, cst.Call) and dotted(found.func) == f"pypto.{function}":
            yield found


def _loops(node: cst.CSTNode) -> Iterator[tuple[cst.For, cst.Call]]:
    names = [f"pypto.{name}" for name in LOOPS]
    for found in _below(node):
        if not isinstance(found, cst.For) or not isinstance(found.iter, cst.Call):
            continue
        if dotted(found.iter.func) in names:
            yield found, found.iter


def _name(node: cst.For, call: cst.Call) -> str:
    given = keyword(call, "name")
    if isinstance(given, cst.SimpleString):
        return str(given.evaluated_value)
    return dotted(node.target) if isinstance(node.target, cst.Name) else "loop"


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, in the order of the text."""
    yield node
    for child in node.children:
        yield from _below(child)
