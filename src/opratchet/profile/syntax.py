"""Small questions to the syntax tree of a kernel: names, values, and where its parts are."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from opratchet.errors import BadInput
from opratchet.profile.arithmetic import value_of


def parse(text: str) -> ast.Module:
    """The syntax tree of a source; BadInput with the line when it is not valid Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise BadInput(
            f"syntax error: {error}",
            where=f"line {line}" if line else "",
            fix="Mend the source, then run again.",
        ) from None


def find_factory(module: ast.Module, kernel: str) -> ast.FunctionDef:
    """The function of that name; BadInput when there is none."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            return node
    raise BadInput(
        f"there is no function `{kernel}`", fix="Name the kernel factory in the manifest."
    )


def kernel_body(factory: ast.FunctionDef) -> ast.FunctionDef:
    """The function with `@T.prim_func` inside the factory; the factory itself when there is none."""
    for node in ast.walk(factory):
        if isinstance(node, ast.FunctionDef) and any(
            last_name(decorator) == "prim_func" for decorator in node.decorator_list
        ):
            return node
    return factory


def parameters(function: ast.FunctionDef) -> frozenset[str]:
    """Names of a function's parameters; of a kernel body, its tensors."""
    arguments = function.args
    return frozenset(arg.arg for arg in (*arguments.args, *arguments.kwonlyargs))


def known_names(
    module: ast.Module, factory: ast.FunctionDef, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Values of the names a kernel body may use: module constants, defaults, arguments, factory constants."""
    names: dict[str, Any] = {}
    _assign(module.body, names)
    positional = [*factory.args.posonlyargs, *factory.args.args]
    with_default = positional[len(positional) - len(factory.args.defaults) :]
    for arg, default in zip(with_default, factory.args.defaults, strict=True):
        _bind(arg.arg, default, names)
    for arg, value in zip(factory.args.kwonlyargs, factory.args.kw_defaults, strict=True):
        if value is not None:
            _bind(arg.arg, value, names)
    names.update(arguments)
    _assign(factory.body, names)
    return names


def _assign(statements: list[ast.stmt], names: dict[str, Any]) -> None:
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            _bind(statement.targets[0].id, statement.value, names)


def _bind(name: str, value: ast.expr, names: dict[str, Any]) -> None:
    known = value.value if isinstance(value, ast.Constant) else number(value, names)
    names.pop(name, None)  # a value that is not known any more must not live on
    if known is not None:
        names[name] = known


def number(node: ast.expr, names: Mapping[str, Any]) -> float | int | None:
    """Value of an expression; None when the text does not tell."""
    try:
        return value_of(node, names)
    except (ValueError, ArithmeticError, TypeError):
        return None


def last_name(node: ast.expr) -> str:
    """`copy` for `T.copy` and for `T.copy(...)`; empty for what has no name."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def root(node: ast.expr) -> str:
    """`x` for `x`, `x[i, j]` and `x[i][j]`; empty for what is no buffer."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def mentions(node: ast.AST, name: str) -> bool:
    """Whether a name occurs in an expression."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
