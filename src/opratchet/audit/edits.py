"""One edit a version: what each version changed is found out again from the sources, with the tools of gate 1.

A version may differ from the incumbent of its round in the kernel alone (compared as trees), and there by exactly one
knob, or by one rewrite. That is the rewrite that the ledger names: it is applied to the incumbent once more, and has to
give the same tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opratchet import __version__
from opratchet.audit.files import Sources, shown_file
from opratchet.audit.findings import Finding, shown
from opratchet.edit.knobs.tables import gcc_flag_groups
from opratchet.edit.model import NotApplicable, Situation, Target
from opratchet.edit.onechange import (
    ChangeRefusedError,
    describe_change,
    require_kernel_only,
)
from opratchet.edit.pypto.target import pypto_target
from opratchet.edit.registry import STRATEGIES
from opratchet.edit.source import KernelSource
from opratchet.edit.splice import BOM
from opratchet.ledger.events import RunStarted
from opratchet.ledger.rounds import Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.words import WorkloadKind


@dataclass(frozen=True)
class Bench:
    """What an edit is judged by.

    Attributes:
        run: Header of the run.
        text: The source as given.
    """

    run: RunStarted
    text: str

    @cached_property
    def _functions(self) -> list[ast.FunctionDef]:
        tree = ast.parse(self.text)
        return [node for node in tree.body if isinstance(node, ast.FunctionDef)]

    @cached_property
    def kernel(self) -> str:
        """Name of the kernel factory: the only one with `@tilelang.jit`, else the function called like the operator."""
        jitted = [f.name for f in self._functions if any(map(_is_jit, f.decorator_list))]
        names = [f.name for f in self._functions]
        if len(jitted) == 1:
            return jitted[0]
        return self.run.operator if self.run.operator in names else ""

    @cached_property
    def golden(self) -> str:
        """Name of the golden; empty when there are several and none is called like the operator."""
        goldens = [f.name for f in self._functions if f.name.startswith("golden_")]
        wanted = f"golden_{self.run.operator}"
        return wanted if wanted in goldens else goldens[0] if len(goldens) == 1 else ""

    @cached_property
    def target(self) -> Target:
        """The machine that the run began on, as far as it decides which edits there are."""
        if self.run.flow == "pypto":
            return pypto_target(self.run.backend)
        width = _vector_bytes(self.run.machine)
        return Target(
            self.run.backend,
            vector_bytes=width,
            local_bytes=4 << 20,
            compile_flags=gcc_flag_groups(width),
        )

    def situation(self, source: KernelSource) -> Situation:
        """A source as the strategies saw it."""
        kept = [w for w in self.run.workloads if w.kind is not WorkloadKind.SKIPPED]
        return Situation(source, self.target, tuple(w.shape for w in kept))


def _is_jit(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(node).split(".")[-1] == "jit"


def _vector_bytes(machine: Mapping[str, Any]) -> int:
    sets = machine.get("vector_sets") or ()
    return 64 if "avx512f" in sets else 32 if "avx2" in sets else 16


def edit_findings(sources: Sources, state: RunState) -> Iterator[Finding]:
    """Whether each version that a round shows is its incumbent plus one edit."""
    text = sources.text(state.run.source_sha256)
    if text is None:
        return  # the missing or changed baseline was named already
    bench = Bench(state.run, text)
    for taken in state.finished_rounds:
        if taken.shown is None:
            continue
        before, after = sources.text(taken.incumbent), sources.text(taken.shown.source)
        if before is None or after is None:
            continue  # named already
        name = shown_file(state.run.operator, taken.number)
        yield from _judged(bench, name, before, after, taken.shown)


class NotAnEditError(Exception):
    """A version is not its incumbent plus one edit; the text says why.

    Args:
        why: Why not.
        by_this_version: Whether another version of the tool may have known the edit, or made it differently.
    """

    def __init__(self, why: str, *, by_this_version: bool = False) -> None:
        super().__init__(why)
        self.by_this_version = by_this_version


def _judged(bench: Bench, name: str, before: str, after: str, trial: Trial) -> Iterator[Finding]:
    if trial.outcome is not None and not trial.outcome.is_judged and trial.ratio is None:
        return  # a round without anything better shows a candidate that was refused, for whatever reason
    try:
        require_one_edit(bench, before, after, trial)
        return
    except NotAnEditError as error:
        why = str(error)
        remark = error.by_this_version and bench.run.tool_version != __version__
    except Exception as error:  # a source of unknown origin may provoke anything
        why, remark = f"it cannot be found out: {error!r}", False
    what = f"this version is not its round's incumbent plus one edit: {shown(why)}"
    if remark:
        what = f"{shown(why)} in this version of the tool, {__version__}; the run's was {shown(bench.run.tool_version)}"
    yield Finding("edits", name, what, key=shown(trial.edit), remark=remark)


def require_one_edit(bench: Bench, before: str, after: str, trial: Trial) -> None:
    """Refuse a version that is not one edit of its incumbent.

    Raises:
        NotAnEditError: it is not.
    """
    if not bench.kernel:
        raise NotAnEditError("there is no telling which function is the kernel")
    old, new = KernelSource(before, bench.kernel), KernelSource(after, bench.kernel)
    try:
        require_kernel_only(old, new, bench.golden)
    except ChangeRefusedError as error:
        raise NotAnEditError(str(error)) from None
    made = _made_again(bench, old, trial)
    if made is not None and _tree(made) == _tree(after):
        return
    if describe_change(old, new, bench.target).is_one_knob:
        return
    if trial.strategy not in STRATEGIES:
        raise NotAnEditError(
            f"more than one knob is changed, and no rewrite is called {trial.strategy}"
        )
    why = f"{trial.edit} gives another source"
    if made is None:
        why = f"{trial.strategy} does not offer the edit {trial.edit} on that incumbent"
    raise NotAnEditError(why, by_this_version=True)


def _tree(text: str) -> str:
    return ast.dump(ast.parse(text.removeprefix(BOM)))


def _made_again(bench: Bench, source: KernelSource, trial: Trial) -> str | None:
    """The source that the recorded edit gives; None when its strategy does not offer it."""
    strategy = STRATEGIES.get(trial.strategy)
    if strategy is None:
        return None
    offered = strategy.edits(bench.situation(source))
    if isinstance(offered, NotApplicable):
        return None
    return next((edit.text for edit in offered if edit.id == trial.edit), None)
