"""What the names in a kernel factory stand for on one workload, found by reading, never by running.

A tile that does not fit is refused before anything is spent, so its size must be known from the text: module
constants, defaults of the factory's parameters, the workload's shape, and what the factory assigns from these
(`blocks = N // block_N`). What cannot be told is absent, and whoever asks then knows nothing, and refuses nothing.
"""

from __future__ import annotations

import ast
import math
import operator as op
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from opratchet.edit.source import KernelSource

LARGEST = 2**63 - 1

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: op.add,
    ast.Sub: op.sub,
    ast.Mult: op.mul,
    ast.Div: op.truediv,
    ast.FloorDiv: op.floordiv,
    ast.Mod: op.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: op.eq,
    ast.NotEq: op.ne,
    ast.Lt: op.lt,
    ast.LtE: op.le,
    ast.Gt: op.gt,
    ast.GtE: op.ge,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "ceildiv": lambda above, below: -(-above // below),
    "cdiv": lambda above, below: -(-above // below),
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "sqrt": math.sqrt,
}


class _UnknownError(Exception):
    """A value that cannot be told."""


def number(expression: str, names: Mapping[str, Any]) -> int | float | None:
    """Value of an arithmetic expression, or None when it cannot be told.

    Understood: numbers, known names, `+ - * / // %`, comparisons, `a if c else b`, and `ceildiv`, `min`, `max`, `abs`,
    `int`, `sqrt` under any module name.
    """
    found = known(expression, names)
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def known(expression: str, names: Mapping[str, Any]) -> Any:
    """Like `number`, for texts (dtypes) and booleans too."""
    try:
        return _value(_parsed(expression), names)
    except (_UnknownError, SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression.strip(), mode="eval").body


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left, operator, right) if type(operator) in _BINARY:
            return _bounded(
                _BINARY[type(operator)](_arithmetic(left, names), _arithmetic(right, names))
            )
        case ast.Compare(left, [comparison], [right]) if type(comparison) in _COMPARE:
            return _COMPARE[type(comparison)](_value(left, names), _value(right, names))
        case ast.IfExp(test, body, orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Call(func=called, args=arguments, keywords=[]) if _last(called) in _CALLS:
            return _CALLS[_last(called)](*(_arithmetic(a, names) for a in arguments))
        case ast.Attribute(attr=name) if name[-1:].isdigit():
            return name  # a dtype: T.float32
    raise _UnknownError


def _arithmetic(node: ast.expr, names: Mapping[str, Any]) -> int | float:
    found = _value(node, names)
    if isinstance(found, (int, float)):
        return found
    raise _UnknownError


def _bounded(found: int | float) -> int | float:
    """Whole numbers beyond 64 bits are never a size; without a bound, `*` could fill the memory."""
    if isinstance(found, int) and abs(found) > LARGEST:
        raise _UnknownError
    return found


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class Names:
    """The names of one source, ready to be looked up for many workloads and many values of a knob.

    Args:
        source: The source.

    Raises:
        BadInput: the source has no such kernel factory.
    """

    def __init__(self, source: KernelSource) -> None:
        _ = source.factory  # raises when there is none
        tree = ast.parse(source.text.removeprefix("\ufeff"))
        factory = next(
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == source.kernel
        )
        self._module = list(_assignments(tree.body))
        self._defaults = list(_defaults(factory))
        self._local = list(_assignments(factory.body))

    def on(
        self, shape: Mapping[str, int], values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Names and their values for a workload, with some names given another value than the source gives."""
        fixed = {**shape, **(values or {})}
        found: dict[str, Any] = {}
        for name, expression in (*self._module, *self._defaults, *self._local):
            worth = fixed[name] if name in fixed else known(expression, found | fixed)
            if worth is None:
                found.pop(name, None)
            else:
                found[name] = worth
        return found | fixed


def _defaults(factory: ast.FunctionDef) -> Iterable[tuple[str, str]]:
    arguments = factory.args
    positional = [*arguments.posonlyargs, *arguments.args]
    last = positional[len(positional) - len(arguments.defaults) :]
    pairs = [*zip(last, arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    return [(argument.arg, ast.unparse(default)) for argument, default in pairs]


def _assignments(body: Iterable[ast.stmt]) -> Iterable[tuple[str, str]]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=expression):
                yield name, ast.unparse(expression)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as expression):
                yield name, ast.unparse(expression)
