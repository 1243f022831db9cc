"""Loop order: swap the two axes of the grid of blocks, so that neighbouring blocks work on neighbouring memory.

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):

runs on the CPU as one loop over `bx` with one over `by` inside: down a strip of columns, then down the next. With the axes
swapped the blocks follow the rows. Blocks do not wait for one another, so that their order never matters to the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, cast

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.tree import Surgery, free_names, positional, walk

_ALONG, _EITHER = 1.3, 1.02


class BlockOrder(Strategy):
    """Swap the axes of the grid."""

    id = "block-order"
    row = "loop_order"
    title: ClassVar[Mapping[str, str]] = {"zh": "交换 block 遍历顺序", "en": "swap the block axes"}
    gain = (0.0, 0.30)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """The one edit, where there are two axes and blocks run one after another."""
        if situation.target.backend != "tilelang-c":
            return NotApplicable("blocks run side by side on this target, in no order")
        kernel = tl.Kernel.of(situation.source)
        grid = _grid(kernel)
        if grid is None:
            return NotApplicable("the grid of blocks does not have two axes")
        call, names = grid
        outer, inner = (cst.ensure_type(element.value, cst.Name) for element in names.elements)
        surgery = Surgery(situation.source.module)
        for nodes in ((outer, inner), positional(call)):
            surgery.replace(nodes[0], nodes[1])
            surgery.replace(nodes[1], nodes[0])
        moved = (outer.value, inner.value)
        prior = _ALONG if _strides(kernel, *moved) > _strides(kernel, *reversed(moved)) else _EITHER
        title = f"run the blocks in the order {inner.value}, {outer.value}"
        return [Edit(self.id, f"{inner.value}{outer.value}", title, surgery.apply, prior)]


def _grid(kernel: tl.Kernel) -> tuple[cst.Call, cst.Tuple] | None:
    """The call of `T.Kernel` and the names of its two axes."""
    for node in walk(kernel.source.body):
        for item in node.items if isinstance(node, cst.With) else ():
            names = item.asname.name if item.asname else None
            if tl.primitive(item.item) != "Kernel" or not isinstance(names, cst.Tuple):
                continue
            call = cast(cst.Call, item.item)
            plain = all(isinstance(element.value, cst.Name) for element in names.elements)
            if plain and len(names.elements) == len(positional(call)) == 2:
                return call, names
    return None


def _strides(kernel: tl.Kernel, outer: str, inner: str) -> int:
    """How many accesses jump between memory rows from one block to the next, with this axis inside."""
    return sum(
        inner not in free_names(index[-1]) and outer in free_names(index[-1])
        for index in _indices(kernel)
    )


def _indices(kernel: tl.Kernel) -> Iterator[tuple[cst.BaseExpression, ...]]:
    """Indices of all accesses to the kernel's tensors."""
    for line in kernel.body:
        for node in walk(line):
            seen = tl.region(node) if isinstance(node, cst.Subscript) else None
            if seen and seen.base in kernel.parameters and seen.index:
                yield seen.index
