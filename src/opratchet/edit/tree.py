"""Surgery on a concrete syntax tree: every rewrite says what to put where, this module keeps the rest untouched.

A `Surgery` collects changes, each named by the *identity* of a node of the tree as it stands, and applies them all
in one pass. Expressions are exchanged one for one; statements may become several, or none. What stands above a
statement (blank lines, comments) stays where a reader expects it: blank lines above what was put in front of it,
comments with the statement they speak of, and with its successor when the statement goes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import TypeAlias, TypeVar, cast

import libcst as cst

Statement: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"
Changed: TypeAlias = "cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]"

Node = TypeVar("Node", bound=cst.CSTNode)

_PUNCTUATION = frozenset(
    {"lpar", "rpar", "lbracket", "rbracket", "comma", "equal", "semicolon", "header", "footer"}
    | {"leading_lines", "lines_after_decorators", "trailing_whitespace", "indent"}
)
_LONGEST_NAME = 24
_OPERATORS = {
    "Add": "plus",
    "Subtract": "minus",
    "Multiply": "times",
    "Divide": "over",
    "Minus": "minus",
}
_TIGHTEST = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it that is code, parents first; blank space and punctuation are left out."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The parts of a node that are code. (`node.children` finds the same, many times slower.)"""
    found: list[cst.CSTNode] = []
    for name in _parts(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += value
    return found


@cache
def _parts(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """Fields of a node class that may hold code."""
    names = (field.name for field in fields(kind))
    return tuple(n for n in names if n not in _PUNCTUATION and not n.startswith("whitespace"))


def name_nodes(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names an expression or statement mentions; attribute names and keywords of calls do not count."""
    if isinstance(node, cst.Name):
        yield node
        return
    inner = (cst.Attribute, cst.Arg)
    for child in [node.value] if isinstance(node, inner) else children(node):
        yield from name_nodes(child)


def free_names(node: cst.CSTNode) -> set[str]:
    """The different names among `name_nodes`."""
    return {found.value for found in name_nodes(node)}


def positional(call: cst.Call) -> list[cst.BaseExpression]:
    """Positional arguments of a call."""
    return [arg.value for arg in call.args if arg.keyword is None and not arg.star]


def keywords(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Keyword arguments of a call by name."""
    return {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}


def small(node: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The only small statement of a line, or None for a compound statement or a line of several."""
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        return node.body[0]
    return None


def call_statement(node: cst.CSTNode) -> cst.Call | None:
    """The call of a statement that is nothing but a call."""
    line = small(node)
    if isinstance(line, cst.Expr) and isinstance(line.value, cst.Call):
        return line.value
    return None


def block_of(node: cst.CSTNode) -> tuple[Statement, ...]:
    """Statements directly inside a compound statement; none for a simple one or a one-line suite."""
    body = getattr(node, "body", None)
    if isinstance(body, cst.IndentedBlock):
        return tuple(cast(Statement, line) for line in body.body)
    return ()


def nested(node: cst.CSTNode) -> Iterator[Statement]:
    """A statement and the statements inside it."""
    for part in walk(node):
        if isinstance(part, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            yield part


def fresh_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, or `wanted_2`, `wanted_3`, … when it is taken."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def spoken(node: cst.BaseExpression) -> str:
    """A name that says what an expression is: `row_sum[i] / N` gives `row_sum_over_N`, `X[i]` gives `x`.

    It is `value` when it would get long.
    """
    if isinstance(node, cst.Subscript):
        return fingerprint(node.value).lower()
    words: list[str] = []
    _speak(node, words)
    name = re.sub(r"\W+", "_", "_".join(words)).strip("_")
    return name if name.isidentifier() and len(name) <= _LONGEST_NAME else "value"


def _speak(node: cst.CSTNode, words: list[str]) -> None:
    if isinstance(node, cst.Subscript):
        node = node.value
    if isinstance(node, cst.Attribute):
        node = node.attr
    if isinstance(node, (cst.Name, cst.Integer)):
        words.append(node.value)
    elif isinstance(node, (cst.BaseBinaryOp, cst.BaseUnaryOp)):
        words.append(_OPERATORS.get(type(node).__name__, "with"))
    else:
        for child in children(node):
            _speak(child, words)


def expression(text: str) -> cst.BaseExpression:
    """Parse one expression."""
    return cst.parse_expression(text)


def statement(text: str) -> Statement:
    """Parse one statement; its nested blocks take the indentation of the tree they are put into."""
    return cst.parse_statement(text)


def fingerprint(node: cst.CSTNode) -> str:
    """Text without blank space and outer parentheses; equal for expressions that are written the same."""
    inner = bare(node) if isinstance(node, cst.BaseExpression) else node
    return re.sub(r"\s+", "", cst.Module(body=[]).code_for_node(inner))


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without parentheses around it."""
    return node.with_changes(lpar=[], rpar=[]) if node.lpar else node


def parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression, in parentheses unless it binds so tightly that none are needed."""
    if isinstance(node, _TIGHTEST) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def standing_alone(node: cst.CSTNode) -> set[cst.CSTNode]:
    """Expressions that are a whole argument, index or right side, so that no operator is next to them."""
    holders = (cst.Arg, cst.Index, cst.Assign, cst.AugAssign, cst.AnnAssign)
    return {part.value for part in walk(node) if isinstance(part, holders) and part.value}


def substitute(
    node: cst.BaseExpression, names: Mapping[str, cst.BaseExpression]
) -> cst.BaseExpression:
    """The expression with names replaced by expressions, parenthesized where needed."""
    alone = standing_alone(node)
    changes: dict[cst.CSTNode, cst.CSTNode] = {
        inner: names[inner.value] if inner in alone else parenthesized(names[inner.value])
        for inner in name_nodes(node)
        if inner.value in names
    }
    return exchange(node, changes)


def exchange(node: Node, changes: Mapping[cst.CSTNode, cst.CSTNode]) -> Node:
    """The expression or statement with some of its nodes, given by identity, replaced."""
    return cast(Node, node.visit(_Replace(changes)))


class _Replace(cst.CSTTransformer):
    """Replace nodes by identity; what stands inside a replaced node is not looked at."""

    def __init__(self, changes: Mapping[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._changes = changes

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self._changes

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Changed:  # type: ignore[override]
        return self._changes.get(original_node, updated_node)


class Surgery:
    """Changes to one tree, collected first and applied together.

    Args:
        root: The tree; usually the module of a `KernelSource`.
    """

    def __init__(self, root: cst.Module) -> None:
        self._root = root
        self._plan = _Plan()

    def replace(self, old: cst.CSTNode, new: cst.CSTNode) -> None:
        """Put one expression in the place of another."""
        self._plan.exchanged[old] = new

    def expand(self, old: cst.CSTNode, new: Sequence[Statement]) -> None:
        """Put several statements in the place of one; the first inherits what stood above it."""
        self._plan.statements[old] = list(new)

    def remove(self, old: cst.CSTNode) -> None:
        """Take a statement out."""
        self.expand(old, [])

    def discard(self, old: cst.CSTNode) -> None:
        """Take a statement out together with the lines above it, because they have found another place."""
        self.remove(old)
        self._plan.bare.add(old)

    def insert_before(self, anchor: cst.CSTNode, new: Sequence[Statement]) -> None:
        """Put statements in front of one that stays (or is itself changed)."""
        self._plan.before.setdefault(anchor, []).extend(new)

    def insert_after(self, anchor: cst.CSTNode, new: Sequence[Statement]) -> None:
        """Put statements behind one that stays (or is itself changed)."""
        self._plan.after.setdefault(anchor, []).extend(new)

    def apply(self) -> str:
        """Text of the whole tree after all changes."""
        changed = self._root.visit(self._plan)
        assert isinstance(changed, cst.Module)
        return changed.code


class _Plan(cst.CSTTransformer):
    """One pass over the tree. Statement lists change in `leave_IndentedBlock`, where old and new still pair up."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanged: dict[cst.CSTNode, cst.CSTNode] = {}
        self.statements: dict[cst.CSTNode, list[Statement]] = {}
        self.before: dict[cst.CSTNode, list[Statement]] = {}
        self.after: dict[cst.CSTNode, list[Statement]] = {}
        self.bare: set[cst.CSTNode] = set()

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Changed:  # type: ignore[override]
        if original_node in self.exchanged:
            return self.exchanged[original_node]
        return super().on_leave(original_node, updated_node)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body: list[Statement] = []
        above: list[cst.EmptyLine] = []
        for old, new in zip(original_node.body, updated_node.body, strict=True):
            lines = self._lines(cast(Statement, old), cast(Statement, new))
            if lines:
                first = _under(above, lines[0])
                opens = not body and old is not original_node.body[0]
                body += [_without_blank(first) if opens else first, *lines[1:]]
                above = []
            elif old not in self.bare:
                above += _leading(cast(Statement, new))
        comments = [line for line in above if line.comment]
        return updated_node.with_changes(body=body, footer=[*comments, *updated_node.footer])

    def _lines(self, old: Statement, new: Statement) -> list[Statement]:
        middle = [new]
        if old in self.statements:
            middle = list(self.statements[old])
            if middle:
                middle[0] = _under(_leading(new), middle[0])
        before = list(self.before.get(old, ()))
        if before and middle:
            blank, own = _split(_leading(middle[0]))
            before[0] = _under(blank, before[0])
            middle[0] = middle[0].with_changes(leading_lines=own)
        return [*before, *middle, *self.after.get(old, ())]


def _leading(node: Statement) -> list[cst.EmptyLine]:
    lines: Sequence[cst.EmptyLine] = getattr(node, "leading_lines", ())
    return list(lines)


def _split(lines: list[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Blank lines at the top, and the rest, which begins with a comment."""
    count = next((k for k, line in enumerate(lines) if line.comment), len(lines))
    return lines[:count], lines[count:]


def _without_blank(node: Statement) -> Statement:
    """The statement without blank lines above it, for it has become the first of its block."""
    return node.with_changes(leading_lines=_split(_leading(node))[1])


def _under(above: list[cst.EmptyLine], node: Statement) -> Statement:
    """The statement with further lines above it; two blank lines in a row become one."""
    own = _leading(node)
    if above and own and not above[-1].comment and not own[0].comment:
        above = above[:-1]
    return node.with_changes(leading_lines=[*above, *own])
