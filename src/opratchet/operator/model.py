"""What is tuned: the operator, its workloads, its tolerances and its target. Plain values, no behaviour."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opratchet.ledger.words import TargetRecord, WorkloadKind, WorkloadRecord


@dataclass(frozen=True)
class Workload:
    """One shape, dtype and set of parameters.

    Attributes:
        id: Name, unique within the operator.
        shape: Shape parameters by name, e.g. `{"M": 512, "N": 1024}`; passed to the kernel factory.
        dtype: Element type, e.g. `float32`.
        params: Further keyword arguments of the factory and the golden, e.g. `{"eps": 1e-5}`.
        kind: `tune`, `smoke` or `skipped`.
        reason: Why it is skipped; empty otherwise.
        weight: How much it counts in averages over the tune workloads; only the proportions matter.
        tensors: Shape of each input by name, where the workload says these instead of shape parameters.
    """

    id: str
    shape: Mapping[str, int]
    dtype: str = "float32"
    params: Mapping[str, Any] = field(default_factory=dict)
    kind: WorkloadKind = WorkloadKind.TUNE
    reason: str = ""
    weight: float = 1.0
    tensors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def record(self) -> WorkloadRecord:
        """The workload as it is written to the ledger."""
        return WorkloadRecord(
            id=self.id,
            shape=dict(self.shape),
            dtype=self.dtype,
            params=dict(self.params),
            kind=self.kind,
            reason=self.reason,
            weight=self.weight,
            tensors={name: list(shape) for name, shape in self.tensors.items()},
        )


@dataclass(frozen=True)
class Tolerance:
    """An element passes when `|actual - expected| <= atol + rtol * |expected|`."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class InputSpec:
    """How one input tensor is filled: `normal` (a = mean, b = standard deviation) or `uniform` (a = low, b = high)."""

    distribution: str = "normal"
    a: float = 0.0
    b: float = 1.0


@dataclass(frozen=True)
class Operator:
    """An operator as understood from its files.

    Attributes:
        name: Operator name, e.g. `softmax`.
        project: Name of the folder above, as in `examples/{project}/{op}`.
        root: Folder of the operator.
        source: The source file.
        text: Text of the source file as read (decoded, line ends kept).
        golden_file: The file with the golden, where that is another one.
        golden_text: Text of that file; empty where the golden is in the source.
        outputs: Names of the outputs, where the kernel's signature has them; else they are told by position.
        remarks: What a reader of a run's files has to know of it, e.g. a budget that is not compared.
        entry: Name of the host function that is called with the inputs and gives the outputs, for kernels that have one.
        kernel: Name of the kernel factory (the `@tilelang.jit` function).
        golden: Name of the reference function in the source.
        workloads: All workloads, in order.
        tolerances: Tolerance by dtype.
        inputs: How inputs are filled, by tensor name (as in the kernel's signature).
        backend: Backend name.
        flow: Flow name.
        target: Performance target, or None for "better than the baseline, until a stop rule holds".
        knobs: Extra knobs or legal values by knob name.
        flops: Expression over shape names for the operations a call must do; empty: counted from the kernel.
        provenance: For each field, where its value came from.
    """

    name: str
    project: str
    root: Path
    source: Path
    text: str
    kernel: str
    golden: str
    workloads: tuple[Workload, ...]
    tolerances: Mapping[str, Tolerance]
    inputs: Mapping[str, InputSpec]
    backend: str
    flow: str
    target: TargetRecord | None = None
    knobs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    flops: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    golden_file: Path | None = None
    golden_text: str = ""
    entry: str = ""
    outputs: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameter names of the kernel factory."""
        return parameter_names(self.text, self.kernel)

    @property
    def golden_parameters(self) -> tuple[str, ...]:
        """Parameter names of the golden."""
        return parameter_names(self.golden_text or self.text, self.golden)

    @property
    def tuned(self) -> tuple[Workload, ...]:
        """The workloads that decide."""
        return tuple(w for w in self.workloads if w.kind is WorkloadKind.TUNE)

    @property
    def checked(self) -> tuple[Workload, ...]:
        """The workloads whose accuracy is checked: tune and smoke."""
        return tuple(w for w in self.workloads if w.kind is not WorkloadKind.SKIPPED)


def parameter_names(text: str, function: str) -> tuple[str, ...]:
    """Names of a function's parameters, in order; empty when the source has no such function."""
    for node in ast.walk(ast.parse(text.removeprefix("\ufeff"))):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            return tuple(argument.arg for argument in arguments)
    return ()
