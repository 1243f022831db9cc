"""`SPEC.md` of a PyPTO operator: what it has to compute, on which shapes, how precisely, and how fast.

The part that is read is the front matter, YAML between two lines `---` at the top, as the upstream procedure writes it:

    ---
    schema_version: 1
    op_name: softmax
    supported_dtypes: [float32]
    p0_shapes: [{x: [512, 1024]}]
    l0_shapes: [{x: [3, 40]}]
    tolerance: {rtol: 1e-3, atol: 1e-3}
    default_params: {dim: -1}
    perf_target: 35 us
    ---

`l0_shapes` is an addition: small shapes that do not divide the tiles, for accuracy only. Other keys belong to upstream and
are left alone, unless one looks like a misspelt one of these. The body is searched for a performance budget only.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from opratchet.errors import BadInput
from opratchet.operator.budget import Budget, Kind, read_budget, stated_budgets
from opratchet.operator.files import read_text
from opratchet.operator.manifest import key_name
from opratchet.operator.markdown import Line, lines_of, statements
from opratchet.operator.model import Tolerance
from opratchet.operator.problems import Problem, advice, refuse, shown
from opratchet.operator.spec_cases import Case, resolve, with_ids
from opratchet.operator.tolerances import DEFAULTS, DTYPES, canonical
from opratchet.operator.toml_lines import KeyPath, line_of
from opratchet.operator.yaml_lines import read_yaml

__all__ = ["SPEC_NAME", "Budget", "Case", "Kind", "Spec", "read_spec"]

SPEC_NAME = "SPEC.md"
SCHEMA_VERSION = 1
MATRIX = ("mare_matrix", "mere_matrix", "rmse_matrix")
PERF_KEYS = ("perf_target", "performance_target")  # the second is seen in the wild
KEYS = (
    "op_name",
    "supported_dtypes",
    "p0_shapes",
    "l0_shapes",
    "tolerance",
    "default_params",
    *PERF_KEYS,
)
REQUIRED = ("op_name", "supported_dtypes", "p0_shapes", "tolerance")

_EXAMPLES = {
    "op_name": "op_name: softmax",
    "supported_dtypes": "supported_dtypes: [float32]",
    "p0_shapes": "p0_shapes: [{x: [512, 1024]}]",
    "tolerance": "tolerance: {rtol: 1e-3, atol: 1e-3}",
    "default_params": "default_params: {eps: 1e-5}",
}
_MISSPELT = (
    0.9  # likeness from which a key is taken for a slip; `p1_shapes` is 0.89 like `p0_shapes`
)

Value = TypeVar("Value")


@dataclass(frozen=True)
class Spec:
    """What a SPEC.md states.

    Attributes:
        path: The file, as the user named it.
        op_name: Name of the operator.
        dtypes: Element types, by the names used here.
        tolerance: How far a result may lie from the golden.
        default_params: Arguments of the golden that are no tensors.
        budget: Performance budget; None when none is stated.
        p0_shapes: The shapes that decide, as they stand there.
        l0_shapes: Shapes for accuracy only, as they stand there; None without.
        lines: Line of each key.
    """

    path: Path
    op_name: str
    dtypes: tuple[str, ...]
    tolerance: Tolerance
    default_params: Mapping[str, Any]
    budget: Budget | None
    p0_shapes: Any
    l0_shapes: Any
    lines: Mapping[KeyPath, int]

    def at(self, *key: str | int) -> str:
        """`SPEC.md:5`, for provenance."""
        return f"{self.path.name}:{line_of(self.lines, key)}"

    def where(self, *key: str | int) -> str:
        """`path/to/SPEC.md:5 (p0_shapes[0].x)`, for errors."""
        return _where(self.path, self.lines, key)

    def cases(self, parameters: Sequence[str]) -> tuple[Case, ...]:
        """All cases, P0 before L0.

        Args:
            parameters: Parameter names of the golden; those that are no default parameters are its tensors.

        Raises:
            BadInput: the shapes cannot be read, or do not say which tensor they belong to.
        """
        tensors = [name for name in parameters if name not in self.default_params]
        if not tensors:
            raise BadInput(
                f"the golden takes no tensor: its parameters are {', '.join(parameters) or 'none'}",
                where=self.where("default_params"),
                fix="Leave the tensors out of `default_params`.",
            )
        p0 = self._resolved("p0_shapes", self.p0_shapes, tensors)
        l0 = (
            self._resolved("l0_shapes", self.l0_shapes, tensors)
            if self.l0_shapes is not None
            else []
        )
        return with_ids([*((case, "P0") for case in p0), *((case, "L0") for case in l0)], tensors)

    def _resolved(
        self, key: str, raw: Any, tensors: Sequence[str]
    ) -> list[tuple[tuple[int, ...], ...]]:
        return resolve(raw, tensors, key, lambda *at: self.where(key, *at))


def _where(path: Path, lines: Mapping[KeyPath, int], key: KeyPath) -> str:
    place = f"{path}:{line_of(lines, key)}"
    return f"{place} ({key_name(key)})" if key else place


def read_spec(path: Path) -> Spec:
    """Read and check a SPEC.md, apart from what needs the golden to be checked.

    Raises:
        BadInput: the file cannot be read, has no front matter, or says something that has no meaning.
    """
    document = lines_of(read_text(path))
    first, end = _front_matter(path, document)
    data, lines = read_yaml("\n".join(document[first:end]), str(path), first + 1)
    front = _Front(path, data if isinstance(data, dict) else {}, lines, [])
    spec = front.spec(list(statements(document[end + 1 :], first=end + 2)))
    refuse(front.problems)
    return spec


def _front_matter(path: Path, lines: Sequence[str]) -> tuple[int, int]:
    """Index of the first line after the opening `---`, and of the closing one.

    Raises:
        BadInput: one of the two is not there.
    """
    filled = [at for at, line in enumerate(lines) if line.strip()]
    marks = [at for at in filled if lines[at].rstrip() == "---"]
    fix = f"Begin with front matter between two lines `---`: {'; '.join(list(_EXAMPLES.values())[:4])}."
    if not marks or marks[0] != filled[0]:
        raise BadInput("there is no front matter", where=f"{path}:1", fix=fix)
    if len(marks) < 2:
        raise BadInput("the front matter has no end", where=f"{path}:{marks[0] + 1}", fix=fix)
    return marks[0] + 1, marks[1]


@dataclass(frozen=True)
class _Front:
    """Front matter while it is checked: problems are collected, so that one run names all of them."""

    path: Path
    data: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    problems: list[Problem]

    def spec(self, body: Sequence[Line]) -> Spec:
        self.problems.extend(self._slips())
        self._version()
        none: tuple[str, ...] = ()
        dtypes = self._read("supported_dtypes", self._dtypes, none)
        return Spec(
            path=self.path,
            op_name=self._read("op_name", self._name, ""),
            dtypes=dtypes,
            tolerance=self._read(
                "tolerance", lambda raw: self._tolerance(raw, dtypes), Tolerance(0, 0)
            ),
            default_params=self._read("default_params", self._params, {}),
            budget=read_budget([*self._budgets(), *stated_budgets(body)]),
            p0_shapes=self.data.get("p0_shapes"),
            l0_shapes=self.data.get("l0_shapes"),
            lines=self.lines,
        )

    def _problem(self, what: str, fix: str, *key: str | int) -> None:
        self.problems.append(Problem(what, _where(self.path, self.lines, key), fix))

    def _slips(self) -> Iterator[Problem]:
        """Keys that are missing, and keys that are near one that is read."""
        near = {
            key: match[0]
            for key in self.data
            if key not in KEYS and (match := difflib.get_close_matches(key, KEYS, 1, _MISSPELT))
        }
        for key, meant in near.items():
            where = _where(self.path, self.lines, (key,))
            yield Problem(f"unknown key `{key}`", where, f"Did you mean `{meant}`?")
        for key in REQUIRED:
            if self.data.get(key) is None and key not in near.values():
                yield Problem(
                    f"`{key}` is missing", _where(self.path, self.lines, (key,)), _write(key)
                )

    def _version(self) -> None:
        version = self.data.get("schema_version")
        if version not in (None, SCHEMA_VERSION, str(SCHEMA_VERSION)):
            what = f"the schema version is {shown(version)}, and {SCHEMA_VERSION} is known here"
            self._problem(what, f"Write `schema_version: {SCHEMA_VERSION}`.", "schema_version")

    def _read(self, key: str, reader: Callable[[Any], Value | None], fallback: Value) -> Value:
        """The value of a key; the fallback when it is not there, or when the reader found a problem."""
        raw = self.data.get(key)
        found = None if raw is None else reader(raw)
        return fallback if found is None else found

    def _name(self, raw: Any) -> str | None:
        if isinstance(raw, str) and re.fullmatch(r"\w[\w.-]*", raw):
            return raw
        self._problem(
            f"`op_name` is {shown(raw)}, which cannot name a file", _write("op_name"), "op_name"
        )
        return None

    def _dtypes(self, raw: Any) -> tuple[str, ...] | None:
        if not isinstance(raw, list) or not raw:
            what = f"`supported_dtypes` is {shown(raw)}, which is no list of dtypes"
            self._problem(what, _write("supported_dtypes"), "supported_dtypes")
            return None
        names = [canonical(str(name)) for name in raw]
        for at, name in enumerate(names):
            if name not in DTYPES:
                self._problem(
                    f"unknown dtype `{name}`", advice(name, DTYPES), "supported_dtypes", at
                )
        return tuple(dict.fromkeys(names))

    def _tolerance(self, raw: Any, dtypes: Sequence[str]) -> Tolerance | None:
        standard = DEFAULTS.get(next(iter(dtypes), ""), DEFAULTS["float32"])
        fix = f"Write `tolerance: {{rtol: {standard.rtol:g}, atol: {standard.atol:g}}}`, with your own figures."
        figures = raw if isinstance(raw, dict) else {}
        matrix = [name for name in MATRIX if name in figures]
        if matrix:
            what = (
                f"the tolerance is stated by {', '.join(matrix)}, errors over a whole tensor, which do not say"
                " how far a single element may be off"
            )
            self._problem(what, fix, "tolerance")
            return None
        if not all(_is_allowed(figures.get(name)) for name in ("rtol", "atol")):
            what = f"`tolerance` is {shown(raw)}; it takes `rtol` and `atol`, both 0 or above"
            self._problem(what, fix, "tolerance")
            return None
        return Tolerance(rtol=float(figures["rtol"]), atol=float(figures["atol"]))

    def _params(self, raw: Any) -> Mapping[str, Any] | None:
        if isinstance(raw, dict):
            return raw
        what = f"`default_params` is {shown(raw)}, which is no table"
        self._problem(what, _write("default_params"), "default_params")
        return None

    def _budgets(self) -> Iterator[tuple[str, int]]:
        for key in PERF_KEYS:
            if self.data.get(key) is not None:
                yield str(self.data[key]), line_of(self.lines, (key,))


def _is_allowed(figure: Any) -> bool:
    return type(figure) in (int, float) and math.isfinite(figure) and figure >= 0


def _write(key: str) -> str:
    return f"Write it like `{_EXAMPLES[key]}`."
