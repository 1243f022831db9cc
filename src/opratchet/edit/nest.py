"""Perfect loop nests, and the text of new ones.

A *nest* is a loop with nothing but a loop in it, and so on down to the innermost body. `for i, j in T.grid(m, n)` and
`for i in T.serial(m): for j in T.serial(n)` are the same nest. Only loops that run in order, from zero, one step at a
time, take part.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import is_pure
from opratchet.edit.source import KernelSource, code
from opratchet.edit.tree import (
    Statement,
    Surgery,
    expression,
    fingerprint,
    free_names,
    fresh_name,
    positional,
    statement,
    substitute,
)

_PLAIN = ("grid", "serial", "range")
_MAX_MIN = {"max": "max", "min": "min"}


@dataclass(frozen=True)
class Nest:
    """A perfect nest.

    Attributes:
        loops: Its loops, outermost first.
        extents: Text of the extent of each loop variable, outermost first.
        body: Statements inside the innermost loop.
    """

    loops: tuple[tl.Loop, ...]
    extents: Mapping[str, str]
    body: tuple[Statement, ...]

    @property
    def node(self) -> cst.For:
        """The outermost loop."""
        return self.loops[0].node


def nest(node: cst.CSTNode) -> Nest | None:
    """The nest that begins with a statement, or None when it is no plain loop."""
    loops: list[tl.Loop] = []
    view = tl.loop(node)
    while view is not None and _plain(view):
        loops.append(view)
        view = tl.loop(view.body[0]) if len(view.body) == 1 else None
    names = [name for loop in loops for name in loop.targets]
    if not loops or len(set(names)) < len(names):
        return None
    extents = {name: extent for loop in loops for name, extent in loop.bounds.items()}
    return Nest(tuple(loops), extents, loops[-1].body)


def nests(kernel: tl.Kernel) -> list[Nest]:
    """All nests of a kernel, each as large as it can be."""
    found: list[Nest] = []
    for seen in kernel.find(nest):
        if all(seen.node is not loop.node for other in found for loop in other.loops):
            found.append(seen)
    return found


def _plain(loop: tl.Loop) -> bool:
    return loop.kind in _PLAIN and loop.start is None and not loop.keywords


@dataclass(frozen=True)
class Accumulation:
    """`target += term`, or `target = T.max(target, term)`; the term does not read the target's buffer.

    Attributes:
        op: `sum`, `max` or `min`.
        target: The element that accumulates.
        term: What is accumulated.
    """

    op: str
    target: tl.Region
    term: cst.BaseExpression


def accumulation(node: cst.CSTNode) -> Accumulation | None:
    """View of an accumulating assignment to an element."""
    seen = tl.assign(node)
    if seen is None or not seen.target.index:
        return None
    op, term = ("sum", seen.value) if seen.operator == "+" else _accumulated(seen)
    if term is None or not is_pure(term) or seen.target.base in free_names(term):
        return None
    return Accumulation(op, seen.target, term)


def _accumulated(seen: tl.Assign) -> tuple[str, cst.BaseExpression | None]:
    """Operation and the other operand of `target = target + other` or `target = T.max(target, other)`."""
    value = seen.value
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        op, operands = "sum", [value.left, value.right]
    elif isinstance(value, cst.Call) and len(positional(value)) == 2:
        op, operands = _MAX_MIN.get(tl.primitive(value), ""), positional(value)
    else:
        return "", None
    own = fingerprint(seen.target.node)
    others = [operand for operand in operands if fingerprint(operand) != own]
    plain = bool(op) and not seen.operator and len(others) == 1
    return op, others[0] if plain else None


def at(node: cst.BaseExpression, places: Mapping[str, str]) -> str:
    """Text of an expression with loop variables replaced: `x[i, j]` at `{"j": "j * 8 + l"}` is `x[i, j * 8 + l]`."""
    return code(substitute(node, {name: expression(text) for name, text in places.items()}))


def for_each(extents: Mapping[str, str]) -> str:
    """Head of a loop over variables: `for i, j in T.grid(m, n):`, `for i in T.serial(m):`."""
    kind = "serial" if len(extents) == 1 else "grid"
    return f"for {', '.join(extents)} in T.{kind}({', '.join(extents.values())}):"


def block(head: str, *lines: str) -> str:
    """Text of a compound statement with its lines indented; the lines alone when the head is empty."""
    return f"{head}\n{textwrap.indent(chr(10).join(lines), '    ')}" if head else "\n".join(lines)


def statements(texts: Sequence[str]) -> list[Statement]:
    """Parse statements, one a text."""
    return [statement(f"{text}\n") for text in texts]


def declare(kernel: tl.Kernel, surgery: Surgery, line: str) -> None:
    """Add an allocation below the kernel's last one, or as its first statement."""
    own = [view.node for view in kernel.allocs.values() if view.node in kernel.body]
    if own:
        surgery.insert_after(own[-1], statements([line]))
    else:
        surgery.insert_before(kernel.body[0], statements([line]))


def variables(
    kernel: tl.Kernel, node: cst.CSTNode, wanted: Sequence[str], used: Collection[str] = ()
) -> list[str]:
    """Names for the variables of new loops in the place of a statement.

    A name that is only a loop variable elsewhere may be used again; what stands around or has another meaning not.
    """
    loops = {name for loop in kernel.find(tl.loop) for name in loop.targets}
    around = {name for loop in kernel.loops_around(node) for name in loop.targets}
    taken = (kernel.names - loops) | around | set(used)
    names: list[str] = []
    for name in wanted:
        names.append(fresh_name(name, taken | set(names)))
    return names


def constant(source: KernelSource, text: str) -> int | None:
    """Value of an extent that is written out, or is a parameter of the factory with an integer default."""
    if text.isdigit():
        return int(text)
    for param in source.factory.params.params:
        if param.name.value == text and isinstance(param.default, cst.Integer):
            return int(param.default.value)
    return None


def numbered(names: Iterable[str]) -> list[str]:
    """Names made unique by counting: `["c", "c"]` gives `["c", "c#2"]`."""
    seen: Counter[str] = Counter()
    labels: list[str] = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return labels


def loses_comment(node: Statement) -> bool:
    """Whether new statements in the place of one would lose a comment: one inside it, or at the end of its line."""
    return "#" in code(node.with_changes(leading_lines=[]))


def factor(text: str) -> str:
    """Text as a factor of a product: in parentheses unless it is a name or a number."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"
