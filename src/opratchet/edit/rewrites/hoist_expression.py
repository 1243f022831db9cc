"""Data reuse: compute a loop-invariant expression once, ahead of the loop.

`row_sum[i] / N` inside `for i, j in T.grid(m, n)` does not depend on `j`. The nest is split between `i` and `j` and
the value computed there, into a scalar that the compiler keeps in a register.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.placing import Place, assigned_values, compute_ahead, maximal, place
from opratchet.edit.source import code
from opratchet.edit.tree import bare, fingerprint, free_names, fresh_name, spoken, statement


class HoistExpression(Strategy):
    """Move an expression out of the loop that does not change it."""

    id = "hoist-expression"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "循环不变表达式外提",
        "en": "hoist a loop-invariant expression",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"memory", "compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each invariant expression of each loop."""
        kernel = tl.Kernel.of(situation.source)
        found = [
            self._edit(kernel, number, *group)
            for number, loop in enumerate(kernel.find(tl.loop))
            for group in invariants(kernel, loop)
        ]
        return answer(found, "no loop computes an expression that does not depend on it")

    def _edit(
        self, kernel: tl.Kernel, number: int, where: Place, nodes: list[cst.BaseExpression]
    ) -> Edit:
        value, name = code(bare(nodes[0])), fresh_name(spoken(nodes[0]), kernel.names)
        text = compute_ahead(
            kernel,
            where,
            [statement(f"{name} = {value}\n")],
            {node: cst.Name(name) for node in nodes},
        )
        variable = where.loop.targets[where.depth]
        title = f"compute {value} once, outside the loop over {variable}"
        return Edit(self.id, f"{fingerprint(nodes[0])}@loop{number}", title, text)


def invariants(
    kernel: tl.Kernel, loop: tl.Loop
) -> Iterator[tuple[Place, list[cst.BaseExpression]]]:
    """Invariant expressions of a loop body with the place to compute them; equal ones together."""
    places: dict[str, Place] = {}
    groups: dict[str, list[cst.BaseExpression]] = defaultdict(list)

    def wanted(node: cst.BaseExpression) -> bool:
        computes = isinstance(node, (cst.BinaryOperation, cst.Call))
        return (
            computes
            and bool(free_names(node) & data(kernel))
            and place(kernel, loop, node) is not None
        )

    for value in assigned_values(loop.body):
        for node in maximal(value, wanted):
            where = place(kernel, loop, node)
            assert where is not None
            places[fingerprint(node)] = where
            groups[fingerprint(node)].append(node)
    yield from ((places[key], nodes) for key, nodes in groups.items())


def data(kernel: tl.Kernel) -> set[str]:
    """Names that hold data: tensors and scalars. Arithmetic on loop variables alone is left to the compiler."""
    scalars = {seen.target.base for seen in kernel.find(tl.assign)}
    return kernel.buffers | scalars
