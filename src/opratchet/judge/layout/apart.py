"""Golden, implementation and test are three things: what each has to hold, and what it must not touch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from opratchet.judge.layout.code import Code, Import, has_word
from opratchet.judge.layout.model import Finding
from opratchet.operator.python_source import FunctionNode


def check_golden(code: Code, op: str) -> Iterator[Finding]:
    """`golden-apart`."""
    if not any(isinstance(n, FunctionNode) and n.name == f"{op}_golden" for n in code.tree.body):
        yield code.finding("golden-apart", None, f"there is no function `{op}_golden`: define it")
    for imported in code.imports:
        if imported.parts[:1] == ["pypto"]:
            yield code.finding(
                "golden-apart",
                imported.node,
                "the golden imports pypto: compute it with torch alone",
            )
        elif f"{op}_impl" in imported.parts:
            yield code.finding(
                "golden-apart",
                imported.node,
                "the golden imports the implementation that it has to judge",
            )


def check_impl(code: Code, op: str) -> Iterator[Finding]:
    """`impl-apart`."""
    for imported in code.imports:
        if any(has_word(part, "golden") for part in imported.parts):
            message = "the implementation imports a golden: remove it"
            yield code.finding("impl-apart", imported.node, message)
    for node in code.nodes:
        if (name := _defined(node)) and has_word(name, "golden"):
            yield code.finding(
                "impl-apart",
                node,
                f"the implementation contains `{name}`: a golden belongs into {op}_golden.py",
            )


def _defined(node: ast.AST) -> str:
    """Name of a function that a node defines, by `def` or as a lambda; `""` for anything else."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name
    return ""


def check_test(code: Code, op: str) -> Iterator[Finding]:
    """`test-apart`."""
    sources = {_file_of(imported, op) for imported in code.imports}
    for what in ("golden", "impl"):
        if f"{op}_{what}" not in sources:
            message = (
                f"nothing is imported from `{op}_{what}`: import both sides, each from its file"
            )
            yield code.finding("test-apart", None, message)
    for function in code.functions.get(f"{op}_golden", []):
        yield code.finding(
            "test-apart", function, f"the test defines `{op}_golden` itself: import it"
        )


def _file_of(imported: Import, op: str) -> str:
    """The file that something is imported from, without its suffix; where the module is the operator's folder, a file in it."""
    module = imported.module.split(".")[-1]
    return imported.name if module in ("", op) else module
