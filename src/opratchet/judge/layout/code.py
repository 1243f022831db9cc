"""A Python file as a syntax tree with what the checks ask of it: who calls whom, what a name stands for, what is inside what.

A function reaches another one when its body names it. That is more than calls, so that a function that is passed on or bound to
another name is not lost; methods are not followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.judge.layout.model import Finding
from opratchet.operator.python_source import FunctionNode, PythonSource, dotted

MAX_DEPTH = 300
"""Levels of a syntax tree that are read; Python's own limit on recursion is near."""

SHOWN = 60
"""Characters of an expression that are shown at most."""

_DYNAMIC = ("importlib.import_module", "__import__")


@dataclass(frozen=True)
class Import:
    """One thing that is imported.

    Attributes:
        module: The dotted name of the module; empty for `from . import name`.
        name: What is taken from it; empty for the module itself.
        node: The statement or the call that does it.
    """

    module: str
    name: str
    node: ast.AST

    @property
    def parts(self) -> list[str]:
        """The words of its dotted name."""
        return [part for part in f"{self.module}.{self.name}".split(".") if part]


@dataclass(frozen=True)
class Code:
    """A parsed file.

    Attributes:
        name: Its name, for findings.
        text: Its text.
        tree: Its syntax tree, at most `MAX_DEPTH` levels deep.
    """

    name: str
    text: str
    tree: ast.Module

    def finding(self, rule: str, node: ast.AST | None, message: str) -> Finding:
        """A finding at a node, or about the whole file."""
        return Finding(rule, self.name, getattr(node, "lineno", 1), message)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes; what holds another one comes before it."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def definitions(self) -> list[FunctionNode]:
        """All function definitions, at whatever place."""
        return [node for node in self.nodes if isinstance(node, FunctionNode)]

    @cached_property
    def functions(self) -> dict[str, list[FunctionNode]]:
        """The same by name."""
        found: dict[str, list[FunctionNode]] = {}
        for function in self.definitions:
            found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What holds a node, from the inside out."""
        while (holder := self._parents.get(node)) is not None:
            yield holder
            node = holder

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """What a name that an import binds stands for."""
        found: dict[str, str] = {}
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    found |= {alias.asname: alias.name for alias in names if alias.asname}
                case ast.ImportFrom(module=module, names=names):
                    for alias in names:
                        found[alias.asname or alias.name] = f"{module or ''}.{alias.name}"
        return found

    def path(self, node: ast.AST) -> str:
        """`pypto.frontend.jit` for whatever name the file has for it; `""` for what is no name."""
        name = dotted(node) if isinstance(node, ast.expr) else ""
        head, dot, rest = name.partition(".")
        return self._aliases.get(head, head) + dot + rest

    def calls(self, *paths: str) -> list[ast.Call]:
        """All calls of these functions."""
        return [n for n in self.nodes if isinstance(n, ast.Call) and self.path(n.func) in paths]

    @cached_property
    def imports(self) -> list[Import]:
        """Everything that is imported."""
        found: list[Import] = []
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    found += [Import(alias.name, "", node) for alias in names]
                case ast.ImportFrom(module=module, names=names):
                    found += [Import(module or "", alias.name, node) for alias in names]
        for call in self.calls(*_DYNAMIC):
            match call.args:
                case [ast.Constant(value=str(module)), *_]:
                    found.append(Import(module, "", call))
        return found

    def reached(self, roots: Iterable[FunctionNode]) -> list[FunctionNode]:
        """The roots and every function that they reach, directly or not."""
        found: dict[FunctionNode, None] = {}
        pending = list(roots)
        while pending:
            function = pending.pop()
            if function not in found:
                found[function] = None
                pending += self._names[function]
        return list(found)

    @cached_property
    def _names(self) -> dict[FunctionNode, list[FunctionNode]]:
        return {function: self.named(function.body) for function in self.definitions}

    def named(self, body: Iterable[ast.AST]) -> list[FunctionNode]:
        """The functions of this file that a piece of code names."""
        return [function for name in names(body) for function in self.functions.get(name, [])]

    def shown(self, node: ast.expr) -> str:
        """An expression as it stands there, on one line and not too long."""
        text = " ".join((ast.get_source_segment(self.text, node) or "").split())
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def walk(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a piece of code."""
    for node in body:
        yield from ast.walk(node)


def names(body: Iterable[ast.AST]) -> dict[str, None]:
    """The names that a piece of code uses, in order, each once."""
    used = (node for node in walk(body) if isinstance(node, ast.Name))
    return dict.fromkeys(node.id for node in used if isinstance(node.ctx, ast.Load))


def has_word(name: str, word: str) -> bool:
    """Whether a name has a word between its underscores, in upper or lower case."""
    return word in re.split(r"[\W_]+", name.lower())


def parse(name: str, text: str) -> Code | Finding:
    """Parse a file, or say why that cannot be done."""
    source = PythonSource(Path(name), text)
    try:
        tree = source.tree
    except BadInput as error:
        line = int(error.where.rpartition(":")[2])
        return Finding("syntax", name, line, f"{error.what}; mend the source")
    if deep := _below(tree, MAX_DEPTH):
        what = f"nested deeper than {MAX_DEPTH} levels; write it as several statements"
        return Finding("syntax", name, getattr(deep[0], "lineno", 1), what)
    return Code(name, text, tree)


def _below(tree: ast.AST, depth: int) -> list[ast.AST]:
    """The nodes that lie that deep."""
    level = [tree]
    for _ in range(depth):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return level
