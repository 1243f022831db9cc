"""Data reuse: compute an expression that is written several times once, into a scalar.

Looked for inside one statement list (a loop body): the first statement that holds the expression and those after it,
as long as nothing in between writes what the expression reads. Only expressions that cost something count: a call
to `exp` and its like, a division, an element of a tensor in global memory, or arithmetic of several operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import EXPENSIVE, assigned, is_pure
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.source import code
from opratchet.edit.tree import (
    Statement,
    Surgery,
    bare,
    block_of,
    children,
    fingerprint,
    free_names,
    fresh_name,
    spoken,
    statement,
    walk,
)


class CommonExpression(Strategy):
    """Give a repeated expression a name."""

    id = "common-expression"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "重复表达式只算一次",
        "en": "compute a repeated expression once",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"memory", "compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each expression that a statement list computes more than once."""
        kernel = tl.Kernel.of(situation.source)
        blocks = [kernel.body, *(block_of(line) for line in kernel.statements)]
        found = [
            self._edit(kernel, number, *group)
            for number, block in enumerate(block for block in blocks if block)
            for group in repeated(kernel, block)
        ]
        return answer(found, "no costly expression is computed twice with the same value")

    def _edit(
        self, kernel: tl.Kernel, number: int, first: Statement, nodes: list[cst.BaseExpression]
    ) -> Edit:
        value, name = code(bare(nodes[0])), fresh_name(spoken(nodes[0]), kernel.names)
        surgery = Surgery(kernel.source.module)
        surgery.insert_before(first, [statement(f"{name} = {value}\n")])
        for node in nodes:
            surgery.replace(node, cst.Name(name))
        title = f"compute {value} once instead of {len(nodes)} times"
        return Edit(self.id, f"{fingerprint(nodes[0])}@block{number}", title, surgery.apply)


def repeated(
    kernel: tl.Kernel, block: Sequence[Statement]
) -> Iterator[tuple[Statement, list[cst.BaseExpression]]]:
    """Statement of the first use, and all uses, of each repeated expression; the largest ones only."""
    groups = [run for runs in _runs(kernel, block).values() for run in runs if len(run[1]) > 1]
    for first, nodes in groups:
        inside = [
            any(node in walk(other) for other in others)
            for _, others in groups
            for node in nodes
            if len(others) == len(nodes) and others is not nodes
        ]
        if not any(inside):
            yield first, nodes


Runs = dict[str, list[tuple[Statement, list[cst.BaseExpression]]]]


def _runs(kernel: tl.Kernel, block: Sequence[Statement]) -> Runs:
    """Uses of each costly expression, cut into runs wherever something it reads is written."""
    runs: Runs = defaultdict(list)
    live: set[str] = set()
    for line in block:
        seen = tl.assign(line)
        for node in _costly(kernel, seen.value) if seen else ():
            key = fingerprint(node)
            if key not in live:
                runs[key].append((line, []))
                live.add(key)
            runs[key][-1][1].append(node)
        changed = assigned([line], kernel.buffers)
        live -= {key for key in live if free_names(runs[key][-1][1][0]) & changed}
    return runs


def _costly(kernel: tl.Kernel, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    for node in _outside_indices(value):
        at_run_time = free_names(node) & kernel.values
        if at_run_time and is_pure(node) and _cost(kernel, node) > 1:
            yield node


def _outside_indices(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BaseExpression):
        yield node
    if not isinstance(node, cst.Subscript):
        for child in children(node):
            yield from _outside_indices(child)


def _cost(kernel: tl.Kernel, node: cst.BaseExpression) -> int:
    """Rough number of operations; a call, a division or a guarded global read counts for several."""
    cost = 0
    for part in _outside_indices(node):
        if isinstance(part, cst.BinaryOperation):
            cost += 4 if isinstance(part.operator, cst.Divide) else 1
        elif tl.primitive(part) in EXPENSIVE:
            cost += 4
        elif isinstance(part, cst.Subscript) and free_names(part.value) & kernel.parameters.keys():
            cost += 2
    return cost
