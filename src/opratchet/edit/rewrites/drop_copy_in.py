"""Fewer buffers: read a tensor where it is, instead of copying a tile of it first.

A local buffer that is filled by one `T.copy` from a tensor, and then read element by element, is a detour: `x[i, j]`
becomes `X[bx * block_M + i, j]`. Where the buffer is overwritten later by a loop that sets each element anew, only
its first life ends there, and the buffer stays for its second. At the edge nothing changes: `T.copy` fills what lies
outside the tensor with zeros, and TileLang guards a direct read outside the tensor and gives zero too.

A `T.reduce_*` call needs the buffer as a whole. One such call does not hold the copy up: it is written out in lanes,
which read the tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import assigned
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.direct import element, mismatch
from opratchet.edit.rewrites.lives import accesses, first_life, following, loop_variables
from opratchet.edit.rewrites.reductions import (
    Reduction,
    lane_counts,
    of_call,
    why_not,
    with_lanes,
)
from opratchet.edit.tree import Statement, Surgery, free_names


class DropCopyIn(Strategy):
    """Drop the copy of a tensor's tile, and the buffer that holds it when nothing else does."""

    id = "drop-copy-in"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "去掉搬入 buffer，直接读 global",
        "en": "drop a copy-in buffer",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each copy that only passes a tensor on."""
        kernel = tl.Kernel.of(situation.source)
        found = [
            self._edit(kernel, copy)
            for copy in kernel.find(tl.copy)
            if copy.source.base in kernel.parameters and copy.target.base in kernel.allocs
        ]
        return answer(found, "no local buffer is filled by a copy from a tensor")

    def _edit(self, kernel: tl.Kernel, copy: tl.Copy) -> Edit | str:
        buffer = kernel.allocs[copy.target.base]
        lines = following(kernel, copy.node)
        if why := _needed(kernel, copy, lines):
            return why
        reduced = _reductions(kernel, lines, buffer)
        uses = first_life(lines, buffer, reduced)
        if isinstance(uses, str):
            return uses
        surgery = Surgery(kernel.source.module)
        surgery.remove(copy.node)
        for use in (use for use in uses if use.index):
            surgery.replace(use.node, element(copy.source, use.index or ()))
        if any(not use.index for use in uses):
            for reduction in reduced.values():
                _from_tensor(kernel, surgery, copy, reduction)
        if len(uses) == len(accesses(lines, buffer.name)):
            surgery.remove(buffer.node)
        title = f"read {copy.source.base} directly instead of through {buffer.name}"
        return Edit(
            self.id, buffer.name, title, surgery.apply, prior=1.05 + 0.01 * len(buffer.dims)
        )


def _reductions(
    kernel: tl.Kernel, lines: Sequence[Statement], buffer: tl.Alloc
) -> dict[Statement, Reduction]:
    """The one `T.reduce_*` call that reads the buffer, where it can be written out in lanes; else none."""
    calls = [call for line in lines if (call := tl.reduce(line))]
    views = [of_call(kernel, call) for call in calls if call.source.base == buffer.name]
    if len(views) != 1 or isinstance(views[0], str) or why_not(kernel, views[0]):
        return {}
    return {views[0].node: views[0]}


def _from_tensor(kernel: tl.Kernel, surgery: Surgery, copy: tl.Copy, reduction: Reduction) -> None:
    index = [cst.Name(name) for name in (*reduction.rows, reduction.axis)]
    direct = replace(reduction, term=element(copy.source, index))
    with_lanes(kernel, surgery, direct, lane_counts(kernel, reduction)[0])


def _needed(kernel: tl.Kernel, copy: tl.Copy, lines: Sequence[Statement]) -> str:
    """Why the copy cannot go, whatever its buffer is used for in `lines`, the statements after it; or empty."""
    name, tensor = copy.target.base, copy.source.base
    if not copy.target.whole:
        return f"only a part of `{name}` is copied from `{tensor}`"
    if tensor in assigned(kernel.body, kernel.buffers):
        return f"`{tensor}` is written by the kernel"
    if len(accesses(kernel.body, name)) > len(accesses(lines, name)) + 1:
        return f"`{name}` is used where this copy of `{tensor}` does not come before"
    if free_names(copy.source.node) & (loop_variables(lines) | assigned(lines, kernel.buffers)):
        return f"the place of the tile in `{tensor}` changes before `{name}` is read"
    return mismatch(kernel, copy.source, kernel.allocs[name])
