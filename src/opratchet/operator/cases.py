"""The cases that `run_L0()` runs, found by following it on paper.

An operator without a manifest still says which shapes it is made for: `run_L0()` calls `run_case(...)` with them.
The follower walks through `run_L0` and the functions it calls, statement by statement. It keeps the names whose
values it can read, forgets those it cannot, and only insists on what leads to `run_case`: a loop over listed values
is unrolled, a comprehension too, a condition has to be readable. Anything else on the way there is `UnreadableError`.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opratchet.operator.evaluate import LONGEST, UnreadableError, value
from opratchet.operator.python_source import (
    FunctionNode,
    PythonSource,
    assignment,
    bound_names,
    changed_in_place,
    signature,
    statements,
)

ENTRY = "run_L0"
CASE = "run_case"


@dataclass(frozen=True)
class Case:
    """One call of `run_case`.

    Attributes:
        arguments: Value by parameter name, defaults filled in; an `UnreadableError` where it cannot be read, since an
            argument that the kernel does not take, such as a device, need not be.
        line: Line of the call.
    """

    arguments: Mapping[str, Any]
    line: int


def level_0_cases(source: PythonSource) -> list[Case]:
    """The calls of `run_case` that `run_L0()` makes, in order; empty when either function is missing.

    Raises:
        UnreadableError: a call depends on something that cannot be read from the text.
    """
    if ENTRY not in source.functions or CASE not in source.functions:
        return []
    follower = _Follower(source)
    try:
        follower.function(source.functions[ENTRY], {})
    except RecursionError:
        raise UnreadableError(source.functions[ENTRY], f"`{ENTRY}` is nested too deep") from None
    return follower.cases


def bind(
    function: FunctionNode, call: ast.Call, names: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of a call by parameter name; an `UnreadableError` stands for each that cannot be read.

    Args:
        function: The function that is called.
        call: The call.
        names: Values of the names in which the arguments are written.
        known: Values of the names in which the defaults are written.

    Raises:
        UnreadableError: the call does not fit the function, or it cannot be told.
    """
    parameters = signature(function)
    positional = list(_positional(call, names))
    if len(positional) > len(parameters.positional):
        raise UnreadableError(call, f"`{function.name}` takes fewer positional arguments")
    arguments = dict(zip(parameters.positional, positional, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or not parameters.accepts(keyword.arg):
            raise UnreadableError(call)
        arguments[keyword.arg] = _attempt(keyword.value, names)
    for name, default in parameters.defaults.items():
        if name not in arguments:
            arguments[name] = _attempt(default, known)
    absent = [name for name in parameters.required if name not in arguments]
    if absent:
        raise UnreadableError(call, f"`{function.name}` is called without {', '.join(absent)}")
    return arguments


def _positional(call: ast.Call, names: Mapping[str, Any]) -> Iterator[Any]:
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            yield from _elements(argument.value, names)
        else:
            yield _attempt(argument, names)


def _attempt(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return value(node, names)
    except UnreadableError as error:
        return error


def _elements(node: ast.expr, names: Mapping[str, Any]) -> Iterable[Any]:
    elements = value(node, names)
    if isinstance(elements, (tuple, list, dict)):
        return elements
    raise UnreadableError(node)


class _Follower:
    def __init__(self, source: PythonSource) -> None:
        self.cases: list[Case] = []
        self._functions = source.functions
        self._constants = source.constants
        self._leading = _leading(source.functions)
        self._stack: list[str] = []
        self._steps = 0

    def function(self, node: FunctionNode, arguments: Mapping[str, Any]) -> None:
        if node.name in self._stack:
            raise UnreadableError(node, f"`{node.name}` calls itself")
        self._stack.append(node.name)
        names = dict(self._constants)
        for name, given in arguments.items():
            names.pop(name, None)
            if not isinstance(given, UnreadableError):
                names[name] = given
        self._block(node.body, names)
        self._stack.pop()

    def _block(self, body: list[ast.stmt], names: dict[str, Any]) -> None:
        for statement in body:
            self._step(statement)
            if self._leads(statement):
                self._follow(statement, names)
            _remember(statement, names)
            if isinstance(statement, ast.Return):
                return

    def _follow(self, statement: ast.stmt, names: dict[str, Any]) -> None:
        match statement:
            case ast.For(target=target, iter=items, body=body, orelse=orelse):
                _no_jump(body)
                for item in _elements(items, names):
                    _unpack(target, item, names)
                    self._block(body, names)
                self._block(orelse, names)
            case ast.If(test=test, body=body, orelse=orelse):
                self._block(body if value(test, names) else orelse, names)
            case ast.With(body=body):
                self._block(body, names)
            case ast.Try(body=body, orelse=orelse, finalbody=finalbody):
                self._block([*body, *orelse, *finalbody], names)
            case (
                ast.Expr()
                | ast.Assign()
                | ast.AnnAssign()
                | ast.AugAssign()
                | ast.Return()
                | ast.Assert()
            ):
                self._expression(statement, names)
            case _:
                raise UnreadableError(
                    statement, f"`{CASE}` is called in a way that cannot be followed"
                )

    def _expression(self, node: ast.AST, names: dict[str, Any]) -> None:
        """Take the calls in an expression (or in a simple statement), in the order in which they are written."""
        self._step(node)
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in self._leading:
                arguments = bind(self._functions[name], node, names, self._constants)
                if name == CASE:
                    self.cases.append(Case(arguments, node.lineno))
                else:
                    self.function(self._functions[name], arguments)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() if self._leads(node):
                self._comprehension(node, node.generators, names)
            case ast.Lambda() | ast.DictComp() | ast.IfExp() if self._leads(node):
                raise UnreadableError(node)
            case _:
                for child in ast.iter_child_nodes(node):
                    self._expression(child, names)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp,
        loops: list[ast.comprehension],
        names: dict[str, Any],
    ) -> None:
        if not loops:
            self._expression(node.elt, names)
            return
        for item in _elements(loops[0].iter, names):
            self._step(node)
            inner = dict(names)
            _unpack(loops[0].target, item, inner)
            if all(value(test, inner) for test in loops[0].ifs):
                self._comprehension(node, loops[1:], inner)

    def _leads(self, node: ast.AST) -> bool:
        return bool(_called_names(node) & self._leading)

    def _step(self, node: ast.AST) -> None:
        self._steps += 1
        if self._steps > LONGEST:
            raise UnreadableError(node, f"`{ENTRY}` is too long to follow")


def _leading(functions: Mapping[str, FunctionNode]) -> set[str]:
    """Names of the functions whose call ends in `run_case`, itself included."""
    leading = {CASE}
    while True:
        more = {
            name
            for name, node in functions.items()
            if name not in leading and _called_names(node) & leading
        }
        if not more:
            return leading
        leading |= more


def _called_names(node: ast.AST) -> set[str]:
    return {
        inner.func.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
    }


def _remember(statement: ast.stmt, names: dict[str, Any]) -> None:
    """Keep the value of `name = expression` when it can be read; forget every other name that is changed."""
    name, expression = assignment(statement)
    kept: dict[str, Any] = {}
    if name and expression is not None:
        with contextlib.suppress(UnreadableError):
            kept[name] = value(expression, names)
    for inner in statements([statement]):
        for changed in (*bound_names(inner), *changed_in_place(inner)):
            names.pop(changed, None)
    names.update(kept)


def _unpack(target: ast.expr, item: Any, names: dict[str, Any]) -> None:
    """Bind a loop's target, `name` or `(a, (b, c))`, to one element."""
    match target:
        case ast.Name(id=name):
            names[name] = item
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(
            item, (tuple, list)
        ) and len(item) == len(parts):
            for part, inner in zip(parts, item, strict=True):
                _unpack(part, inner, names)
        case _:
            raise UnreadableError(target)


def _no_jump(body: list[ast.stmt]) -> None:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
                raise UnreadableError(node, "a loop around `run_case` is left early")
