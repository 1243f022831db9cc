"""Reading or writing a global tensor in the place of a local tile: the arithmetic shared by both directions."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.source import code
from opratchet.edit.tree import expression, parenthesized

_SUMMANDS = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)


def element(tile: tl.Region, index: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    """Element `index` of the tile that starts at a region: `X[by * block_M + i, j]` for `X[by * block_M, 0]`."""
    origin = tile.index or [cst.Integer("0")] * len(index)
    parts = [_sum(code(start), part) for start, part in zip(origin, index, strict=True)]
    return expression(f"{tile.base}[{', '.join(parts)}]")


def _sum(start: str, part: cst.BaseExpression) -> str:
    if start == "0":
        return code(part)
    plain = isinstance(part, cst.BinaryOperation) and isinstance(part.operator, _SUMMANDS)
    return f"{start} + {code(part if plain else parenthesized(part))}"


def mismatch(kernel: tl.Kernel, tile: tl.Region, buffer: tl.Alloc) -> str:
    """Why a local buffer and the region of a tensor are not element for element the same; empty if they are."""
    tensor = kernel.parameters[tile.base]
    if tile.index is None:
        return f"the region of `{tensor.name}` is a slice"
    if len(tensor.dims) != len(buffer.dims) or len(tile.index) not in (0, len(buffer.dims)):
        return f"`{tensor.name}` and `{buffer.name}` differ in rank"
    if tensor.dtype != buffer.dtype:
        return f"`{tensor.name}` and `{buffer.name}` differ in dtype"
    return ""
