"""Where a value may be computed once, ahead of the loop that uses it again and again.

An expression needs some of the loop variables. In `for i, j in T.grid(m, n)` one that needs only `i` can be computed
between the two: the nest is split into `for i in T.serial(m)` with the value and, inside it, `for j in T.serial(n)`.
The order of the iterations does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import assigned, is_pure
from opratchet.edit.source import code
from opratchet.edit.tree import Statement, Surgery, children, exchange, free_names, statement


@dataclass(frozen=True)
class Place:
    """In front of a loop (`depth` 0), or inside its first `depth` variables and in front of the rest."""

    loop: tl.Loop
    depth: int


def place(kernel: tl.Kernel, loop: tl.Loop, node: cst.BaseExpression) -> Place | None:
    """The outermost place of this loop where an expression has the value it has inside, or None."""
    needed = free_names(node)
    if not is_pure(node) or needed & changed_inside(kernel, loop):
        return None
    depth = max((k + 1 for k, name in enumerate(loop.targets) if name in needed), default=0)
    splits = 0 < depth < len(loop.targets) and loop.kind == "grid"
    return Place(loop, depth) if depth == 0 or splits else None


def changed_inside(kernel: tl.Kernel, loop: tl.Loop) -> set[str]:
    """Names that the body of a loop changes: buffers, scalars, variables of inner loops."""
    return assigned(loop.body, kernel.buffers)


def compute_ahead(
    kernel: tl.Kernel,
    where: Place,
    lines: Sequence[Statement],
    changes: Mapping[cst.CSTNode, cst.CSTNode],
) -> str:
    """The source with new lines at a place, and expressions inside the loop exchanged."""
    surgery = Surgery(kernel.source.module)
    if where.depth == 0:
        surgery.insert_before(where.loop.node, lines)
        for old, new in changes.items():
            surgery.replace(old, new)
    else:
        surgery.expand(where.loop.node, [_split(where, lines, changes)])
    return surgery.apply()


def _split(
    where: Place, lines: Sequence[Statement], changes: Mapping[cst.CSTNode, cst.CSTNode]
) -> Statement:
    loop, depth = where.loop, where.depth
    body = exchange(loop.node.body, changes)
    inner = _header(loop, loop.targets[depth:], loop.extents[depth:]).with_changes(body=body)
    outer = _header(loop, loop.targets[:depth], loop.extents[:depth])
    return outer.with_changes(body=cst.IndentedBlock([*lines, inner]))


def _header(
    loop: tl.Loop, targets: Sequence[str], extents: Sequence[cst.BaseExpression]
) -> Statement:
    """`for targets in T.grid(extents)`, or `T.serial` for one variable, with an empty body."""
    function = loop.call.func
    module = code(function.value) if isinstance(function, cst.Attribute) else "T"
    kind = "serial" if len(targets) == 1 else "grid"
    sizes = ", ".join(code(extent) for extent in extents)
    return statement(f"for {', '.join(targets)} in {module}.{kind}({sizes}):\n    pass\n")


def assigned_values(statements: Sequence[Statement]) -> Iterator[cst.BaseExpression]:
    """Right sides of the assignments of a statement list, not of those in inner loops and branches."""
    for line in statements:
        if (seen := tl.assign(line)) is not None:
            yield seen.value


def maximal(
    node: cst.CSTNode, wanted: Callable[[cst.BaseExpression], bool]
) -> Iterator[cst.BaseExpression]:
    """The largest sub-expressions that are wanted; indices of buffers are not looked into."""
    if isinstance(node, cst.BaseExpression) and wanted(node):
        yield node
    elif not isinstance(node, cst.Subscript):
        for child in children(node):
            yield from maximal(child, wanted)
