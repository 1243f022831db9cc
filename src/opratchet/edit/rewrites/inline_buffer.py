"""Fewer buffers: compute a value where it is read, instead of storing a tile of such values first.

A buffer whose elements are set by one loop from a plain expression, `y[i, j] = x[i, j] * x[i, j]`, and then only read
element by element, need not exist: each `y[p, q]` becomes `x[p, q] * x[p, q]`. The expression must mean the same
there, so nothing it reads may change in between, and it must be cheap, or read at one place only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import EXPENSIVE, Access, assigned, is_pure, sets_each
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.lives import accesses, first_life, following, loop_variables
from opratchet.edit.tree import (
    Statement,
    Surgery,
    block_of,
    free_names,
    parenthesized,
    substitute,
    walk,
)


class InlineBuffer(Strategy):
    """Replace the reads of an element-wise temporary by the expression it holds."""

    id = "inline-buffer"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "去掉逐元素中间 buffer",
        "en": "drop an element-wise temporary",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each loop that fills a temporary."""
        kernel = tl.Kernel(situation.source)
        found = [
            self._edit(kernel, loop, line)
            for loop in kernel.find(tl.loop)
            for node in loop.body
            if (line := tl.assign(node)) and line.target.base in kernel.allocs and not line.operator
        ]
        return answer(found, "no loop fills a local buffer element by element")

    def _edit(self, kernel: tl.Kernel, loop: tl.Loop, line: tl.Assign) -> Edit | str:
        buffer = kernel.allocs[line.target.base]
        outermost = next((o for o in kernel.loops_around(line.node) if o in tops(kernel, loop)), loop)
        lines = following(kernel, outermost.node)
        uses = first_life(lines, buffer)
        if isinstance(uses, str):
            return uses
        if why := _needed(kernel, outermost, line, buffer, uses, lines):
            return why
        surgery = Surgery(kernel.source.module)
        surgery.remove(outermost.node if block_of(loop.node) == (line.node,) else line.node)
        for use in uses:
            surgery.replace(use.node, _value(line, use))
        if len(accesses(kernel.body, buffer.name)) == len(uses) + 1:
            surgery.remove(buffer.node)
        title = f"compute {buffer.name} where it is read instead of storing it"
        return Edit(self.id, buffer.name, title, surgery.apply(), prior=1.05)
