"""Fewer buffers: compute a value where it is read, instead of storing a tile of such values first.

A buffer whose elements are set by one loop from a plain expression, `y[i, j] = x[i, j] * x[i, j]`, and then only read
element by element, need not exist: each `y[p, q]` becomes `x[p, q] * x[p, q]`. The expression must mean the same
there, so nothing it reads may change in between, and it must be cheap, or read at one place only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import EXPENSIVE, Access, assigned, is_pure, sets_each
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.lives import accesses, first_life, following
from opratchet.edit.tree import (
    Statement,
    Surgery,
    fingerprint,
    free_names,
    parenthesized,
    standing_alone,
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
        """One edit for each element-wise temporary that can go, or whose first life can."""
        kernel = tl.Kernel.of(situation.source)
        found = [
            self._edit(kernel, temporary)
            for line in kernel.find(tl.assign)
            if (temporary := _temporary(kernel, line)) is not None
        ]
        return answer(found, "no loop fills a local buffer element by element")

    def _edit(self, kernel: tl.Kernel, temporary: _Temporary) -> Edit | str:
        buffer, line = temporary.buffer, temporary.line
        lines = following(kernel, temporary.nest.node)
        uses = first_life(lines, buffer)
        if isinstance(uses, str):
            return uses
        if why := _needed(kernel, temporary, uses, lines):
            return f"`{buffer.name}` has to be stored: {why}"
        surgery = Surgery(kernel.source.module)
        surgery.remove(_emptied(kernel, temporary))
        for use in uses:
            surgery.replace(use.node, _value_at(kernel, line, use))
        if len(accesses(kernel.body, buffer.name)) == len(uses) + 1:
            surgery.remove(buffer.node)
        title = f"compute {buffer.name} where it is read instead of storing it"
        return Edit(self.id, buffer.name, title, surgery.apply, prior=1.05)


@dataclass(frozen=True)
class _Temporary:
    """A buffer, the assignment that sets its elements, and the loop nest that runs over all of them."""

    buffer: tl.Alloc
    line: tl.Assign
    nest: tl.Loop


def _temporary(kernel: tl.Kernel, line: tl.Assign) -> _Temporary | None:
    buffer = kernel.allocs.get(line.target.base)
    if buffer is None or line.operator:
        return None
    write = accesses([line.node], buffer.name)[-1]
    around = kernel.loops_around(line.node)
    nest = next((loop for loop in around if sets_each(loop.node, write, buffer)), None)
    return _Temporary(buffer, line, nest) if nest else None


def _needed(
    kernel: tl.Kernel, temporary: _Temporary, uses: list[Access], lines: Sequence[Statement]
) -> str:
    """Why the expression cannot stand where the buffer is read; empty when it can."""
    name, value = temporary.buffer.name, temporary.line.value
    own = {fingerprint(part) for part in temporary.line.target.index or ()}
    if not uses:
        return "nothing reads it element by element"
    if not is_pure(value):
        return "what it holds is not a plain expression"
    if len(accesses(kernel.body, name)) > len(accesses(lines, name)) + 1:
        return "it is used before or while it is set"
    if changed := (free_names(value) - own) & assigned(
        [temporary.nest.node, *lines], kernel.buffers
    ):
        return f"`{min(changed)}` changes before it is read"
    again = len(uses) > 1 or _depth(kernel, uses[0].node) > _depth(kernel, temporary.line.node)
    return (
        "it is costly and would be computed more often"
        if again and _is_costly(kernel, value)
        else ""
    )


def _is_costly(kernel: tl.Kernel, value: cst.BaseExpression) -> bool:
    """Whether an expression calls an expensive function or divides; `1.0 / N` is computed by the compiler."""
    for part in walk(value):
        if tl.primitive(part) in EXPENSIVE:
            return True
        divides = isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Divide)
        if divides and free_names(part) & kernel.values:
            return True
    return False


def _depth(kernel: tl.Kernel, node: cst.CSTNode) -> int:
    """Number of loop variables around a statement or expression."""
    return sum(len(loop.targets) for loop in kernel.loops_around(node))


def _emptied(kernel: tl.Kernel, temporary: _Temporary) -> Statement:
    """The outermost statement that has no content besides the assignment."""
    gone: Statement = temporary.line.node
    for loop in reversed(kernel.loops_around(temporary.line.node)):
        if loop.body != (gone,) or gone is temporary.nest.node:
            break
        gone = loop.node
    return gone


def _value_at(kernel: tl.Kernel, line: tl.Assign, use: Access) -> cst.BaseExpression:
    """The expression for the element that is read, in parentheses unless it stands alone."""
    names = [fingerprint(part) for part in line.target.index or ()]
    value = substitute(line.value, dict(zip(names, use.index or (), strict=True)))
    alone = use.node in standing_alone(kernel.source.body)
    return value if alone else parenthesized(value)
