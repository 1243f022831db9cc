"""Data reuse: divide once and multiply.

A division costs several multiplications, and the compiler may not replace it by itself because the last bit of the
result can differ. Two forms: the divisor is known when the kernel is built (`/ N` becomes `* (1.0 / N)`), or it
does not depend on the innermost loop variable (`1.0 / row_sum[i]` is computed once a row). The accuracy gate judges
the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.placing import Place, assigned_values, compute_ahead, place
from opratchet.edit.source import code
from opratchet.edit.tree import (
    Surgery,
    expression,
    fingerprint,
    free_names,
    fresh_name,
    parenthesized,
    spoken,
    statement,
    walk,
)


class Reciprocal(Strategy):
    """Replace divisions by a multiplication with the reciprocal."""

    id = "reciprocal"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {"zh": "除法改乘倒数", "en": "divide once and multiply"}
    gain = (0.05, 0.15)
    eases = frozenset({"memory", "compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each divisor of a loop, and one for each division by a constant."""
        kernel = tl.Kernel.of(situation.source)
        if any("int" in alloc.dtype for alloc in kernel.allocs.values()):
            return NotApplicable("the kernel computes with integers, where a reciprocal is zero")
        in_loops = [
            self._once(kernel, number, *group)
            for number, loop in enumerate(kernel.find(tl.loop))
            for group in divisors(kernel, loop)
        ]
        constant = [self._constant(kernel, *item) for item in enumerate(by_constants(kernel))]
        return answer([*in_loops, *constant], "nothing is divided by a value that stays the same")

    def _once(
        self, kernel: tl.Kernel, number: int, where: Place, divisions: list[cst.BinaryOperation]
    ) -> Edit:
        divisor = divisions[0].right
        name = fresh_name(f"inv_{spoken(divisor)}", kernel.names)
        line = statement(f"{name} = 1.0 / {code(parenthesized(divisor))}\n")
        changes: dict[cst.CSTNode, cst.CSTNode] = {d: _times(d, cst.Name(name)) for d in divisions}
        text = compute_ahead(kernel, where, [line], changes)
        variable = where.loop.targets[where.depth]
        title = f"divide by {code(divisor)} once, outside the loop over {variable}, and multiply"
        return Edit(self.id, f"{fingerprint(divisor)}@loop{number}", title, text, prior=1.1)

    def _constant(self, kernel: tl.Kernel, number: int, division: cst.BinaryOperation) -> Edit:
        divisor = code(parenthesized(division.right))
        factor = parenthesized(expression(f"1.0 / {divisor}"))
        surgery = Surgery(kernel.source.module)
        surgery.replace(division, _times(division, factor))
        title = f"multiply {code(division.left)} by 1 / {divisor} instead of dividing"
        return Edit(self.id, f"{fingerprint(division)}@{number}", title, surgery.apply)


def divisors(kernel: tl.Kernel, loop: tl.Loop) -> Iterator[tuple[Place, list[cst.BinaryOperation]]]:
    """Divisions in a loop body whose divisor, but not the whole of them, is invariant; by divisor."""
    groups: dict[str, list[cst.BinaryOperation]] = defaultdict(list)
    for value in assigned_values(loop.body):
        for division in _divisions(value):
            if free_names(division.right) & kernel.values and place(kernel, loop, division) is None:
                groups[fingerprint(division.right)].append(division)
    for divisions in groups.values():
        where = place(kernel, loop, divisions[0].right)
        if where is not None:
            yield where, divisions


def by_constants(kernel: tl.Kernel) -> Iterator[cst.BinaryOperation]:
    """Divisions of a run-time value by something that is known when the kernel is built."""
    for value in assigned_values(kernel.statements):
        for division in _divisions(value):
            known = not free_names(division.right) & kernel.values
            if known and free_names(division.left) & kernel.values:
                yield division


def _divisions(node: cst.CSTNode) -> Iterator[cst.BinaryOperation]:
    for part in walk(node):
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Divide):
            yield part


def _times(division: cst.BinaryOperation, factor: cst.BaseExpression) -> cst.BinaryOperation:
    return division.with_changes(operator=cst.Multiply(), right=factor)
