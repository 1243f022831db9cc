"""What a Python source says, read from its syntax tree. Nothing in it is ever imported or run."""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from opratchet.errors import BadInput
from opratchet.operator.evaluate import UnreadableError, value
from opratchet.operator.files import read_text

_MUTATORS = frozenset(
    (
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "update",
        "sort",
        "reverse",
        "setdefault",
    )
)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")  # PEP 263


@dataclass(frozen=True)
class Signature:
    """Parameters of a function.

    Attributes:
        names: All that can be given by name, in order.
        positional: Those that can be given by position, in order.
        required: Those without a default.
        defaults: Default expression by name.
        open: Whether it takes further keyword arguments (`**kwargs`).
    """

    names: tuple[str, ...]
    positional: tuple[str, ...]
    required: tuple[str, ...]
    defaults: Mapping[str, ast.expr]
    open: bool

    def accepts(self, name: str) -> bool:
        """Whether an argument of that name can be given."""
        return self.open or name in self.names


def signature(function: FunctionNode) -> Signature:
    """The parameters of a function definition."""
    arguments = function.args
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    keyword = [parameter.arg for parameter in arguments.kwonlyargs]
    defaults = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    for name, default in zip(keyword, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[name] = default
    names = (*positional, *keyword)
    return Signature(
        names=names,
        positional=tuple(positional),
        required=tuple(name for name in names if name not in defaults),
        defaults=defaults,
        open=arguments.kwarg is not None,
    )


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a name or attribute chain, `""` for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def called(node: ast.expr) -> ast.expr:
    """The function of a call, or the node itself when it is none."""
    return node.func if isinstance(node, ast.Call) else node


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in order, also those inside `if`, `try`, `with`, but not those inside functions or classes."""
    pending = list(body)[
        ::-1
    ]  # a stack and no recursion: a chain of `elif` is nested as deep as it is long
    while pending:
        statement = pending.pop()
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = list(getattr(statement, "body", []))
            for handler in getattr(statement, "handlers", []):
                inner += handler.body
            inner += [*getattr(statement, "orelse", []), *getattr(statement, "finalbody", [])]
            pending += inner[::-1]


@dataclass(frozen=True)
class PythonSource:
    """A Python file as read.

    Attributes:
        path: The file, as the user named it.
        text: Its text.
    """

    path: Path
    text: str

    def at(self, line: int) -> str:
        """`file.py:12`, for provenance."""
        return f"{self.path.name}:{line}"

    def where(self, line: int) -> str:
        """`path/to/file.py:12`, for errors."""
        return f"{self.path}:{line}"

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree.

        Raises:
            BadInput: the text is not valid Python, with its line.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # a doubtful escape in the user's text is not our news
                return ast.parse(self.text)
        except SyntaxError as error:
            what, line = f"syntax error: {error.msg}", error.lineno or 1
        except (ValueError, RecursionError, MemoryError) as error:
            what, line = f"not readable as Python: {error}", 1
        raise BadInput(what, where=self.where(line), fix="Mend the source, then run again.")

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """All statements at the level of the module."""
        return tuple(statements(self.tree.body))

    @cached_property
    def functions(self) -> Mapping[str, FunctionNode]:
        """Function definitions at the level of the module, by name; of several the last, as when run."""
        return {node.name: node for node in self.statements if isinstance(node, FunctionNode)}

    def definition_lines(self, name: str) -> list[int]:
        """Lines of all statements at the level of the module that bind the name."""
        return [node.lineno for node in self.statements if name in bound_names(node)]

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """Names of the functions decorated with `@tilelang.jit` or any other `jit`."""
        return tuple(name for name, node in self.functions.items() if _jit(node) is not None)

    @cached_property
    def constants(self) -> Mapping[str, Any]:
        """Values of the names that are assigned once, at the top, a value that can be read."""
        bound = Counter(name for statement in self.statements for name in bound_names(statement))
        changed = changed_in_place(self.tree)
        found: dict[str, Any] = {}
        for statement in self.tree.body:
            name, expression = assignment(statement)
            if expression is not None and bound[name] == 1 and name not in changed:
                with contextlib.suppress(UnreadableError):
                    found[name] = value(expression, found)
        return found

    def compile_target(self, kernel: str) -> tuple[str, int] | None:
        """First word of the `target=` of the kernel's decorator with its line; None when it is not to be read."""
        decorator = _jit(self.functions[kernel])
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        for keyword in keywords:
            if keyword.arg == "target":
                return self._target_kind(keyword.value)
        return None

    def _target_kind(self, expression: ast.expr) -> tuple[str, int] | None:
        try:
            target = value(expression, self.constants)
        except UnreadableError:
            return None
        kind = target.get("kind") if isinstance(target, dict) else target
        words = kind.split() if isinstance(kind, str) else []
        return (words[0], expression.lineno) if words else None

    def tensors(self, kernel: str) -> tuple[str, ...]:
        """Names of the kernel's tensors: parameters of the `@T.prim_func` inside; empty when there is none."""
        for node in ast.walk(self.functions[kernel]):
            if isinstance(node, FunctionNode) and any(
                dotted(called(decorator)).split(".")[-1] == "prim_func"
                for decorator in node.decorator_list
            ):
                return signature(node).names
        return ()


def read_python(path: Path) -> PythonSource:
    """Read and parse a Python file.

    Raises:
        BadInput: it cannot be read, is not UTF-8, or is not valid Python.
    """
    source = PythonSource(path, read_text(path))
    _check_cookie(source)
    _ = source.tree
    return source


def assignment(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    """Name and expression of `name = expression` (or annotated); `("", None)` for anything else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=expression):
            return name, expression
        case ast.AnnAssign(target=ast.Name(id=name), value=expression):
            return name, expression
    return "", None


def bound_names(statement: ast.stmt) -> list[str]:
    """Names that a statement itself binds: a definition, an import, targets; not those of its body."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(alias.asname or alias.name).split(".")[0] for alias in names]
        case ast.Assign(targets=targets):
            return _stored(targets)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            return _stored([target])
        case ast.With(items=items):
            return _stored([item.optional_vars for item in items if item.optional_vars])
    return []


def changed_in_place(node: ast.AST) -> set[str]:
    """Names whose value is changed without being bound anew: `a.append(...)`, `a[0] = ...`."""
    changed: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if method in _MUTATORS:
                    changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed.add(name)
    return changed


def _stored(targets: Iterable[ast.expr]) -> list[str]:
    return [
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def _jit(function: FunctionNode) -> ast.expr | None:
    for decorator in function.decorator_list:
        if dotted(called(decorator)).split(".")[-1] == "jit":
            return decorator
    return None


def _check_cookie(source: PythonSource) -> None:
    """A first line that declares another encoding would make a written copy unreadable."""
    for number, line in enumerate(source.text.splitlines()[:2], start=1):
        match = _COOKIE.match(line)
        if match and match.group(1).lower().replace("_", "-") not in (
            "utf-8",
            "utf8",
            "ascii",
            "us-ascii",
        ):
            raise BadInput(
                f"the file declares the encoding `{match.group(1)}`, but only UTF-8 is read",
                where=source.where(number),
                fix="Save it as UTF-8 and remove the declaration.",
            )
