"""`opratchet.toml`: the manifest that may stand beside an operator's source.

It says what the conventions cannot: workloads, inputs, tolerances, a target, legal values of knobs. Every table and
every key is optional. The schema below is the whole format; whatever is not in it is an error, because a misspelt
key that is passed over is worse than none.

Reading has three steps, and the problems of each are told together, each with its line: TOML syntax, the schema,
and what the schema cannot say (`_contradictions`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from opratchet.errors import BadInput
from opratchet.operator.evaluate import LARGEST
from opratchet.operator.files import read_text
from opratchet.operator.problems import Problem, advice, refuse, shown
from opratchet.operator.tolerances import DTYPES
from opratchet.operator.toml_lines import KeyPath, key_lines, line_of, parse_toml

MANIFEST_NAME = "opratchet.toml"

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """Base of the tables: strict (no `"4"` or `true` for 4), frozen, no unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OperatorSection(Section):
    """`[operator]`: what stands where, and what it is tuned with.

    Attributes:
        name: Operator name; it names the files that are written.
        source: Source file, relative to the manifest.
        kernel: Name of the kernel factory.
        golden: Name of the reference function.
        backend: Backend name.
        flow: Flow name.
        target: Compile target of the kernel, as in `@tilelang.jit(target=...)`, where the source does not tell.
        flops: Formula over shape names for the operations of one call, e.g. `2 * M * N * K`.
    """

    name: Annotated[str, Field(pattern=r"^[^\s./\\\x00-\x1f-][^/\\\x00-\x1f]*$")] | None = None
    source: Text | None = None
    kernel: Text | None = None
    golden: Text | None = None
    backend: Text | None = None
    flow: Text | None = None
    target: Text | None = None
    flops: Text | None = None


class InputSection(Section):
    """`[inputs.<tensor>]`: how one input is filled."""

    distribution: Literal["normal", "uniform"] = "normal"
    mean: Finite | None = None
    std: Positive | None = None
    low: Finite | None = None
    high: Finite | None = None


class ToleranceSection(Section):
    """`[tolerances.<dtype>]`: what is not given keeps its default."""

    rtol: NotNegative | None = None
    atol: NotNegative | None = None


class WorkloadSection(Section):
    """`[[workloads]]`: one shape, dtype and set of parameters.

    Attributes:
        id: Name, unique within the operator.
        shape: Shape parameters by name.
        dtype: Element type; without it the default of the kernel factory.
        params: Further arguments of the kernel factory and the golden.
        kind: `tune` decides, `smoke` is checked for accuracy only, `skipped` needs a reason.
        reason: Why it is skipped.
        weight: How much a tune workload counts in the average over all; without it 1.
    """

    id: Text
    shape: dict[str, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    dtype: Text | None = None
    params: dict[str, JsonValue] = Field(default_factory=dict)
    kind: Literal["tune", "smoke", "skipped"] = "tune"
    reason: str = ""
    weight: Positive | None = None


class TargetSection(Section):
    """`[target]`: exactly one of the three figures.

    Attributes:
        latency_us: At most so many microseconds a call.
        throughput: At least so many calls a second.
        speedup: At least this factor over the baseline; 1 means "better than the baseline".
        workload: The workload it speaks of; without it, each tune workload.
    """

    latency_us: Positive | None = None
    throughput: Positive | None = None
    speedup: Positive | None = None
    workload: Text | None = None

    def figures(self) -> dict[str, float]:
        """The figures that are given, by metric."""
        all_figures = {
            "latency_us": self.latency_us,
            "throughput": self.throughput,
            "speedup": self.speedup,
        }
        return {metric: figure for metric, figure in all_figures.items() if figure is not None}


class Manifest(Section):
    """The whole file."""

    operator: OperatorSection = OperatorSection()
    inputs: dict[str, InputSection] = Field(default_factory=dict)
    tolerances: dict[str, ToleranceSection] = Field(default_factory=dict)
    workloads: Annotated[list[WorkloadSection], Field(min_length=1)] | None = None
    knobs: dict[str, Annotated[list[JsonValue], Field(min_length=1)]] = Field(default_factory=dict)
    target: TargetSection | None = None


@dataclass(frozen=True)
class ManifestFile:
    """A manifest with its place; without a file, an empty one.

    Attributes:
        path: The file, as the user named it.
        data: What it says.
        lines: Line of each key.
    """

    path: Path
    data: Manifest
    lines: Mapping[KeyPath, int]

    def at(self, *key: str | int) -> str:
        """`opratchet.toml:12`, for provenance."""
        return f"{self.path.name}:{line_of(self.lines, key)}"

    def where(self, *key: str | int) -> str:
        """`path/to/opratchet.toml:12 (operator.kernel)`, for errors."""
        return f"{self.path}:{line_of(self.lines, key)} ({key_name(key)})"


def key_name(path: KeyPath) -> str:
    """A key path as a person would write it: `workloads[2].shape.M`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def no_manifest(folder: Path) -> ManifestFile:
    """What stands for the manifest of a folder that has none."""
    return ManifestFile(folder / MANIFEST_NAME, Manifest(), {})


def read_manifest(path: Path) -> ManifestFile:
    """Read and check a manifest, apart from what needs the source to be checked.

    Raises:
        BadInput: the file cannot be read, is not TOML, or says something that has no meaning.
    """
    text = read_text(path)
    data = _parse(path, text)
    lines = key_lines(text)
    refuse(list(_long_numbers(path, data, lines)))
    empty = ManifestFile(path, Manifest(), lines)
    manifest = ManifestFile(path, validated(Manifest, data, empty.where), lines)
    refuse(list(_contradictions(manifest)))
    return manifest


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        at_end = text.rstrip().count("\n") + 1 if "end of document" in str(error) else 1
        raise BadInput(
            f"not valid TOML: {error}",
            where=f"{path}:{line.group(1) if line else at_end}",
            fix="Keys are written `key = value`, texts in quotes, tables as `[operator]` or `[[workloads]]`.",
        ) from None


def _long_numbers(path: Path, data: Any, lines: Mapping[KeyPath, int]) -> Iterator[Problem]:
    """TOML promises 64 bits; a longer number would be read, but could not be written to the ledger."""
    pending: list[tuple[KeyPath, Any]] = [((), data)]
    while pending:
        key, item = pending.pop()
        if isinstance(item, dict):
            pending += [((*key, name), inner) for name, inner in item.items()]
        elif isinstance(item, list):
            pending += [((*key, index), inner) for index, inner in enumerate(item)]
        elif isinstance(item, int) and abs(item) > LARGEST:
            where = f"{path}:{line_of(lines, key)} ({key_name(key)})"
            yield Problem(
                "the number does not fit into 64 bits", where, "Write a smaller whole number."
            )


# --- the schema's errors in words ---------------------------------------------------------------------------

_FIXES = {
    "int_type": "Write a whole number without quotes, e.g. 1024.",
    "float_type": "Write a number without quotes, e.g. 1e-3.",
    "string_type": 'Write a text in quotes, e.g. "float32".',
    "greater_than": "Write a number above zero.",
    "greater_than_equal": "Write zero or a number above it.",
    "finite_number": "Write a finite number, e.g. 1e-3.",
    "list_type": "Write a list, e.g. [1, 2, 4].",
    "string_too_short": "Write at least one character.",
    "too_short": "Write at least one element, or leave the key out.",
    "string_pattern_mismatch": "Write a name that can be a file name, e.g. rmsnorm.",
    "invalid-json-value": "Write a text, a number, true, false or a list of them.",
}
_WORDS = {
    "dict_type": "should be a table",
    "model_type": "should be a table",
    "string_pattern_mismatch": "should be a name that can be a file name",
}
_HEADERS = {
    "operator": "[operator]",
    "inputs": "[inputs.X]",
    "tolerances": "[tolerances.float32]",
    "workloads": "[[workloads]]",
    "knobs": "[knobs]",
    "target": "[target]",
}
_TABLES: Mapping[str, type[Section]] = {
    "operator": OperatorSection,
    "inputs": InputSection,
    "tolerances": ToleranceSection,
    "workloads": WorkloadSection,
    "target": TargetSection,
}

SectionType = TypeVar("SectionType", bound=Section)


def validated(model: type[SectionType], data: Any, where: Callable[..., str]) -> SectionType:
    """The data as a table of the schema.

    Args:
        model: The table.
        data: Plain values, as TOML gives them.
        where: Place of a key path, for errors.

    Raises:
        BadInput: it is not of that form; each error is told with its place.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        refuse([_in_words(model, details, where) for details in error.errors(include_url=False)])
        raise AssertionError("a validation error has at least one problem") from None


def _in_words(model: type[Section], error: ErrorDetails, where: Callable[..., str]) -> Problem:
    path = error["loc"]
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    kind = error["type"]
    if kind == "extra_forbidden":
        return Problem(f"unknown key `{key}`", where(*path), advice(key, _known(model, path)))
    if kind == "missing":
        return Problem(f"`{key}` is missing", where(*path), f"Add `{key} = ...`.")
    said = _WORDS.get(kind) or error["msg"].replace("Input s", "s")
    what = f"`{key}` {said}, and not {shown(error['input'])}"
    return Problem(what, where(*path), _fix(path, error))


def _fix(path: tuple[int | str, ...], error: ErrorDetails) -> str:
    expected = (error.get("ctx") or {}).get("expected")
    if expected:
        return f"Write one of {expected}."
    if path == ("operator", "target") and isinstance(error["input"], (int, float)):
        return "This is the compile target. A performance target is a table: [target] latency_us = 240."
    if path[-1] in ("shape", "params"):
        return "Write a table, e.g. { M = 512, N = 1024 }."
    one_table = (
        path[0] == "workloads" and error["type"] == "list_type"
    )  # [workloads], not [[workloads]]
    if one_table or error["type"] in ("dict_type", "model_type"):
        return f"Write it as a table of its own, e.g. {_HEADERS[str(path[0])]}."
    return _FIXES.get(error["type"], "Change the value.")


def _known(model: type[Section], path: tuple[int | str, ...]) -> list[str]:
    """Keys that are known in the table in which the unknown one stands."""
    table = model if len(path) == 1 else _TABLES.get(str(path[0]), model)
    return list(table.model_fields)


# --- what the schema cannot say -----------------------------------------------------------------------------


def _contradictions(manifest: ManifestFile) -> Iterator[Problem]:
    yield from _of_inputs(manifest)
    yield from _of_tolerances(manifest)
    yield from _of_target(manifest)


def _of_inputs(manifest: ManifestFile) -> Iterator[Problem]:
    for name, section in manifest.data.inputs.items():
        own, other = ("mean", "std"), ("low", "high")
        if section.distribution == "uniform":
            own, other = other, own
        for key in other:
            if getattr(section, key) is not None:
                yield Problem(
                    f"`{key}` has no meaning for the distribution `{section.distribution}`",
                    manifest.where("inputs", name, key),
                    f"Write `{own[0]}` and `{own[1]}`, or change the distribution.",
                )
        low = 0.0 if section.low is None else section.low
        high = 1.0 if section.high is None else section.high
        if section.distribution == "uniform" and not low < high:
            yield Problem(
                f"`low` ({low}) has to be below `high` ({high})",
                manifest.where("inputs", name, "low"),
                "A constant input would let a wrong kernel pass.",
            )


def _of_tolerances(manifest: ManifestFile) -> Iterator[Problem]:
    for dtype in manifest.data.tolerances:
        if dtype not in DTYPES:
            where = manifest.where("tolerances", dtype)
            yield Problem(f"unknown dtype `{dtype}`", where, advice(dtype, DTYPES))


def _of_target(manifest: ManifestFile) -> Iterator[Problem]:
    target = manifest.data.target
    if target is not None and len(target.figures()) != 1:
        given = ", ".join(target.figures()) or "none"
        yield Problem(
            f"a target is exactly one figure; given: {given}",
            manifest.where("target"),
            "Keep one of latency_us, throughput, speedup.",
        )
