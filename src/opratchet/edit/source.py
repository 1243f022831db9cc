"""A kernel's source as a concrete syntax tree: comments and formatting survive every edit.

`KernelSource` finds the two functions that matter, the *factory* (decorated with `@tilelang.jit` or similar) and
the *kernel body* (decorated with `@T.prim_func`), and gives back the whole text after one replacement.
What the names inside mean (which call allocates, which loops) is the business of a dialect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import libcst as cst

from opratchet.errors import BadInput


def sha256(text: str) -> str:
    """SHA-256 of a source text, hexadecimal; the identity of a candidate."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` for a name or attribute chain, `""` for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""


def decorator_names(function: cst.FunctionDef) -> list[str]:
    """Dotted names of a function's decorators, calls stripped: `["tilelang.jit"]`."""
    names = []
    for decorator in function.decorators:
        node = decorator.decorator
        names.append(dotted(node.func if isinstance(node, cst.Call) else node))
    return names


def functions(node: cst.CSTNode) -> Iterator[cst.FunctionDef]:
    """All function definitions below a node, outermost first."""
    for child in node.children:
        if isinstance(child, cst.FunctionDef):
            yield child
        yield from functions(child)


def code(node: cst.CSTNode) -> str:
    """Source text of a node, without surrounding blank space."""
    return cst.Module(body=[]).code_for_node(node).strip()


@dataclass(frozen=True)
class KernelSource:
    """A source text with its kernel located.

    Attributes:
        text: The whole source.
        kernel: Name of the kernel factory.
    """

    text: str
    kernel: str

    @cached_property
    def views(self) -> dict[object, Any]:
        """What has been found out about it, by whom; kept here, as many ask for the same."""
        return {}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the text."""
        return sha256(self.text)

    @cached_property
    def module(self) -> cst.Module:
        """The parsed module.

        Raises:
            BadInput: the text is not valid Python.
        """
        try:
            return cst.parse_module(self.text)
        except cst.ParserSyntaxError as error:
            raise BadInput(
                f"syntax error: {error.message}",
                where=f"line {error.editor_line}",
                fix="Mend the source, then run again.",
            ) from None

    @cached_property
    def factory(self) -> cst.FunctionDef:
        """The kernel factory.

        Raises:
            BadInput: there is no function of that name.
        """
        for function in functions(self.module):
            if function.name.value == self.kernel:
                return function
        raise BadInput(
            f"there is no function `{self.kernel}`", fix="Name the kernel factory in the manifest."
        )

    @cached_property
    def body(self) -> cst.FunctionDef:
        """The function with `@T.prim_func` inside the factory; the factory itself when there is none."""
        for function in functions(self.factory):
            if any(name.split(".")[-1] == "prim_func" for name in decorator_names(function)):
                return function
        return self.factory

    def replace(self, old: cst.CSTNode, new: cst.CSTNode) -> str:
        """The whole text with one node (found by identity) replaced by another."""
        changed = self.module.deep_replace(old, new)
        assert isinstance(changed, cst.Module)
        return changed.code
