"""Gate 1 for kernels of TileLang: the factory of a candidate does what a kernel needs, and nothing else.

A factory is Python that the build runs. One that imports a library, tries and falls back, reads the interpreter's insides or
brings code of its own can give back anything at all as the kernel that it pretends to build. What a kernel needs is little:
statements without imports and exceptions; the names of TileLang, its own, and a few of Python's; flags that name no files.
Whatever the operator's own factory does beyond that, as the user has given it, is the user's business and is let pass.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

from opratchet.edit.knobs.constants import module_constants
from opratchet.edit.source import KernelSource
from opratchet.edit.splice import BOM
from opratchet.operator.python_source import dotted

STATEMENTS: tuple[type[ast.stmt], ...] = (
    ast.FunctionDef,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.For,
    ast.If,
    ast.While,
    ast.With,
    ast.Return,
    ast.Expr,
    ast.Pass,
    ast.Assert,
    ast.Break,
    ast.Continue,
)
WORDS = {
    ast.Import: "imports nothing",
    ast.ImportFrom: "imports nothing",
    ast.Try: "catches no exception",
    ast.Raise: "raises no exception",
    ast.ClassDef: "defines no class",
    ast.Global: "changes nothing outside of itself",
    ast.Nonlocal: "changes nothing outside of itself",
    ast.Delete: "deletes nothing",
}
BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "divmod",
        "enumerate",
        "float",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "pow",
        "range",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "str",
        "sum",
        "tuple",
        "zip",
        "AssertionError",
        "ValueError",
    ]
)
# Of what is no module: fields of tensors and values, and the methods of lists and dicts.
FIELDS = frozenset(
    [
        "append",
        "astype",
        "copy",
        "data",
        "dtype",
        "extend",
        "get",
        "items",
        "keys",
        "shape",
        "values",
    ]
)
MODULES = ("math",)
OF_PACKAGE = frozenset(("PassConfigKey", "cdiv", "jit", "next_power_of_2"))
# What calls or brings code that is no part of the kernel, or gives addresses away.
FOREIGN = re.compile(
    r"call_\w+|tvm_\w+|ptx_\w+|asm\w*|\w*(extern|packed|import|source|inline_asm|ffi)\w*|eval|exec|open|"
    r"address_of|access_ptr"
)
OPTIONS = ("compile_flags", "pass_configs")
FLAG = re.compile(
    r"-O([0-3sgz]|fast)?|-g\d?|-m[a-z0-9][\w.=+-]*|-std=[\w+]+|-D__FAST_MATH__|-DNDEBUG|"
    r"-f(?!plugin|profile|dump|use-ld|sanitize)[a-z][a-z0-9-]*(=[a-z0-9-]+)?"
)


def misplaced(candidate: KernelSource, trusted: KernelSource) -> str:
    """What a candidate's factory does that no kernel needs, with its line; empty when there is nothing.

    Args:
        candidate: The candidate; valid Python that has the factory.
        trusted: The operator as the user has given it.
    """
    own = _Own.of(trusted)
    constants = dict(_literals(_parsed(candidate)))
    private = set(module_constants(candidate))
    plain = {name for name in private if name in constants and _is_plain(constants[name])}
    known = own.names | BUILTINS | set(MODULES) | {candidate.kernel}
    # A list or dict of the module could carry a kernel from one call of the factory to the next.
    foreign = (set(_in_body(candidate)) - known - plain) | (
        set(_in_head(candidate)) - known - private
    )
    for factory in _factories(candidate):
        for node in sorted(ast.walk(factory), key=_place):
            if found := _wrong(node, foreign, own):
                return f"line {node.lineno}: {found}"  # type: ignore[attr-defined]
        if found := _wrong_head(factory, candidate, own):
            return f"line {factory.lineno}: {found}"
    return ""


def _place(node: ast.AST) -> tuple[int, int, int]:
    """Order of the text; of what begins at the same place, names come first: they are told best."""
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    return line, column, not isinstance(node, (ast.Name, ast.stmt))


@dataclass(frozen=True)
class _Own:
    """What the user's own factory does, and how its module names TileLang.

    Attributes:
        names: Names that it takes from its module.
        pieces: Its attributes, decorators, options and defaults as text.
        kinds: Kinds of its statements.
        language: Names of `tilelang.language`.
        package: Names of `tilelang`.
    """

    names: frozenset[str]
    pieces: frozenset[str]
    kinds: frozenset[type[ast.AST]]
    language: frozenset[str]
    package: frozenset[str]

    @classmethod
    def of(cls, source: KernelSource) -> _Own:
        nodes = [node for factory in _factories(source) for node in ast.walk(factory)]
        pieces = (ast.Attribute, ast.keyword, ast.expr)
        aliases = dict(_aliases(_parsed(source)))
        return cls(
            names=frozenset([*_in_body(source), *_in_head(source)]),
            pieces=frozenset(ast.unparse(node) for node in nodes if isinstance(node, pieces)),
            kinds=frozenset(map(type, nodes)),
            language=frozenset(a for a, name in aliases.items() if name == "tilelang.language"),
            package=frozenset(a for a, name in aliases.items() if name == "tilelang"),
        )


def _parsed(source: KernelSource) -> ast.Module:
    return ast.parse(source.text.removeprefix(BOM))


def _factories(source: KernelSource) -> Iterator[ast.FunctionDef]:
    """Every function of the factory's name, wherever it stands: gate 1 leaves all of them out of its comparison."""
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.FunctionDef) and node.name == source.kernel:
            yield node


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that stand for modules, with the modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    alias.asname or alias.name.split(".")[0],
                    (alias.name if alias.asname else alias.name.split(".")[0]),
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _in_body(source: KernelSource) -> Iterator[str]:
    """Names that the factory's body takes from its module or from Python, by the rules of scopes."""
    text = source.text.removeprefix(BOM)
    for scope in _scopes(symtable.symtable(text, "candidate", "exec")):
        if scope.get_type() == "function" and scope.get_name() == source.kernel:
            for inner in _scopes(scope):
                yield from (s.get_name() for s in inner.get_symbols() if s.is_global())


def _in_head(source: KernelSource) -> Iterator[str]:
    """Names in what is evaluated in the module when the factory is defined."""
    for factory in _factories(source):
        for node in _head(factory):
            yield from (name.id for name in ast.walk(node) if isinstance(name, ast.Name))


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _head(factory: ast.FunctionDef) -> Iterator[ast.expr]:
    """What is evaluated in the module when a function is defined: decorators, defaults, annotations."""
    given = factory.args
    yield from factory.decorator_list
    yield from given.defaults
    yield from (default for default in given.kw_defaults if default is not None)
    everything = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    yield from (one.annotation for one in everything if one.annotation is not None)


def _wrong(node: ast.AST, foreign: set[str], own: _Own) -> str:
    """What is wrong with one node, in words; empty when nothing is."""
    if (
        isinstance(node, ast.stmt)
        and not isinstance(node, STATEMENTS)
        and type(node) not in own.kinds
    ):
        said = WORDS.get(type(node), f"has no use for `{type(node).__name__.lower()}`")
        return f"a kernel factory {said}"
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
        return "a kernel factory waits for nobody"
    if isinstance(node, ast.Name) and node.id in foreign:
        return f"a kernel has no use for `{node.id}`"
    if isinstance(node, ast.Attribute) and ast.unparse(node) not in own.pieces:
        return _wrong_attribute(node, own)
    return ""


def _wrong_attribute(node: ast.Attribute, own: _Own) -> str:
    refused = f"a kernel has no use for `.{node.attr}`"
    root, _, rest = dotted(node).partition(".")
    if node.attr.startswith("_"):
        return refused
    if root in own.language and "." not in rest:
        return refused if FOREIGN.fullmatch(node.attr) else ""
    if root in own.package:
        first, _, deeper = rest.partition(".")
        known = first in OF_PACKAGE and (not deeper or first == "PassConfigKey")
        return "" if known and "." not in deeper else refused
    if root in MODULES and "." not in rest:
        return ""
    return "" if node.attr in FIELDS else refused


def _wrong_head(factory: ast.FunctionDef, candidate: KernelSource, own: _Own) -> str:
    """What is wrong with the decorators and the defaults."""
    for default in [*factory.args.defaults, *filter(None, factory.args.kw_defaults)]:
        if not _is_plain(default) and ast.unparse(default) not in own.pieces:
            return "a default of a kernel factory is a plain value"
    for decorator in factory.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called) not in own.pieces:
            return f"the decorator `{ast.unparse(called)}` is not the operator's"
        given = decorator.keywords if isinstance(decorator, ast.Call) else []
        for keyword in given:
            if found := _wrong_option(keyword, candidate, own):
                return found
    return ""


def _wrong_option(keyword: ast.keyword, candidate: KernelSource, own: _Own) -> str:
    if ast.unparse(keyword) in own.pieces:
        return ""
    if keyword.arg not in OPTIONS:
        return f"`{keyword.arg}` of a kernel is not to be changed"
    return _wrong_flags(keyword.value, candidate, own) if keyword.arg == "compile_flags" else ""


def _wrong_flags(value: ast.expr, candidate: KernelSource, own: _Own) -> str:
    if isinstance(value, ast.Name):
        constants = dict(_literals(_parsed(candidate)))
        value = constants.get(value.id, value)
    try:
        given = ast.literal_eval(value) or []
    except (ValueError, TypeError):
        return "compile flags are written out"
    words = " ".join([given] if isinstance(given, str) else map(str, given)).split()
    known = " ".join(own.pieces)
    for word in words:
        if not FLAG.fullmatch(word) and repr(word) not in known:
            return f"a kernel has no use for the compile flag `{word}`"
    return ""


def _literals(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _is_plain(node: ast.expr) -> bool:
    """Whether a default holds no state that could outlive a call: a number, a text, or a tuple of such."""
    try:
        hash(ast.literal_eval(node))
    except (ValueError, TypeError):
        return False
    return True
