"""TileLang as a rewrite sees it: typed views of the statements of a kernel, over the concrete syntax tree.

Each view (`Alloc`, `Loop`, `Copy`, `Reduce`, `Gemm`, `Fill`, `Assign`) is made from a statement by a function of the
same name in small letters, which gives None when the statement is something else. `Kernel` holds what is asked
of a whole kernel: its statements, its buffers, the names in use. What a statement reads and writes is the
business of `opratchet.edit.effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

import libcst as cst

from opratchet.edit.source import KernelSource, code, dotted
from opratchet.edit.tree import (
    Statement,
    block_of,
    call_statement,
    free_names,
    keywords,
    nested,
    positional,
    small,
    walk,
)

View = TypeVar("View")

ALLOCATORS = {"alloc_local": "local", "alloc_shared": "shared", "alloc_fragment": "fragment"}
NESTS = ("grid", "Parallel")
LOOPS = (*NESTS, "serial", "vectorized", "unroll", "Pipelined", "range")
# Macros that `inline-math` puts in the place of a function: pure, costly, and of the same value.
INLINED = {f"inline_{name}": name for name in ("exp", "exp2", "erf", "tanh", "sigmoid")}


def primitive(node: cst.CSTNode) -> str:
    """Name of the TileLang function (or of what a macro stands for) that a call calls: `copy` for `T.copy(...)`; else `""`."""
    name = dotted(node.func) if isinstance(node, cst.Call) else ""
    for module in ("T.", "tilelang.language."):
        if name.startswith(module):
            return name[len(module) :]
    return INLINED.get(name, "")


@dataclass(frozen=True)
class Region:
    """A buffer as an argument: `x` (index `()`), or `X[by * block_M, 0]`; index None when there are slices."""

    node: cst.BaseExpression
    base: str
    index: tuple[cst.BaseExpression, ...] | None

    @property
    def whole(self) -> bool:
        """Whether the bare buffer is meant."""
        return self.index == ()


def region(node: cst.BaseExpression) -> Region | None:
    """A name or a subscripted name as a region."""
    if isinstance(node, cst.Name):
        return Region(node, node.value, ())
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
        return Region(node, node.value.value, indices(node))
    return None


def indices(node: cst.Subscript) -> tuple[cst.BaseExpression, ...] | None:
    """Index expressions of a subscript, or None when one of them is a slice."""
    found = [element.slice for element in node.slice]
    plain = tuple(part.value for part in found if isinstance(part, cst.Index) and not part.star)
    return plain if len(plain) == len(found) else None


@dataclass(frozen=True)
class Alloc:
    """`name = T.alloc_local((dims), dtype)`; scope is `local`, `shared` or `fragment`."""

    node: cst.SimpleStatementLine
    name: str
    dims: tuple[str, ...]
    dtype: str
    scope: str

    @property
    def like(self) -> tuple[tuple[str, ...], str, str]:
        """What two buffers must share to stand in for one another: dims, dtype and scope."""
        return self.dims, self.dtype, self.scope


def alloc(node: cst.CSTNode) -> Alloc | None:
    """View of an allocation with its dims written out as a tuple or list and its dtype given."""
    line = small(node)
    if not isinstance(line, cst.Assign) or not isinstance(line.value, cst.Call):
        return None
    scope = ALLOCATORS.get(primitive(line.value))
    target = line.targets[0].target
    if scope is None or len(line.targets) > 1 or not isinstance(target, cst.Name):
        return None
    args, named = positional(line.value), keywords(line.value)
    shape = args[0] if args else named.get("shape")
    dtype = args[1] if len(args) > 1 else named.get("dtype")
    if not isinstance(shape, (cst.Tuple, cst.List)) or dtype is None:
        return None
    dims = tuple(code(element.value) for element in shape.elements)
    return Alloc(cast(cst.SimpleStatementLine, node), target.value, dims, code(dtype), scope)


@dataclass(frozen=True)
class Loop:
    """A `for` over a TileLang range.

    Attributes:
        node: The statement.
        kind: One of `LOOPS`.
        targets: Loop variables, outermost first.
        extents: One extent a loop variable; for `T.serial(start, stop)` it is `stop`.
        start: First value of `T.serial(start, stop)`, else None (zero).
        keywords: Keyword arguments, e.g. `num_stages`.
        body: Statements inside.
    """

    node: cst.For
    kind: str
    targets: tuple[str, ...]
    extents: tuple[cst.BaseExpression, ...]
    start: cst.BaseExpression | None
    keywords: Mapping[str, cst.BaseExpression]
    body: tuple[Statement, ...]

    @property
    def call(self) -> cst.Call:
        """The call that is looped over, e.g. `T.grid(block_M, N)`."""
        return cast(cst.Call, self.node.iter)

    @property
    def inner(self) -> str:
        """The loop variable that moves fastest."""
        return self.targets[-1]

    @property
    def bounds(self) -> dict[str, str]:
        """Text of each loop variable's extent; variables that do not start at zero are left out."""
        return {} if self.start else dict(zip(self.targets, map(code, self.extents), strict=True))


def loop(node: cst.CSTNode) -> Loop | None:
    """View of a `for` over `T.serial`, `T.grid`, `T.Parallel`, `T.vectorized`, `T.unroll`, `T.Pipelined` or `range`."""
    if not isinstance(node, cst.For) or not isinstance(node.iter, cst.Call) or not block_of(node):
        return None
    kind = primitive(node.iter) or dotted(node.iter.func)
    targets, args = _targets(node.target), positional(node.iter)
    if kind not in LOOPS or not targets or node.orelse is not None:
        return None
    start = None
    if kind not in NESTS and len(args) == 2:
        start, args = args[0], args[1:]
    if len(args) != len(targets):
        return None
    return Loop(node, kind, targets, tuple(args), start, keywords(node.iter), block_of(node))


def _targets(node: cst.BaseExpression) -> tuple[str, ...]:
    parts = [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]
    names = tuple(part.value for part in parts if isinstance(part, cst.Name))
    return names if len(names) == len(parts) else ()


@dataclass(frozen=True)
class Copy:
    """`T.copy(source, target)`."""

    node: cst.SimpleStatementLine
    source: Region
    target: Region


def copy(node: cst.CSTNode) -> Copy | None:
    """View of a `T.copy` statement of two regions and no further arguments."""
    found = _regions(node, "copy", 2)
    return Copy(cast(cst.SimpleStatementLine, node), *found) if found else None


@dataclass(frozen=True)
class Reduce:
    """`T.reduce_<op>(source, target, dim=..., clear=...)`; `clear` False keeps what `target` held."""

    node: cst.SimpleStatementLine
    op: str
    source: Region
    target: Region
    dim: int
    clear: bool


def reduce(node: cst.CSTNode) -> Reduce | None:
    """View of a `T.reduce_sum/max/min/abssum/absmax/…` statement whose `dim` and `clear` are constants."""
    call = call_statement(node)
    name = primitive(call) if call else ""
    found = _regions(node, name, 2, at_most=4) if name.startswith("reduce_") else None
    if call is None or found is None:
        return None
    args, named = positional(call), keywords(call)
    named |= dict(zip(("dim", "clear"), args[2:], strict=False))
    dim = code(named["dim"]) if "dim" in named else "-1"
    clear = code(named["clear"]) if "clear" in named else "True"
    if not dim.lstrip("-").isdigit() or clear not in ("True", "False"):
        return None
    line = cast(cst.SimpleStatementLine, node)
    source, target = found
    return Reduce(line, name.removeprefix("reduce_"), source, target, int(dim), clear == "True")


@dataclass(frozen=True)
class Gemm:
    """`T.gemm(a, b, c, transpose_A=..., transpose_B=...)`: `c += a @ b`, cleared first with `clear_accum=True`."""

    node: cst.SimpleStatementLine
    a: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_b: bool
    clear: bool


def gemm(node: cst.CSTNode) -> Gemm | None:
    """View of a `T.gemm` statement whose transpositions are constants."""
    call = call_statement(node)
    found = _regions(node, "gemm", 3, at_most=5)
    if call is None or found is None:
        return None
    named = {name: code(value) for name, value in keywords(call).items()}
    order = ("transpose_A", "transpose_B")
    named |= dict(zip(order, map(code, positional(call)[3:]), strict=False))
    flags = [named.get(name, "False") for name in (*order, "clear_accum")]
    if not set(flags) <= {"True", "False"}:
        return None
    a, b, c = found
    return Gemm(cast(cst.SimpleStatementLine, node), a, b, c, *(flag == "True" for flag in flags))


@dataclass(frozen=True)
class Fill:
    """`T.fill(target, value)`, or `T.clear(target)` with the value None (zero)."""

    node: cst.SimpleStatementLine
    target: Region
    value: cst.BaseExpression | None


def fill(node: cst.CSTNode) -> Fill | None:
    """View of a `T.clear` or `T.fill` statement."""
    call = call_statement(node)
    cleared, filled = _regions(node, "clear", 1), _regions(node, "fill", 1, at_most=2)
    line = cast(cst.SimpleStatementLine, node)
    if cleared:
        return Fill(line, cleared[0], None)
    if call is None or not filled:
        return None
    args = positional(call)
    value = args[1] if len(args) > 1 else keywords(call).get("value")
    return Fill(line, filled[0], value) if value is not None else None


def _regions(node: cst.CSTNode, name: str, count: int, at_most: int = 0) -> list[Region] | None:
    """The first `count` arguments of a call statement of a primitive, when each is a region."""
    call = call_statement(node)
    if call is None or primitive(call) != name:
        return None
    args = positional(call)
    found = [region(arg) for arg in args[:count]]
    if len(args) > max(count, at_most) or len(found) < count or not all(found):
        return None
    return [part for part in found if part]


@dataclass(frozen=True)
class Assign:
    """`target[...] = value`, `name = value` or `target[...] += value` (operator `+`)."""

    node: cst.SimpleStatementLine
    target: Region
    value: cst.BaseExpression
    operator: str = ""


def assign(node: cst.CSTNode) -> Assign | None:
    """View of an assignment to one element or one name; an allocation is none."""
    line = small(node)
    if isinstance(line, cst.Assign) and len(line.targets) == 1:
        target, value, operator = region(line.targets[0].target), line.value, ""
    elif isinstance(line, cst.AugAssign):
        target, value = region(line.target), line.value
        operator = code(line.operator).rstrip("=")
    elif isinstance(line, cst.AnnAssign) and line.value is not None:
        target, value, operator = region(line.target), line.value, ""
    else:
        return None
    if target is None or alloc(node) is not None:
        return None
    return Assign(cast(cst.SimpleStatementLine, node), target, value, operator)


@dataclass(frozen=True)
class Parameter:
    """`name: T.Tensor((dims), dtype)`, a tensor in global memory; dims are `()` when they are not spelled out."""

    name: str
    dims: tuple[str, ...]
    dtype: str


def parameter(node: cst.Param) -> Parameter:
    """View of a parameter of the kernel."""
    call = node.annotation.annotation if node.annotation else None
    args = positional(call) if isinstance(call, cst.Call) else []
    shape = args[0] if args else None
    dims = shape.elements if isinstance(shape, (cst.Tuple, cst.List)) else ()
    dtype = code(args[1]) if len(args) > 1 else ""
    return Parameter(node.name.value, tuple(code(element.value) for element in dims), dtype)


@dataclass(frozen=True)
class Kernel:
    """The kernel of a source, and everything a rewrite asks of it as a whole."""

    source: KernelSource

    @classmethod
    def of(cls, source: KernelSource) -> Kernel:
        """The kernel of a source. It is the same object each time, so that what it has found is found once."""
        kernel: Kernel = source.views.setdefault(cls, cls(source))
        return kernel

    @cached_property
    def body(self) -> tuple[Statement, ...]:
        """Statements of the innermost `with T.Kernel(...)`; those of the function when there is none."""
        inside: cst.CSTNode = self.source.body
        for node in walk(self.source.body):
            if isinstance(node, cst.With) and any(
                primitive(i.item) == "Kernel" for i in node.items
            ):
                inside = node
        return block_of(inside)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Tensor parameters of the kernel by name."""
        return {p.name.value: parameter(p) for p in self.source.body.params.params}

    @cached_property
    def allocs(self) -> dict[str, Alloc]:
        """Buffers that the kernel allocates, by name."""
        return {view.name: view for view in self.find(alloc)}

    @cached_property
    def buffers(self) -> set[str]:
        """Names of all tensors: parameters and allocations."""
        return {*self.parameters, *self.allocs}

    @cached_property
    def values(self) -> set[str]:
        """Names that exist only when the kernel runs: tensors, loop and block variables, scalars."""
        items = (node for node in walk(self.source.body) if isinstance(node, cst.AsName))
        blocks = (free_names(item.name) for item in items)
        scalars = {view.target.base for view in self.find(assign)}
        loops = (view.targets for view in self.find(loop))
        return self.buffers.union(scalars, *blocks, *loops)

    @cached_property
    def names(self) -> set[str]:
        """Every name of the source; a fresh name must not be one of them."""
        return free_names(self.source.module)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All statements of the body, those in loops and branches too, in source order."""
        return tuple(inner for top in self.body for inner in nested(top))

    def find(self, view: Callable[[cst.CSTNode], View | None]) -> list[View]:
        """All statements that a view function recognises: `kernel.find(loop)`."""
        return [seen for node in self.statements if (seen := view(node)) is not None]

    def loops_around(self, node: cst.CSTNode) -> list[Loop]:
        """The loops a statement (or an expression in it) stands in, outermost first."""
        return [
            seen for seen in self.find(loop) if node in walk(seen.node) and node is not seen.node
        ]

    def siblings(self, node: cst.CSTNode) -> tuple[Statement, ...]:
        """The statement list that a statement is part of."""
        blocks = (part for part in walk(self.source.body) if isinstance(part, cst.IndentedBlock))
        lists = (tuple(cast(Statement, line) for line in block.body) for block in blocks)
        return next(lines for lines in lists if any(line is node for line in lines))
