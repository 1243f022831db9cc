"""The value of an expression, found by reading it. User code is never run.

Only what a person writes to list shapes is understood: literals, names of known values, arithmetic, `torch.float16`
and the like, subscripts, and `range`, `zip`, `enumerate`. Everything else is `UnreadableError`, with its line. Whole
numbers are bounded, so that no expression can take long or fill the memory.
"""

from __future__ import annotations

import ast
import itertools
import operator as op
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opratchet.operator.tolerances import DTYPES, canonical

LARGEST = 2**63 - 1  # whole numbers beyond 64 bits are never a shape
LONGEST = 10_000  # nor has a list of shapes more elements than this

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: op.add,
    ast.Sub: op.sub,
    ast.Mult: op.mul,
    ast.Div: op.truediv,
    ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: op.neg, ast.UAdd: op.pos}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: op.eq,
    ast.NotEq: op.ne,
    ast.Lt: op.lt,
    ast.LtE: op.le,
    ast.Gt: op.gt,
    ast.GtE: op.ge,
}
_BUILTINS: Mapping[str, Callable[..., Iterable[Any]]] = {
    "range": range,
    "zip": zip,
    "enumerate": enumerate,
}


class UnreadableError(Exception):
    """An expression whose value cannot be read from the text."""

    def __init__(self, node: ast.AST, why: str = "") -> None:
        self.line: int = getattr(node, "lineno", 1)
        super().__init__(why or f"`{_code(node)}` cannot be read without running it")


def _code(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        return "…"
    return text if len(text) <= 80 else text[:79] + "…"


def value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Value of an expression in which `names` are known.

    Raises:
        UnreadableError: it cannot be told from the text, or lies out of bounds.
    """
    try:
        return _bounded(node, _value(node, names))
    except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError):
        raise UnreadableError(node) from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as constant):
            return constant
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Tuple(elts=items):
            return tuple(_items(items, names))
        case ast.List(elts=items):
            return _items(items, names)
        case ast.Dict(keys=keys, values=values):
            return _dict(node, keys, values, names)
        case ast.UnaryOp(operator, operand) if type(operator) in _UNARY:
            return _UNARY[type(operator)](_number(operand, names))
        case ast.BinOp(left, operator, right) if type(operator) in _BINARY:
            return _BINARY[type(operator)](_number(left, names), _number(right, names))
        case ast.Compare(left, [comparison], [right]) if type(comparison) in _COMPARE:
            return _COMPARE[type(comparison)](value(left, names), value(right, names))
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module not in names:
            return _dtype(node, name)
        case ast.Subscript(value=whole, slice=index):
            return value(whole, names)[value(index, names)]
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _BUILTINS:
            return _listed(node, _BUILTINS[name](*_items(node.args, names)))
    raise UnreadableError(node)


def _items(nodes: Iterable[ast.expr], names: Mapping[str, Any]) -> list[Any]:
    """Values of a sequence of expressions, `*rest` spread out."""
    items: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items.extend(value(node.value, names))
        else:
            items.append(value(node, names))
    return items


def _listed(node: ast.expr, items: Iterable[Any]) -> tuple[Any, ...]:
    listed = tuple(itertools.islice(items, LONGEST + 1))
    if len(listed) > LONGEST:
        raise UnreadableError(node, f"more than {LONGEST} elements")
    return listed


def _dict(
    node: ast.expr,
    keys: Iterable[ast.expr | None],
    values: Iterable[ast.expr],
    names: Mapping[str, Any],
) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, item in zip(keys, values, strict=True):
        if key is None:
            raise UnreadableError(node)
        result[value(key, names)] = value(item, names)
    return result


def _number(node: ast.expr, names: Mapping[str, Any]) -> int | float:
    number = value(node, names)
    if isinstance(number, (int, float)):
        return number
    raise UnreadableError(node)


def _bounded(node: ast.expr, result: Any) -> Any:
    if isinstance(result, int) and abs(result) > LARGEST:
        raise UnreadableError(node, "a whole number does not fit into 64 bits")
    return result


def _dtype(node: ast.expr, name: str) -> str:
    """`torch.float16`, `T.float32`: the dtype's name."""
    if canonical(name) in DTYPES:
        return canonical(name)
    raise UnreadableError(node)


def formula_names(formula: str) -> set[str]:
    """Names of the values in a formula such as `2 * M * ceildiv(N, 4)`, here M and N; functions are not counted.

    Raises:
        ValueError: it is not an expression.
    """
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a formula: {error}") from None
    nodes = list(ast.walk(tree))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions}
