"""The workloads of an operator, and whether its kernel can take them.

Where they are stated, in this order: the manifest; a literal `WORKLOADS = [...]` in the source; the calls of
`run_case(...)` that `run_L0()` makes. Arguments of a call are told apart by name: `dtype` is the dtype, whole numbers that
the kernel takes are its shape, what else the kernel or the golden takes are parameters. An argument that neither takes
can say the workload's own id, kind, reason or weight, as a manifest does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opratchet.errors import BadInput
from opratchet.ledger.words import WorkloadKind
from opratchet.operator.cases import CASE, ENTRY, Case, level_0_cases
from opratchet.operator.evaluate import UnreadableError, value
from opratchet.operator.manifest import ManifestFile, WorkloadSection, validated
from opratchet.operator.model import Workload
from opratchet.operator.problems import Problem, advice, shown
from opratchet.operator.python_source import PythonSource, Signature, assignment, signature
from opratchet.operator.tolerances import DTYPES, canonical

LISTED = "WORKLOADS"

_ADD_TO_MANIFEST = (
    'Add [[workloads]] to opratchet.toml: id = "...", shape = { ... }, dtype = "...".'
)


@dataclass(frozen=True)
class Kernel:
    """The two functions that take a workload: the kernel factory and the golden."""

    source: PythonSource
    factory: str
    golden: str

    @property
    def parameters(self) -> Signature:
        """Parameters of the kernel factory."""
        return signature(self.source.functions[self.factory])

    def accepts(self, name: str) -> bool:
        """Whether the factory or the golden takes an argument of that name."""
        golden = signature(self.source.functions[self.golden])
        return self.parameters.accepts(name) or golden.accepts(name)

    def default_dtype(self) -> str:
        """The default of the factory's parameter `dtype`, else float32."""
        default = self.parameters.defaults.get("dtype")
        try:
            dtype = value(default, self.source.constants) if default is not None else None
        except UnreadableError:
            dtype = None
        return canonical(dtype) if isinstance(dtype, str) else "float32"


@dataclass(frozen=True)
class Stated:
    """A workload as it is stated somewhere.

    Attributes:
        section: What is stated.
        at: Where, for provenance.
        where: Where a part of it stands, for errors.
    """

    section: WorkloadSection
    at: str
    where: Callable[..., str]

    def workload(self, default_dtype: str) -> Workload:
        """The workload that it states."""
        return Workload(
            id=self.section.id,
            shape=self.section.shape,
            dtype=canonical(self.section.dtype or default_dtype),
            params=self.section.params,
            kind=WorkloadKind(self.section.kind),
            reason=self.section.reason,
            weight=1.0 if self.section.weight is None else float(self.section.weight),
        )


def stated_workloads(manifest: ManifestFile, kernel: Kernel) -> list[Stated]:
    """All workloads, from the first place that states any.

    Raises:
        BadInput: nothing states any, or what states them cannot be read.
    """
    if manifest.data.workloads is not None:
        return [
            Stated(section, manifest.at("workloads", index), _Within(manifest, index).where)
            for index, section in enumerate(manifest.data.workloads)
        ]
    try:
        stated = _from_cases(_listed_cases(kernel) or level_0_cases(kernel.source), kernel)
    except UnreadableError as error:
        where = kernel.source.where(error.line)
        raise BadInput(
            f"the workloads cannot be read: {error}", where=where, fix=_ADD_TO_MANIFEST
        ) from None
    if not stated:
        raise BadInput(
            f"no workloads: there is no `{LISTED}`, and no `{ENTRY}` that calls `{CASE}`",
            where=str(kernel.source.path),
            fix=_ADD_TO_MANIFEST,
        )
    return stated


@dataclass(frozen=True)
class _Within:
    """Places within one workload of the manifest."""

    manifest: ManifestFile
    index: int

    def where(self, *key: str | int) -> str:
        return self.manifest.where("workloads", self.index, *key)


# --- from the source ----------------------------------------------------------------------------------------


def _listed_cases(kernel: Kernel) -> list[Case]:
    """The elements of `WORKLOADS = [...]`: each a tuple of arguments or a dict."""
    for statement in kernel.source.tree.body:
        name, expression = assignment(statement)
        if name == LISTED and isinstance(expression, (ast.List, ast.Tuple)):
            return [_listed_case(element, kernel) for element in expression.elts]
    return []


def _listed_case(element: ast.expr, kernel: Kernel) -> Case:
    item = value(element, kernel.source.constants)
    if isinstance(item, dict) and all(isinstance(key, str) for key in item):
        return Case(item, element.lineno)
    items = item if isinstance(item, (tuple, list)) else (item,)
    taker = kernel.source.functions.get(CASE, kernel.source.functions[kernel.factory])
    names = signature(taker).positional
    if len(items) > len(names):
        raise UnreadableError(element, f"`{taker.name}` does not take {len(items)} arguments")
    return Case(dict(zip(names, items, strict=False)), element.lineno)


def _from_cases(cases: Sequence[Case], kernel: Kernel) -> list[Stated]:
    tables: list[tuple[dict[str, Any], Case]] = []
    for case in cases:
        table = _table(case.arguments, kernel)
        if all(table != other for other, _ in tables):
            tables.append((table, case))
    names = _ids([table for table, _ in tables])
    return [
        _stated({"id": name, **table}, case, kernel.source)
        for name, (table, case) in zip(names, tables, strict=True)
    ]


def _stated(table: Mapping[str, Any], case: Case, source: PythonSource) -> Stated:
    def where(*key: str | int) -> str:
        return source.where(case.line)

    used = {*table, *table["shape"], *table.get("params", {})}
    unused = [name for name in case.arguments if name not in used]
    note = f" (not used: {', '.join(unused)})" if unused else ""
    section = validated(WorkloadSection, dict(table), where)
    return Stated(section, source.at(case.line) + note, where)


def _table(arguments: Mapping[str, Any], kernel: Kernel) -> dict[str, Any]:
    """Arguments as a workload table. A dict that already has a `shape` is one."""
    if isinstance(arguments.get("shape"), dict):
        return dict(arguments)
    table: dict[str, Any] = {"shape": {}, "params": {}}
    for name, given in arguments.items():
        if isinstance(given, UnreadableError):
            if name == "dtype" or kernel.accepts(name):
                raise given
        elif name == "dtype":
            table["dtype"] = given
        elif type(given) is int and name in kernel.parameters.names:
            table["shape"][name] = given
        elif kernel.accepts(name):
            table["params"][name] = list(given) if isinstance(given, tuple) else given
        elif _describes_workload(name, given):
            table[name] = given
    return table


def _describes_workload(name: str, given: Any) -> bool:
    """Whether an argument that no function of the kernel takes is the workload's own id, kind, reason or weight."""
    if name == "kind":
        return given in [kind.value for kind in WorkloadKind]
    if name == "weight":
        return type(given) in (int, float)
    return name in ("id", "reason") and isinstance(given, str) and bool(given)


def _ids(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """Short ids: the shape, and the dtype and the parameters only where the shape alone is not unique."""
    names: list[str] = []
    for detail in range(3):
        names = [_id(table, detail) for table in tables]
        if len(set(names)) == len(names):
            break
    return names


def _id(table: Mapping[str, Any], detail: int) -> str:
    if "id" in table:
        return str(table["id"])
    name = "x".join(str(size) for size in table["shape"].values()) or "default"
    if detail >= 1 and table.get("dtype"):
        name += f"-{table['dtype']}"
    if detail >= 2:
        name += "".join(f"-{key}={given}" for key, given in table.get("params", {}).items())
    return name


# --- whether the kernel can take them -----------------------------------------------------------------------


def workload_problems(stated: Sequence[Stated], kernel: Kernel) -> Iterator[Problem]:
    """What is wrong with workloads, seen from the kernel that has to take them."""
    if all(one.section.kind != "tune" for one in stated):
        yield Problem(
            "no workload has the kind `tune`, so nothing would be tuned",
            stated[0].where("kind"),
            'Set kind = "tune" for at least one.',
        )
    yield from _repeated(stated)
    for one in stated:
        yield from _incomplete(one, kernel)
        if one.section.kind != "skipped":
            yield from _misfits(one, kernel)


def _repeated(stated: Sequence[Stated]) -> Iterator[Problem]:
    first: dict[str, Stated] = {}
    for one in stated:
        if one.section.id in first:
            yield Problem(
                f"the workload id {shown(one.section.id)} is taken by {first[one.section.id].at}",
                one.where("id"),
                "Give each workload its own id.",
            )
        first.setdefault(one.section.id, one)


def _incomplete(one: Stated, kernel: Kernel) -> Iterator[Problem]:
    section = one.section
    dtype = canonical(section.dtype or kernel.default_dtype())
    if dtype not in DTYPES:
        yield Problem(f"unknown dtype `{dtype}`", one.where("dtype"), advice(dtype, DTYPES))
    if section.kind == "skipped" and not section.reason.strip():
        yield Problem(
            f"the workload {shown(section.id)} is skipped without a reason",
            one.where("kind"),
            'Add `reason = "..."`, or make it `tune` or `smoke`.',
        )
    if section.kind != "tune" and section.weight is not None:
        yield Problem(
            f"the workload {shown(section.id)} is {section.kind}, so its `weight` counts in no average",
            one.where("weight"),
            'Leave `weight` out, or set kind = "tune".',
        )
    for name in section.params:
        if name == "dtype" or name in section.shape:
            yield Problem(
                f"`{name}` is given twice in the workload {shown(section.id)}",
                one.where("params", name),
                "Keep it out of the params.",
            )


def _misfits(one: Stated, kernel: Kernel) -> Iterator[Problem]:
    parameters, section = kernel.parameters, one.section
    for name in section.shape:
        if not parameters.accepts(name):
            what = f"the kernel `{kernel.factory}` has no parameter `{name}`"
            yield Problem(what, one.where("shape", name), advice(name, parameters.names))
    for name in section.params:
        if not kernel.accepts(name):
            what = f"neither `{kernel.factory}` nor `{kernel.golden}` has a parameter `{name}`"
            yield Problem(what, one.where("params", name), advice(name, parameters.names))
    given = {*section.shape, *section.params, "dtype"}
    absent = [name for name in parameters.required if name not in given]
    if absent:
        yield Problem(
            f"the workload {shown(section.id)} gives no value for {', '.join(absent)} of `{kernel.factory}`",
            one.where("shape"),
            f"Add it to the shape or the params, e.g. shape = {{ {absent[0]} = 1024 }}.",
        )
