"""Matrix products, as a `T.gemm` call or as a loop nest, seen as `target[i, j] += term(i, k, j)`.

`j` is the axis along which every operand that it moves lies contiguously, so that g++ can vectorise over it.
A `T.gemm` whose second operand is transposed has none; its operand is turned round into a local buffer first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.nest import (
    Nest,
    accumulation,
    at,
    block,
    declare,
    for_each,
    loses_comment,
    nests,
    statements,
    variables,
)
from opratchet.edit.source import code
from opratchet.edit.tree import (
    Statement,
    Surgery,
    expression,
    fingerprint,
    free_names,
    fresh_name,
    walk,
)


@dataclass(frozen=True)
class Product:
    """`target[i, j] += term` over a nest.

    Attributes:
        node: The statement that does it.
        name: Buffer that receives the result.
        i, k, j: Loop variables of the rows, of the sum, and of the contiguous axis.
        extents: Their extents.
        target: The element that receives the result.
        term: What is added.
        declared: Allocation that is needed first, or empty.
        before: Statements that are needed first.
        call: Whether it is a `T.gemm` call.
    """

    node: Statement
    name: str
    i: str
    k: str
    j: str
    extents: Mapping[str, str]
    target: cst.BaseExpression
    term: cst.BaseExpression
    declared: str = ""
    before: Sequence[str] = ()
    call: bool = False

    def line(self, places: Mapping[str, str]) -> str:
        """The accumulating statement with loop variables replaced."""
        return f"{at(self.target, places)} += {at(self.term, places)}"

    def over(self, order: str) -> str:
        """The plain nest in an order of `i`, `k` and `j`, e.g. `ikj`."""
        names = {"i": self.i, "k": self.k, "j": self.j}
        extents = {names[letter]: self.extents[names[letter]] for letter in order}
        return block(for_each(extents), self.line({}))


def rewrite(kernel: tl.Kernel, found: Product, texts: Sequence[str]) -> str:
    """The source with a product replaced by new statements."""
    surgery = Surgery(kernel.source.module)
    if found.declared:
        declare(kernel, surgery, found.declared)
    surgery.expand(found.node, statements([*found.before, *texts]))
    return surgery.apply()


def of_gemm(kernel: tl.Kernel, call: tl.Gemm) -> Product | str:
    """View of a `T.gemm` call on whole local matrices, or why it is none."""
    name = code(call.node)
    buffers = [kernel.allocs.get(part.base) for part in (call.a, call.b, call.c)]
    a, b, c = buffers
    if not (a and b and c) or not (call.a.whole and call.b.whole and call.c.whole):
        return f"`{name}` does not work on whole local buffers"
    if loses_comment(call.node):
        return f"a comment at `{name}` would be lost"
    if any(len(buffer.dims) != 2 for buffer in (a, b, c)):
        return f"`{name}` does not work on matrices"
    i, k, j = variables(kernel, call.node, ["i", "k", "j"])
    summed = a.dims[0] if call.transpose_a else a.dims[1]
    left = f"{a.name}[{k}, {i}]" if call.transpose_a else f"{a.name}[{i}, {k}]"
    extents = {i: c.dims[0], k: summed, j: c.dims[1]}
    turned = fresh_name(f"{b.name}_t", kernel.names) if call.transpose_b else b.name
    cleared = [f"T.clear({c.name})"] if call.clear else []
    turn = block(for_each({k: summed, j: c.dims[1]}), f"{turned}[{k}, {j}] = {b.name}[{j}, {k}]")
    return Product(
        node=call.node,
        name=c.name,
        i=i,
        k=k,
        j=j,
        extents=extents,
        target=expression(f"{c.name}[{i}, {j}]"),
        term=expression(f"{left} * {turned}[{k}, {j}]"),
        declared=f"{turned} = T.alloc_local(({summed}, {c.dims[1]}), {b.dtype})"
        if call.transpose_b
        else "",
        before=[*cleared, turn] if call.transpose_b else cleared,
        call=True,
    )


def of_nest(seen: Nest) -> Product | str | None:
    """View of a nest of three loops that accumulates a matrix; why not when its axes do not fit; None for others."""
    found = accumulation(seen.body[0]) if len(seen.body) == 1 else None
    if found is None or found.op != "sum" or len(seen.extents) != 3:
        return None
    kept = [name for name in seen.extents if name in free_names(found.target.node)]
    summed = [name for name in seen.extents if name not in kept]
    if len(kept) != 2 or not _each_once(found.target, kept):
        return None
    target = found.target.node
    parts = [part for node in (target, found.term) for part in walk(node)]
    contiguous = [name for name in kept if _contiguous(parts, name)]
    if not contiguous:
        return f"the product into `{found.target.base}` has no axis along which all operands lie contiguously"
    if loses_comment(seen.node):
        return f"a comment in the product into `{found.target.base}` would be lost"
    j = contiguous[-1]
    (i,) = [name for name in kept if name != j]
    return Product(seen.node, found.target.base, i, summed[0], j, seen.extents, target, found.term)


def products(kernel: tl.Kernel) -> list[Product | str]:
    """All products of a kernel; for one that is not understood, why."""
    calls = [of_gemm(kernel, call) for call in kernel.find(tl.gemm)]
    loops = [of_nest(seen) for seen in nests(kernel)]
    return [*calls, *(seen for seen in loops if seen is not None)]


def _each_once(target: tl.Region, variables: Sequence[str]) -> bool:
    """Whether each pair of loop variables means another element: they stand in two indices, each shifted at most."""
    shifted = [name for part in target.index or () for name in variables if _shifted(part, name)]
    return sorted(shifted) == sorted(variables)


def _shifted(part: cst.BaseExpression, name: str) -> bool:
    """Whether an index is `name`, or `anything without name + name`."""
    if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Add):
        sides = [part.left, part.right]
        return any(fingerprint(side) == name for side in sides) and any(
            name not in free_names(side) for side in sides
        )
    return fingerprint(part) == name


def _contiguous(parts: Sequence[cst.CSTNode], name: str) -> bool:
    """Whether every element that depends on a loop variable does so in its last index, one step a time."""
    elements = [p for p in parts if isinstance(p, cst.Subscript) and name in free_names(p)]
    indices = [tl.indices(element) for element in elements]
    return bool(elements) and all(
        index and _shifted(index[-1], name) and not any(name in free_names(p) for p in index[:-1])
        for index in indices
    )
