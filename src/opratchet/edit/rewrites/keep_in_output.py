"""Fewer buffers: keep values in the tensor that they end up in, instead of in a local buffer until then.

    for i, j in T.grid(block_M, N): Y[bx * block_M + i, j] = y[i, j] / row_sum[i]

is all that ever touches `Y`. So `Y` itself can hold what `y` holds: each `y[p, q]` becomes `Y[bx * block_M + p, q]`, and the
values are changed in their place. Rows of a tile that lie beyond the tensor are neither stored nor read back (TileLang guards
both), so each access has to be to the row at hand: then those rows held nothing that was meant for `Y`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import Access, assigned, sets_each
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.direct import element, mismatch
from opratchet.edit.rewrites.lives import accesses, loop_variables
from opratchet.edit.source import code
from opratchet.edit.tree import Surgery, expression, free_names


class KeepInOutput(Strategy):
    """Let an output hold what a local buffer holds."""

    id = "keep-in-output"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "中间结果直接存放在输出里",
        "en": "keep a buffer in its output",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each buffer that is the last thing an output is made of."""
        kernel = tl.Kernel.of(situation.source)
        found = [
            self._edit(kernel, line, kernel.allocs[name])
            for line in kernel.find(tl.assign)
            if line.target.base in kernel.parameters and not line.operator
            for name in sorted(free_names(line.value) & set(kernel.allocs))
        ]
        return answer(found, "no output is made of a local buffer, element by element")

    def _edit(self, kernel: tl.Kernel, line: tl.Assign, buffer: tl.Alloc) -> Edit | str:
        tensor, name = line.target.base, buffer.name
        read = accesses([line.node], name)[0]
        tile = _tile(line, read)
        if tile is None or not _covers(kernel, line, read, buffer):
            return f"`{tensor}` is not set from `{name}` element for element"
        if why := _differs(kernel, tile, buffer):
            return why
        surgery = Surgery(kernel.source.module)
        for access in _once(accesses(kernel.body, name)):
            if not access.index:
                return f"`{name}` is used as a whole, not element by element"
            if not _at_hand(kernel, tile, access):
                return f"rows of `{name}` besides the one at hand are used, and may lie beyond `{tensor}`"
            surgery.replace(access.node, element(tile, access.index))
        surgery.remove(buffer.node)
        title = f"keep what {name} holds in {tensor} itself"
        return Edit(self.id, name, title, surgery.apply, prior=1.1)


def _tile(line: tl.Assign, read: Access) -> tl.Region | None:
    """Where element 0 of the buffer lies in the tensor: `Y[bx * block_M, 0]` for `Y[bx * block_M + i, j] = y[i, j]`."""
    parts, index = line.target.index or (), read.index or ()
    starts = [_start(part, code(by)) for part, by in zip(parts, index, strict=False)]
    if not parts or len(parts) != len(index) or not all(starts):
        return None
    return tl.region(expression(f"{line.target.base}[{', '.join(map(str, starts))}]"))


def _start(part: cst.BaseExpression, name: str) -> str:
    """What is added to a variable, `0` for the variable alone; empty for anything else."""
    if code(part) == name:
        return "0"
    added = isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Add)
    if not added or code(part.right) != name or name in free_names(part.left):  # type: ignore[attr-defined]
        return ""
    return code(part.left)  # type: ignore[attr-defined]


def _covers(kernel: tl.Kernel, line: tl.Assign, read: Access, buffer: tl.Alloc) -> bool:
    """Whether a nest, itself in no loop, runs once over all elements of the buffer."""
    around = kernel.loops_around(line.node)
    return bool(around) and sets_each(around[0].node, read, buffer)


def _differs(kernel: tl.Kernel, tile: tl.Region, buffer: tl.Alloc) -> str:
    """Why the tensor cannot hold what the buffer holds; empty when it can."""
    hidden = loop_variables(kernel.body) | assigned(kernel.body, kernel.buffers)
    places = {name for part in tile.index or () for name in free_names(part)}
    if len(accesses(kernel.body, tile.base)) > 1:
        return f"`{tile.base}` is used elsewhere in the kernel"
    if places & hidden:
        return f"the place of the tile in `{tile.base}` is not known all the time"
    return mismatch(kernel, tile, buffer)


def _at_hand(kernel: tl.Kernel, tile: tl.Region, access: Access) -> bool:
    """Whether an access follows a loop in each dimension in which the tile may reach beyond the tensor."""
    both = zip(tile.index or (), access.index or (), strict=True)
    moved = [code(part) for start, part in both if code(start) != "0"]
    return set(moved) <= loop_variables(kernel.body)


def _once(found: list[Access]) -> Iterator[Access]:
    """Each place once: an update of an element is a read and a write of the same."""
    seen: set[int] = set()
    for access in found:
        if id(access.node) not in seen:
            seen.add(id(access.node))
            yield access
