"""Reductions along the innermost axis, however they are written, and the same with independent lanes.

g++ may not reorder floating-point additions, so a plain sum is one long chain of dependent scalar additions. With `L`
partial accumulators in an array the `L` chains are independent and one vector instruction advances many of them:

    for lane in T.serial(L): lanes[lane] += x[i, j * L + lane]

At the end the partial results are combined, then the up to `L - 1` elements that are left over are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.nest import (
    Nest,
    accumulation,
    at,
    block,
    constant,
    declare,
    factor,
    for_each,
    loses_comment,
    nests,
    statements,
    variables,
)
from opratchet.edit.source import KernelSource, code
from opratchet.edit.tree import Statement, Surgery, expression, free_names, fresh_name

LANES = (16, 32, 8)
_START = {"sum": "0", "max": "-T.infinity({0})", "min": "T.infinity({0})"}
_FOLD = {"sum": "{0} += {1}", "max": "{0} = T.max({0}, {1})", "min": "{0} = T.min({0}, {1})"}


@dataclass(frozen=True)
class Reduction:
    """`target = fold of term over axis`, for each row.

    Attributes:
        node: The statement that does it.
        op: `sum`, `max` or `min`.
        rows: Extents of the loop variables of the rows; empty for a single result.
        axis: Loop variable that is reduced over.
        extent: Its extent.
        target: The element that receives the result.
        term: What is reduced.
        clear: Whether the target starts fresh; else what it held takes part.
        whole: Buffer that a `T.reduce_*` call reads; empty for a loop.
    """

    node: Statement
    op: str
    rows: Mapping[str, str]
    axis: str
    extent: str
    target: cst.BaseExpression
    term: cst.BaseExpression
    clear: bool
    whole: str = ""

    @property
    def base(self) -> str:
        """Name of the buffer that receives the result."""
        assert isinstance(self.target, cst.Subscript)
        return code(self.target.value)


def reductions(kernel: tl.Kernel) -> list[Reduction | str]:
    """All reductions of a kernel in source order; for one that is not understood, why."""
    found: list[Reduction | str] = []
    perfect: dict[cst.CSTNode, Nest] = {seen.node: seen for seen in nests(kernel)}
    for node in kernel.statements:
        call = tl.reduce(node)
        if call is not None:
            found.append(of_call(kernel, call))
        elif node in perfect and (seen := _of_nest(perfect[node])):
            found.append(seen)
    return found


def of_call(kernel: tl.Kernel, call: tl.Reduce) -> Reduction | str:
    """View of a `T.reduce_sum/max/min` call over the last axis of a local buffer, or why it is none."""
    name = f"T.reduce_{call.op}({code(call.source.node)}, …)"
    source, target = kernel.allocs.get(call.source.base), kernel.allocs.get(call.target.base)
    if call.op not in _FOLD:
        return f"`{name}` is no sum, maximum or minimum"
    if source is None or target is None or not call.source.whole or not call.target.whole:
        return f"`{name}` does not go from one whole local buffer to another"
    if call.dim not in (-1, len(source.dims) - 1):
        return f"`{name}` does not reduce the innermost axis"
    names = variables(kernel, call.node, "ijklmn"[: len(source.dims)])
    index = _result_index(names[:-1], target.dims, source.dims[:-1])
    if not index:
        return f"`{name}` has a result of a shape that is not understood"
    return Reduction(
        node=call.node,
        op=call.op,
        rows=dict(zip(names[:-1], source.dims[:-1], strict=True)),
        axis=names[-1],
        extent=source.dims[-1],
        target=expression(f"{target.name}[{', '.join(index)}]"),
        term=expression(f"{source.name}[{', '.join(names)}]"),
        clear=call.clear,
        whole=source.name,
    )


def _result_index(rows: list[str], dims: tuple[str, ...], expected: tuple[str, ...]) -> list[str]:
    """Index of the result of a row; the reduced axis may be kept with the extent 1."""
    if rows and dims == expected:
        return rows
    return [*rows, "0"] if dims == (*expected, "1") else []


def _of_nest(seen: Nest) -> Reduction | None:
    found = accumulation(seen.body[0]) if len(seen.body) == 1 else None
    *rows, axis = seen.extents
    # A nest with a remainder for an extent is the tail of an earlier split.
    if found is None or axis in free_names(found.target.node) or "%" in seen.extents[axis]:
        return None
    return Reduction(
        node=seen.node,
        op=found.op,
        rows={name: seen.extents[name] for name in rows},
        axis=axis,
        extent=seen.extents[axis],
        target=found.target.node,
        term=found.term,
        clear=False,
    )


def why_not(kernel: tl.Kernel, found: Reduction) -> str:
    """Why a reduction cannot be split into lanes; empty when it can."""
    target = kernel.allocs.get(found.base)
    if target is None:
        return f"`{found.base}` is no local buffer: its dtype is not known"
    if found.op != "sum" and not _is_float(kernel.source, target.dtype):
        return f"`{found.base}` has a dtype without infinities"
    if not lane_counts(kernel, found):
        return (
            f"the reduction into `{found.base}` over {found.extent} elements is too short to split"
        )
    if loses_comment(found.node):
        return f"a comment in the reduction into `{found.base}` would be lost"
    return ""


def lane_counts(kernel: tl.Kernel, found: Reduction) -> list[int]:
    """Numbers of lanes worth trying, best guess first: each lane must get two elements at least.

    An extent written as a small number is left alone; it is what combines the lanes of an earlier split.
    """
    size = constant(kernel.source, found.extent)
    if size is not None and found.extent.isdigit() and size <= max(LANES):
        return []
    return [lanes for lanes in LANES if size is None or size >= 2 * lanes]


def _is_float(source: KernelSource, dtype: str) -> bool:
    defaults = {p.name.value: p.default for p in source.factory.params.params}
    default = defaults.get(dtype)
    return "float" in (code(default) if default is not None else dtype)


def with_lanes(kernel: tl.Kernel, surgery: Surgery, found: Reduction, lanes: int) -> None:
    """Replace a reduction by its form with `lanes` partial accumulators."""
    dtype = kernel.allocs[found.base].dtype
    array = fresh_name("lanes", kernel.names)
    declare(kernel, surgery, f"{array} = T.alloc_local(({lanes},), {dtype})")
    lines = _lines(kernel, found, lanes, array, dtype)
    texts = [block(for_each(found.rows), *lines)] if found.rows else lines
    surgery.expand(found.node, statements(texts))


def _lines(kernel: tl.Kernel, found: Reduction, lanes: int, array: str, dtype: str) -> list[str]:
    """Lines for one row."""
    used = {*found.rows, found.axis, *free_names(found.term)}
    (lane,) = variables(kernel, found.node, ["lane"], used)
    axis, extent, target = found.axis, factor(found.extent), code(found.target)
    start, fold = _START[found.op].format(dtype), _FOLD[found.op].format
    size = constant(kernel.source, found.extent) if found.extent.isdigit() else None
    chunk = at(found.term, {axis: f"{axis} * {lanes} + {lane}"})
    rest = at(found.term, {axis: f"{extent} // {lanes} * {lanes} + {axis}"})
    each_lane = f"for {lane} in T.serial({lanes}):"
    fill = f"T.clear({array})" if start == "0" else f"T.fill({array}, {start})"
    lines = [
        fill,
        block(
            f"for {axis} in T.serial({extent} // {lanes}):",
            block(each_lane, fold(f"{array}[{lane}]", chunk)),
        ),
        *([f"{target} = {start}"] if found.clear else []),
        block(each_lane, fold(target, f"{array}[{lane}]")),
    ]
    tail = block(f"for {axis} in T.serial({extent} % {lanes}):", fold(target, rest))
    return lines if size is not None and size % lanes == 0 else [*lines, tail]
