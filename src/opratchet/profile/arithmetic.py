"""Arithmetic over shape names, as manifests and kernels write it: `2 * M * N * K`, `T.ceildiv(N, block_N)`.

Nothing is executed: the expression is parsed, and only numbers, known names, arithmetic and a few functions have a
meaning. No expression can take long: none is long, and no power is larger than a float.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from opratchet.errors import BadInput

Number = int | float

LONGEST = 1000


def ceildiv(a: Number, b: Number) -> Number:
    """Quotient rounded up."""
    return -(-a // b)


def power(base: Number, exponent: Number) -> Number:
    """Power whose value a float could hold; tried with floats first, so that no huge integer is ever built."""
    if isinstance(float(base) ** exponent, complex):
        raise ValueError("the result is not a real number")
    result: Number = base**exponent
    return result


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceildiv": ceildiv,
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "log2": math.log2,
}


class UnknownError(ValueError):
    """An expression uses a name, a function or a construct without a meaning here."""


def evaluate(expression: str, names: Mapping[str, Number], *, where: str = "") -> Number:
    """Value of an expression that a person wrote.

    Args:
        expression: E.g. `2 * M * N * K`.
        names: Values of the names it may use.
        where: Manifest key it came from, for the error.

    Raises:
        BadInput: it is no arithmetic over these names, or has no finite value.
    """
    try:
        if len(expression) > LONGEST:
            raise UnknownError(f"longer than {LONGEST} characters")
        tree = ast.parse(expression.strip(), mode="eval")
        value = value_of(tree.body, names)
        if not math.isfinite(value):
            raise ValueError("the result is not finite")
    except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError) as error:
        raise BadInput(
            f"`{expression}` cannot be computed: {error}",
            where=where,
            fix=f"Use arithmetic over {', '.join(sorted(names)) or 'numbers'} "
            f"and {', '.join(sorted(FUNCTIONS))}.",
        ) from None
    return value


def value_of(node: ast.expr, names: Mapping[str, Number]) -> Number:
    """Value of a parsed expression.

    Raises:
        UnknownError: it is not arithmetic over the names given.
        ValueError, ArithmeticError: it is, but has no value, e.g. a division by zero.
    """
    result = _reduce(node, names)
    if isinstance(result, bool) or not isinstance(result, (int, float)):
        raise UnknownError(f"`{ast.unparse(node)}` is not a number")
    return result


def _reduce(node: ast.expr, names: Mapping[str, Number]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value_of(node.left, names), value_of(node.right, names))
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value_of(node.operand, names))
    if isinstance(node, ast.Call) and not node.keywords and _last_name(node.func) in FUNCTIONS:
        return FUNCTIONS[_last_name(node.func)](*(value_of(arg, names) for arg in node.args))
    raise UnknownError(f"`{ast.unparse(node)}` has no meaning here")


def _last_name(node: ast.expr) -> str:
    """`ceildiv` for both `ceildiv` and `T.ceildiv`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
