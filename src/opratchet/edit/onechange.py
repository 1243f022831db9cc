"""Gate 1, one change: a candidate is the incumbent plus exactly one knob, or one declared rewrite, and nothing else.

The tool's own edits are made that way. A candidate from outside is a whole file, so it is compared, as a syntax tree:
blank space and comments say nothing, everything else does. What may differ is the kernel factory with its decorators, and
the module constants that only the factory mentions. Golden, inputs, workloads, tests and imports may not.

Which knob moved is found by moving it back: if that gives the incumbent's tree, it was the only change.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from opratchet.edit.knobs import Knob, KnobKind, Value, knobs_of
from opratchet.edit.knobs.constants import module_constants
from opratchet.edit.knobs.tables import gcc_flag_groups
from opratchet.edit.model import Target
from opratchet.edit.source import KernelSource
from opratchet.edit.splice import BOM
from opratchet.errors import BadInput

_OPTIONS = ("compile_flags", "pass_configs")


class ChangeRefusedError(Exception):
    """A candidate is not the incumbent plus one change; its text says why."""


@dataclass(frozen=True)
class Change:
    """What a candidate changed.

    Attributes:
        knob: Name of the only knob that moved; empty when it is not a single knob, so that it must come from a
            declared rewrite.
        old: Its value before.
        new: Its value after.
    """

    knob: str = ""
    old: Value = None
    new: Value = None

    @property
    def is_one_knob(self) -> bool:
        """Whether exactly one knob moved."""
        return bool(self.knob)

    def __str__(self) -> str:
        return f"{self.knob} {self.old} -> {self.new}" if self.knob else "more than one knob"


def check_edit(
    before: str, after: str, kernel: str, golden: str, target: Target | None = None
) -> Change:
    """Judge a candidate's text against the incumbent's.

    Args:
        before: Text of the incumbent.
        after: Text of the candidate.
        kernel: Name of the kernel factory.
        golden: Name of the reference function.
        target: Where it is to run; decides which pass configurations and flags are knobs.

    Returns:
        What changed in the kernel.

    Raises:
        ChangeRefusedError: the candidate is not valid Python, lacks the factory, changes anything outside the kernel, or
            changes nothing.
    """
    old, new = KernelSource(before, kernel), KernelSource(after, kernel)
    require_kernel_only(old, new, golden)
    return describe_change(old, new, target)


def require_kernel_only(old: KernelSource, new: KernelSource, golden: str) -> None:
    """Refuse a candidate that changes anything but the kernel; enough for an edit that the tool has made itself.

    Raises:
        ChangeRefusedError: as for `check_edit`.
    """
    try:
        ast.parse(new.text.removeprefix(BOM))
        _ = new.factory
    except (BadInput, SyntaxError, ValueError) as error:
        raise ChangeRefusedError(f"the candidate cannot be read: {error}") from None
    foreign = changed_outside(old, new, golden)
    if foreign:
        raise ChangeRefusedError(foreign)
    if _tree(old.text) == _tree(new.text):
        raise ChangeRefusedError("nothing is changed")


def changed_outside(before: KernelSource, after: KernelSource, golden: str = "") -> str:
    """What a candidate changed outside the kernel, in one sentence; empty when nothing."""
    private = {*module_constants(before), *module_constants(after)}
    old, new = _frozen(before, private), _frozen(after, private)
    if old == new:
        return ""
    gone, came = Counter(old), Counter(new)
    differing = sorted({name for name, _ in (gone - came) + (came - gone)})
    if golden in differing:
        return f"the golden `{golden}` is changed; only the kernel may change"
    what = f"`{differing[0]}`" if differing else "the order of statements"
    return f"{what} is changed, which is outside the kernel; only the kernel may change"


def _frozen(source: KernelSource, private: set[str]) -> list[tuple[str, str]]:
    """Names and trees of the statements that may not change; the kernel factory in them is left blank."""
    tree = _Blank(source.kernel).visit(_parse(source.text))
    named = [(_name(statement), statement) for statement in tree.body]
    return [
        (name, ast.dump(statement))
        for name, statement in named
        if not (name in private and _is_plain(statement))
    ]


class _Blank(ast.NodeTransformer):
    """Empties the function of a name, whatever holds it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name != self._name:
            return self.generic_visit(node)
        return ast.Expr(ast.Name(self._name, ast.Load()))


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ast.unparse(statement).partition("\n")[0]


def _is_plain(statement: ast.stmt) -> bool:
    """Whether it binds a literal: nothing is run to find its value."""
    value = getattr(statement, "value", None)
    try:
        ast.literal_eval(value or "")
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def describe_change(
    before: KernelSource, after: KernelSource, target: Target | None = None
) -> Change:
    """Which knob moved between two versions of a kernel, if it was one and nothing else.

    Args:
        before: The incumbent.
        after: The candidate.
        target: As for `check_edit`.
    """
    target = target or Target("tilelang-c", compile_flags=gcc_flag_groups(vector_bytes=64))
    old = {knob.name: knob for knob in knobs_of(before, target)}
    for knob in knobs_of(after, target):
        was = old.get(knob.name)
        if was is not None and _moved_alone(knob, was, before, after):
            return Change(knob.name, was.current, knob.current)
    return Change()


def _moved_alone(knob: Knob, was: Knob, before: KernelSource, after: KernelSource) -> bool:
    if knob.kind is not was.kind or knob.current == was.current:
        return False
    if _tree(knob.turned(after, was.current)) == _tree(before.text):
        return True
    return knob.kind is KnobKind.FLAG and _flags_moved_alone(knob, was, before, after)


def _flags_moved_alone(knob: Knob, was: Knob, before: KernelSource, after: KernelSource) -> bool:
    """Groups may share a flag, so that moving one back may take a flag of another along."""
    old, new = _Canonical(flags=False), _Canonical(flags=False)
    if _dump(old, before.text) != _dump(new, after.text):
        return False
    moved = {*str(knob.current).split(), *str(was.current).split()}
    return old.seen ^ new.seen <= moved


@lru_cache(maxsize=8)
def _tree(text: str) -> str:
    return _dump(_Canonical(), text)


def _dump(canonical: _Canonical, text: str) -> str:
    return ast.dump(canonical.visit(_parse(text)))


def _parse(text: str) -> ast.Module:
    return ast.parse(text.removeprefix(BOM))


class _Canonical(ast.NodeTransformer):
    """Writes what means the same the same way: no empty options, flags in order, no empty call of a decorator.

    Args:
        flags: Whether compile flags are kept; else they are taken out, and `seen` holds them.
    """

    def __init__(self, flags: bool = True) -> None:
        self._flags = flags
        self.seen: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self._plain(decorator) for decorator in node.decorator_list]
        return self.generic_visit(node)

    def _plain(self, decorator: ast.expr) -> ast.expr:
        if not isinstance(decorator, ast.Call):
            return decorator
        decorator.keywords = [k for k in map(self._sorted, decorator.keywords) if not _is_empty(k)]
        return decorator if decorator.args or decorator.keywords else decorator.func

    def _sorted(self, keyword: ast.keyword) -> ast.keyword:
        """Compile flags as one list of words in alphabetical order."""
        if keyword.arg == "compile_flags" and not _is_empty(keyword):
            with contextlib.suppress(ValueError):
                given = ast.literal_eval(keyword.value)
                words = " ".join([given] if isinstance(given, str) else given).split()
                self.seen |= {*words}
                kept = [ast.Constant(word) for word in sorted(words) if self._flags]
                keyword.value = ast.List(list(kept), ast.Load())
        return keyword


def _is_empty(keyword: ast.keyword) -> bool:
    if keyword.arg not in _OPTIONS:
        return False
    return ast.unparse(keyword.value) in ("None", "[]", "()", "{}")


def diff(before: str, after: str, old: str = "incumbent", new: str = "candidate") -> str:
    """Unified diff of two texts, with three lines of context; `old` and `new` name them in its head."""
    was, now = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = difflib.unified_diff(was, now, old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
