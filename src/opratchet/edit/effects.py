"""What statements read and write: the ground that every data-flow rewrite stands on.

`effects` lists the accesses of a statement in the order they happen. What is not understood (a call to a macro, a
statement form without a view) is taken to read and write every buffer it names, so that a rewrite which trusts the
list can only refuse too much, never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.source import dotted
from opratchet.edit.tree import Statement, block_of, children, fingerprint, free_names, nested, walk

# Scalar functions without effects. Of these, the expensive ones are worth computing once.
_EXPONENTIAL = {"exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow"}
_WAVES = {"erf", "tanh", "sigmoid", "sin", "cos", "tan", "atan", "atan2", "sinh", "cosh"}
EXPENSIVE = frozenset(_EXPONENTIAL | _WAVES)

_TYPES = {"float64", "float32", "float16", "bfloat16", "int64", "int32", "cast", "Cast"}
_LIMITS = {"infinity", "min_value", "max_value", "isnan", "isinf"}
_WHOLE = {"ceildiv", "truncdiv", "floordiv", "floormod", "truncmod"}
_CHEAP = {"max", "min", "abs", "fabs", "floor", "ceil", "round", "trunc", "clamp", "fma"}
_CHOICE = {"if_then_else", "Select"}
PURE = EXPENSIVE | _TYPES | _LIMITS | _WHOLE | _CHEAP | _CHOICE


@dataclass(frozen=True)
class Access:
    """One access to a buffer or a name.

    Attributes:
        name: Buffer, or scalar name.
        writes: Whether it writes (an update is two accesses: a read, then a write).
        index: Index expressions; `()` is the bare buffer, None an index that is not understood.
        node: The expression that accesses; for a buffer in a call that is not understood, the call.
        covers: Whether a write surely sets every element, whatever was there.
    """

    name: str
    writes: bool
    index: tuple[cst.BaseExpression, ...] | None
    node: cst.CSTNode
    covers: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """Text of the indices, to tell whether two accesses mean the same element."""
        return tuple(fingerprint(part) for part in self.index or ())


def effects(node: cst.CSTNode, buffers: Iterable[str]) -> list[Access]:
    """All accesses of a statement to buffers, and its writes to plain names, in order."""
    return list(_effects(node, set(buffers)))


def reads(node: cst.CSTNode, buffers: Iterable[str]) -> list[Access]:
    """The reading accesses of a statement or an expression."""
    return [access for access in effects(node, buffers) if not access.writes]


def writes(node: cst.CSTNode, buffers: Iterable[str]) -> list[Access]:
    """The writing accesses of a statement."""
    return [access for access in effects(node, buffers) if access.writes]


def is_pure(node: cst.BaseExpression) -> bool:
    """Whether an expression only computes: every call is a known scalar function, nothing is bound or awaited."""
    unsafe = (cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda, cst.BaseComp, cst.StarredElement)
    parts = list(walk(node))
    calls = [tl.primitive(part) for part in parts if isinstance(part, cst.Call)]
    return all(name in PURE for name in calls) and not any(isinstance(p, unsafe) for p in parts)


def _effects(node: cst.CSTNode, buffers: set[str]) -> Iterator[Access]:
    if isinstance(node, cst.BaseExpression):
        yield from _loads(node, buffers)
    elif seen := tl.assign(node):
        yield from _of_assign(seen, buffers)
    elif isinstance(node, cst.SimpleStatementLine):
        yield from _of_call(node, buffers)
    else:
        yield from _of_compound(node, buffers)


def _of_compound(node: cst.CSTNode, buffers: set[str]) -> Iterator[Access]:
    view = tl.loop(node)
    if view is None and not isinstance(node, (cst.If, cst.Else)):
        yield from _opaque(node, buffers)
        return
    head = node.iter if isinstance(node, cst.For) else getattr(node, "test", None)
    if head is not None:
        yield from _loads(head, buffers)
    inside = [a for line in block_of(node) for a in _effects(line, buffers)]
    if isinstance(node, (cst.If, cst.Else)):
        inside = [_uncertain(access) for access in inside]
        if isinstance(node, cst.If) and node.orelse:
            inside += [_uncertain(access) for access in _effects(node.orelse, buffers)]
    yield from inside


def _uncertain(access: Access) -> Access:
    return Access(access.name, access.writes, access.index, access.node)


def _of_assign(seen: tl.Assign, buffers: set[str]) -> Iterator[Access]:
    yield from _loads(seen.value, buffers)
    for part in seen.target.index or ():
        yield from _loads(part, buffers)
    if seen.operator:
        yield Access(seen.target.base, False, seen.target.index, seen.target.node)
    yield Access(seen.target.base, True, seen.target.index, seen.target.node)


def _of_call(node: cst.SimpleStatementLine, buffers: set[str]) -> Iterator[Access]:
    if seen := tl.copy(node):
        yield from _call([seen.source], seen.target, buffers)
    elif made := tl.reduce(node):
        kept = [] if made.clear else [made.target]
        yield from _call([made.source, *kept], made.target, buffers)
    elif product := tl.gemm(node):
        kept = [] if product.clear else [product.c]
        yield from _call([product.a, product.b, *kept], product.c, buffers)
    elif filled := tl.fill(node):
        if filled.value is not None:
            yield from _loads(filled.value, buffers)
        yield from _call([], filled.target, buffers)
    elif not tl.alloc(node):
        yield from _opaque(node, buffers)


def _call(sources: list[tl.Region], target: tl.Region, buffers: set[str]) -> Iterator[Access]:
    for place in [*sources, target]:
        for part in place.index or ():
            yield from _loads(part, buffers)
    for source in sources:
        yield Access(source.base, False, source.index, source.node)
    yield Access(target.base, True, target.index, target.node, covers=target.whole)


def _loads(node: cst.BaseExpression, buffers: set[str]) -> Iterator[Access]:
    """Element reads of an expression; a bare buffer or a call that is not pure may also be written by it."""
    if isinstance(node, cst.Call) and tl.primitive(node) not in PURE and not _is_range(node):
        yield from _opaque(node, buffers)
    elif isinstance(node, cst.Subscript) and dotted(node.value) in buffers:
        for part in tl.indices(node) or ():
            yield from _loads(part, buffers)
        yield Access(dotted(node.value), False, tl.indices(node), node)
    elif isinstance(node, cst.Name) and node.value in buffers:
        yield from _opaque(node, buffers)
    else:
        for child in children(node):
            yield from _within(child, buffers)


def _within(node: cst.CSTNode, buffers: set[str]) -> Iterator[Access]:
    """Reads below a part of an expression that is no expression itself (an argument, a comparison, …)."""
    if isinstance(node, cst.BaseExpression):
        yield from _loads(node, buffers)
    else:
        for child in [node.value] if isinstance(node, cst.Arg) else children(node):
            yield from _within(child, buffers)


def _is_range(node: cst.Call) -> bool:
    return (tl.primitive(node) or dotted(node.func)) in tl.LOOPS


def _opaque(node: cst.CSTNode, buffers: set[str]) -> Iterator[Access]:
    for name in sorted(free_names(node) & buffers):
        yield Access(name, False, None, node)
        yield Access(name, True, None, node)
    for name in sorted(_bound(node) - buffers):
        yield Access(name, True, None, node)


def _bound(node: cst.CSTNode) -> set[str]:
    """Names that a statement binds, in whatever form."""
    binders = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)
    targets = [part.target for part in walk(node) if isinstance(part, binders)]
    aliases = [part.name for part in walk(node) if isinstance(part, cst.AsName)]
    return set().union(*(free_names(part) for part in [*targets, *aliases]))


def fills(line: cst.CSTNode, buffer: tl.Alloc) -> bool:
    """Whether a statement surely sets the whole buffer before anything in it reads the buffer.

    True for `T.clear(b)`, and for `for i, j in T.grid(m, n): b[i, j] = ...` (or the same in nested loops) when the
    buffer is `(m, n)` and the right side does not read it.
    """
    first = next((a for a in effects(line, {buffer.name}) if a.name == buffer.name), None)
    return first is not None and first.writes and (first.covers or sets_each(line, first, buffer))


def sets_each(line: cst.CSTNode, write: Access, buffer: tl.Alloc) -> bool:
    """Whether a loop nest makes a write to each element of the buffer exactly once, unconditionally."""
    around = [part for part in nested(line) if any(node is write.node for node in walk(part))]
    loops = [view for part in around[:-1] if (view := tl.loop(part))]
    bounds = {name: extent for view in loops for name, extent in view.bounds.items()}
    once = len(loops) == len(around) - 1 and sorted(write.key) == sorted(bounds)
    return once and tuple(bounds[name] for name in write.key) == buffer.dims


def assigned(statements: Iterable[Statement], buffers: Iterable[str]) -> set[str]:
    """Names and buffers that statements may change, loop variables among them."""
    known = set(buffers)
    found: set[str] = set()
    for line in statements:
        found |= {access.name for access in writes(line, known)}
        found |= {name for part in walk(line) if (view := tl.loop(part)) for name in view.targets}
    return found
