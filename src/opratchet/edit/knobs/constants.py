"""Names that belong to the kernel alone: what may change without changing the problem that it solves.

A module constant that the golden, the inputs or the tests mention too is part of the problem, not of the solution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst

from opratchet.edit.source import KernelSource
from opratchet.edit.tree import free_names, small


def literals(
    source: KernelSource, constants: Mapping[str, cst.BaseExpression]
) -> dict[str, cst.BaseExpression]:
    """Literals by name: defaults of the factory's parameters, constants of the factory, and of the module.

    Args:
        source: The source.
        constants: Its `module_constants`.
    """
    found = dict(constants)
    parameters = source.factory.params
    for parameter in (*parameters.params, *parameters.kwonly_params):
        found.pop(parameter.name.value, None)
        if parameter.default is not None:
            found[parameter.name.value] = parameter.default
    found |= dict(_bound_once(source.factory.body.body))
    return {name: value for name, value in found.items() if _is_literal(value)}


def module_constants(source: KernelSource) -> dict[str, cst.BaseExpression]:
    """Expressions of the names that the module binds once and only the kernel factory mentions."""
    if module_constants not in source.views:
        source.views[module_constants] = _module_constants(source)
    return dict(source.views[module_constants])


def _module_constants(source: KernelSource) -> dict[str, cst.BaseExpression]:
    mentioned = free_names(source.factory)
    outside = _mentions(source.module, source.factory)
    return {
        name: value
        for name, value in _bound_once(source.module.body)
        if name in mentioned and outside[name] == 1
    }


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and _is_literal(node.expression)
    if isinstance(node, cst.Name):
        return node.value in ("True", "False")
    if isinstance(node, cst.SimpleString):
        return "b" not in node.prefix
    return isinstance(node, (cst.Integer, cst.Float))


def _bound_once(body: Sequence[cst.CSTNode]) -> list[tuple[str, cst.BaseExpression]]:
    found = list(_bindings(body))
    count = Counter(name for name, _ in found)
    return [(name, value) for name, value in found if count[name] == 1]


def _bindings(body: Iterable[cst.CSTNode]) -> Iterator[tuple[str, cst.BaseExpression]]:
    """`name = value` and `name: type = value` among statements."""
    for line in body:
        statement = small(line)
        target: cst.BaseExpression | None = None
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            target = statement.targets[0].target
        elif isinstance(statement, cst.AnnAssign):
            target = statement.target
        value = getattr(statement, "value", None)
        if isinstance(target, cst.Name) and value is not None:
            yield target.value, value


def _mentions(module: cst.Module, factory: cst.FunctionDef) -> Counter[str]:
    """How often each name is written outside the factory; a binding counts as one."""
    found: Counter[str] = Counter()
    pending: list[cst.CSTNode] = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Name):
            found[node.value] += 1
        elif node is not factory:
            pending += node.children
    return found
