"""The jit function of an implementation, the graph that it stands for, and the names by which the host drives it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from opratchet.judge.layout.code import Code, walk
from opratchet.judge.layout.model import Finding
from opratchet.operator.python_source import FunctionNode, called

JIT = "pypto.frontend.jit"


@dataclass(frozen=True)
class Kernel:
    """An implementation.

    Attributes:
        code: Its file.
    """

    code: Code

    @cached_property
    def entries(self) -> list[FunctionNode]:
        """The functions with the jit decorator."""
        return entries(self.code)

    @cached_property
    def graph(self) -> list[FunctionNode]:
        """The jit functions and all that they reach: what becomes the graph."""
        return self.code.reached(self.entries)

    @cached_property
    def nodes(self) -> dict[ast.AST, None]:
        """All nodes in the bodies of the graph's functions, each once."""
        return dict.fromkeys(walk(node for function in self.graph for node in function.body))

    @cached_property
    def drivers(self) -> set[str]:
        """What starts the kernel when the host calls it, by name; `make()` stands for the result of calling `make`.

        The jit function, functions that call it, what is bound to one of these, and the result of a function that the kernel is
        defined in.
        """
        found = {entry.name for entry in self.entries} | {f"{name}()" for name in self._factories}
        before = 0
        while len(found) > before:
            before = len(found)
            found.update(self._callers(found))
            found.update(self._bound(found))
        return found

    def drives(self, body: Iterable[ast.AST]) -> bool:
        """Whether a piece of host code starts the kernel."""
        return not self.drivers.isdisjoint(_started(body))

    @cached_property
    def _factories(self) -> set[str]:
        """Names of the functions that the kernel is defined in."""
        holders = (holder for entry in self.entries for holder in self.code.around(entry))
        return {holder.name for holder in holders if isinstance(holder, FunctionNode)}

    def _callers(self, driving: set[str]) -> Iterator[str]:
        return (name for name, started in self._host if not driving.isdisjoint(started))

    @cached_property
    def _host(self) -> list[tuple[str, set[str]]]:
        """The functions outside the graph, each with what it starts."""
        host = (function for function in self.code.definitions if function not in self.graph)
        return [(function.name, set(_started(function.body))) for function in host]

    def _bound(self, driving: set[str]) -> Iterator[str]:
        for node in self.code.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if _handle(value) in driving:
                        yield name


def _started(body: Iterable[ast.AST]) -> Iterator[str]:
    """What a piece of code calls, or hands to a call such as `map`."""
    for node in walk(body):
        if isinstance(node, ast.Call):
            handed = [*node.args, *(keyword.value for keyword in node.keywords)]
            yield from (_handle(part) for part in (node.func, *handed))


def _handle(node: ast.expr) -> str:
    """`kernel` for a name, `make()` for a call of one, `""` for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id=name)):
            return f"{name}()"
    return ""


def entries(code: Code) -> list[FunctionNode]:
    """The functions of a file that have the jit decorator, in order."""
    decorated = (f for f in code.definitions if any(_is_jit(code, d) for d in f.decorator_list))
    return sorted(decorated, key=lambda function: function.lineno)


def _is_jit(code: Code, decorator: ast.expr) -> bool:
    return code.path(called(decorator)) == JIT


def check_entry(code: Code) -> Iterator[Finding]:
    """`one-jit` for the implementation."""
    found = entries(code)
    if not found:
        yield code.finding(
            "one-jit", None, f"no function is decorated with `@{JIT}`: decorate the kernel"
        )
    for entry in found[1:]:
        yield code.finding(
            "one-jit",
            entry,
            f"`{entry.name}` is a jit function beside `{found[0].name}`: make one kernel of them",
        )
    yield from _other_uses(code, found)


def check_no_entry(code: Code) -> Iterator[Finding]:
    """`one-jit` for a file that must have none."""
    for entry in entries(code):
        yield code.finding(
            "one-jit",
            entry,
            f"`{entry.name}` is a jit function: kernels belong into the implementation",
        )
    yield from _other_uses(code, entries(code))


def _other_uses(code: Code, found: list[FunctionNode]) -> Iterator[Finding]:
    """Uses of jit that are no decorator of a function: they would hide a kernel from everybody who looks for it."""
    decorators = {called(decorator) for entry in found for decorator in entry.decorator_list}
    for node in code.nodes:
        if code.path(node) == JIT and node not in decorators:
            yield code.finding(
                "one-jit", node, "jit is used otherwise than as the decorator of a function"
            )
