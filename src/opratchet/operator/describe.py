"""What was understood of an operator, and from where: the content of `opratchet check`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opratchet.ledger.words import WorkloadKind
from opratchet.operator.model import Operator, Workload

NO_TARGET = "better than the baseline, until a stop rule holds"


@dataclass(frozen=True)
class Row:
    """One line of the description: a field, its value in words, and where it came from."""

    field: str
    value: str
    source: str


def describe(operator: Operator) -> list[Row]:
    """The description as rows, in the order in which people ask."""
    return [
        *_names(operator),
        Row("target", _target(operator), operator.provenance.get("target", "")),
        *(_workload(operator, workload) for workload in operator.workloads),
        *_tolerances(operator),
        *_inputs(operator),
        *_knobs(operator),
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as lines of text with aligned columns; Chinese characters count as two columns."""
    fields = max((_width(row.field) for row in rows), default=0)
    values = max((_width(row.value) for row in rows), default=0)
    return [
        f"{_padded(row.field, fields)}  {_padded(row.value, values)}  {row.source}".rstrip()
        for row in rows
    ]


def as_dict(operator: Operator) -> dict[str, Any]:
    """The operator as plain JSON values, with the provenance of each field."""
    return {
        "name": operator.name,
        "project": operator.project,
        "root": str(operator.root),
        "source": str(operator.source),
        "kernel": operator.kernel,
        "golden": operator.golden,
        "backend": operator.backend,
        "flow": operator.flow,
        "target": operator.target.model_dump(mode="json") if operator.target else None,
        "workloads": [workload.record().model_dump(mode="json") for workload in operator.workloads],
        "tolerances": {dtype: vars(one) for dtype, one in operator.tolerances.items()},
        "inputs": {name: vars(spec) for name, spec in operator.inputs.items()},
        "knobs": {name: list(values) for name, values in operator.knobs.items()},
        "flops": operator.flops,
        "provenance": dict(operator.provenance),
    }


def _names(operator: Operator) -> Iterator[Row]:
    for field in ("name", "project", "source", "kernel", "golden", "backend", "flow", "flops"):
        value = str(getattr(operator, field))
        if field == "flops" and not value:
            value = "counted from the kernel"
        yield Row(field, value, operator.provenance.get(field, ""))


def _target(operator: Operator) -> str:
    target = operator.target
    if target is None:
        return NO_TARGET
    if target.metric == "speedup" and target.value == 1:
        return "faster than the baseline"
    words = {
        "latency_us": f"at most {target.value:g} us a call",
        "throughput": f"at least {target.value:g} calls a second",
        "speedup": f"at least {target.value:g}x of the baseline's speed",
    }
    of = f" ({target.workload})" if target.workload else ""
    return words[target.metric] + of


def _workload(operator: Operator, workload: Workload) -> Row:
    parts = [f"{name}={size}" for name, size in workload.shape.items()]
    parts += [f"{name}{list(shape)}" for name, shape in workload.tensors.items()]
    parts += [f"{name}={given!r}" for name, given in workload.params.items()]
    parts += [workload.dtype, workload.kind.value]
    if workload.kind is WorkloadKind.TUNE and any(one.weight != 1 for one in operator.tuned):
        parts.append(f"weight {workload.weight:g}")
    value = " ".join(parts) + (f": {workload.reason}" if workload.reason else "")
    field = f"workload {workload.id}"
    return Row(field, value, operator.provenance.get(f"workloads.{workload.id}", ""))


def _tolerances(operator: Operator) -> Iterator[Row]:
    used = {workload.dtype for workload in operator.workloads}
    for dtype, one in operator.tolerances.items():
        source = operator.provenance.get(f"tolerances.{dtype}", "")
        if dtype in used or source != "default":
            value = f"rtol {one.rtol:g}, atol {one.atol:g}"
            yield Row(f"tolerance {dtype}", value, source)


def _inputs(operator: Operator) -> Iterator[Row]:
    for name, spec in operator.inputs.items():
        letters = ("mean", "std") if spec.distribution == "normal" else ("low", "high")
        value = f"{spec.distribution}, {letters[0]} {spec.a:g}, {letters[1]} {spec.b:g}"
        yield Row(f"input {name}", value, operator.provenance.get(f"inputs.{name}", ""))


def _knobs(operator: Operator) -> Iterator[Row]:
    for name, values in operator.knobs.items():
        value = ", ".join(str(one) for one in values)
        yield Row(f"knob {name}", value, operator.provenance.get(f"knobs.{name}", ""))


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
