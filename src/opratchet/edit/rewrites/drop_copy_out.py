"""Fewer buffers: write a result where it belongs, instead of into a tile that is copied out afterwards.

When the last thing that happens to a local buffer before `T.copy(y, Y[...])` is a loop that sets each of its elements
once, that loop writes to `Y` itself and the copy goes. The buffer goes too when nothing else uses it. At the edge
nothing changes: TileLang guards a direct write outside the tensor, as `T.copy` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import Access, assigned, fills, sets_each
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.direct import element, mismatch
from opratchet.edit.rewrites.lives import accesses, following, loop_variables
from opratchet.edit.tree import Statement, Surgery, free_names


class DropCopyOut(Strategy):
    """Write to a tensor directly instead of through a local buffer."""

    id = "drop-copy-out"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "去掉搬出 buffer，直接写 global",
        "en": "drop a copy-out",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each copy to a tensor that the loop before it can take over."""
        kernel = tl.Kernel.of(situation.source)
        found = [
            self._edit(kernel, copy)
            for copy in kernel.find(tl.copy)
            if copy.source.base in kernel.allocs and copy.target.base in kernel.parameters
        ]
        return answer(found, "no local buffer is copied to a tensor")

    def _edit(self, kernel: tl.Kernel, copy: tl.Copy) -> Edit | str:
        buffer = kernel.allocs[copy.source.base]
        line = _last_writer(kernel, copy, buffer)
        if isinstance(line, str):
            return line
        write = accesses([line], buffer.name)[-1]
        if why := _needed(kernel, copy, buffer, line, write):
            return why
        assert write.index is not None
        surgery = Surgery(kernel.source.module)
        surgery.replace(write.node, element(copy.target, write.index))
        surgery.remove(copy.node)
        if not _others(kernel, copy, buffer, write):
            surgery.remove(buffer.node)
        title = f"write {copy.target.base} directly instead of through {buffer.name}"
        return Edit(self.id, buffer.name, title, surgery.apply, prior=1.08)


def _others(kernel: tl.Kernel, copy: tl.Copy, buffer: tl.Alloc, write: Access) -> list[Access]:
    """Accesses to the buffer besides the last write and the copy."""
    gone = (copy.source.node, write.node)
    return [a for a in accesses(kernel.body, buffer.name) if a.node not in gone]


def _last_writer(kernel: tl.Kernel, copy: tl.Copy, buffer: tl.Alloc) -> Statement | str:
    """The loop in front of the copy, in the same statement list, that sets the buffer; or why there is none."""
    name = buffer.name
    siblings = list(kernel.siblings(copy.node))
    before = siblings[: siblings.index(copy.node)]
    touching = [line for line in before if accesses([line], name)]
    if not copy.source.whole:
        return f"only a part of `{name}` is copied to `{copy.target.base}`"
    if not touching or tl.loop(touching[-1]) is None:
        return f"`{name}` is not set by a loop over its elements before it is copied out"
    between = before[before.index(touching[-1]) :]
    hidden = loop_variables(between) | assigned(between, kernel.buffers)
    if free_names(copy.target.node) & (hidden - {name}):
        return f"the place of the tile in `{copy.target.base}` is not known when `{name}` is set"
    return touching[-1]


def _needed(
    kernel: tl.Kernel, copy: tl.Copy, buffer: tl.Alloc, line: Statement, write: Access
) -> str:
    """Why the copy cannot go; empty when it can."""
    name, tensor = buffer.name, copy.target.base
    here = accesses([line], name)
    if len([a for a in here if a.writes]) != 1 or not write.writes or not write.index:
        return f"the loop before the copy does not end by setting one element of `{name}`"
    if any(a.key != write.key for a in here):
        return f"the loop before the copy also reads other elements of `{name}`"
    if not sets_each(line, write, buffer) and _others(kernel, copy, buffer, write):
        return f"the loop before the copy may not set every element of `{name}`"
    if len(accesses(kernel.body, tensor)) > 1:
        return f"`{tensor}` is used elsewhere in the kernel"
    if _carried(kernel, copy, buffer):
        return f"`{name}` is read again after it was copied out"
    return mismatch(kernel, copy.target, buffer)


def _carried(kernel: tl.Kernel, copy: tl.Copy, buffer: tl.Alloc) -> bool:
    """Whether what the copy took out may be read later: after it, or in the next round of a loop around it."""
    name = buffer.name
    siblings = kernel.siblings(copy.node)
    later = accesses(following(kernel, copy.node), name)
    if not kernel.loops_around(copy.node):
        return any(not a.writes for a in later)
    outside = len(accesses(kernel.body, name)) > len(accesses(siblings, name))
    first = next(line for line in siblings if accesses([line], name))
    return bool(later) or outside or not fills(first, buffer)
