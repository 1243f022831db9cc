"""Understanding an operator in PyPTO's layout: `custom/<op>/` with SPEC.md, `<op>_golden.py` and `<op>_impl.py`.

The folder is the operator. SPEC.md says shapes, dtype, tolerance and budget; the golden stands in a file of its own, so no
candidate can touch it; the implementation holds one jit entry and the host function `<op>_wrapper`, which takes what the golden
takes and gives what it gives. Nothing that is found there is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.ledger.words import TargetRecord, WorkloadKind
from opratchet.operator.model import Operator, Workload
from opratchet.operator.python_source import PythonSource, read_python, signature
from opratchet.operator.spec import SPEC_NAME, Case, Spec, read_spec

BACKEND, FLOW = "pypto-sim", "pypto"
IMPLEMENTATION, GOLDEN, WRAPPER = "_impl", "_golden", "_wrapper"
OF_DEVICE = "device"


def pypto_folder(path: Path) -> Path | None:
    """The folder of an operator in PyPTO's layout that a path speaks of: itself, or its implementation; else None."""
    folder = path.parent if path.name.endswith(f"{IMPLEMENTATION}.py") else path
    try:
        if not folder.is_dir() or not (folder / SPEC_NAME).is_file():
            return None
        return folder if any(folder.glob(f"*{IMPLEMENTATION}.py")) else None
    except (OSError, ValueError):  # a path that cannot exist is told where paths are read
        return None


@dataclass(frozen=True)
class Chosen:
    """What the command line says; None where it says nothing.

    Attributes:
        backend: The backend.
        flow: The flow.
        options: Targets by metric.
    """

    backend: str | None
    flow: str | None
    options: Mapping[str, float | None]


@dataclass(frozen=True)
class Files:
    """What the folder holds, read: the three files, the kernel, and the cases of SPEC.md."""

    spec: Spec
    source: PythonSource
    golden: PythonSource
    kernel: str
    cases: tuple[Case, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input tensors."""
        return tuple(self.cases[0].tensors)


def load_pypto(folder: Path, chosen: Chosen) -> Operator:
    """Read an operator.

    Args:
        folder: Its folder.
        chosen: What the command line says.

    Raises:
        BadInput: something is missing, misspelt or contradictory; the message names the place and the remedy.
    """
    spec = read_spec(folder / SPEC_NAME)
    name = spec.op_name
    source = read_python(_file(folder, f"{name}{IMPLEMENTATION}.py", spec))
    golden = read_python(_file(folder, f"{name}{GOLDEN}.py", spec))
    kernel, entry = _kernel(source), _defined(source, f"{name}{WRAPPER}")
    parameters = signature(golden.functions[_defined(golden, f"{name}{GOLDEN}")]).names
    files = Files(spec, source, golden, kernel, spec.cases(parameters))
    _require_wrapper(source, entry, files.inputs)
    return _operator(folder.resolve(), files, chosen)


def _operator(root: Path, files: Files, chosen: Chosen) -> Operator:
    spec, name = files.spec, files.spec.op_name
    target = _target(spec, chosen)
    return Operator(
        name=name,
        project=root.parent.name,
        root=root,
        source=root / files.source.path.name,
        text=files.source.text,
        kernel=files.kernel,
        golden=f"{name}{GOLDEN}",
        workloads=tuple(_workload(spec, case) for case in files.cases),
        tolerances=dict.fromkeys(spec.dtypes, spec.tolerance),
        inputs={},
        backend=chosen.backend or BACKEND,
        flow=chosen.flow or FLOW,
        target=target,
        golden_file=root / files.golden.path.name,
        golden_text=files.golden.text,
        entry=f"{name}{WRAPPER}",
        outputs=_outputs(files.source, files.kernel, len(files.inputs)),
        remarks=tuple(filter(None, [_not_compared(spec, target)])),
        provenance=dict(_provenance(files, chosen, target)),
    )


def _file(folder: Path, name: str, spec: Spec) -> Path:
    path = folder / name
    if not path.is_file():
        raise BadInput(
            f"the folder holds no `{name}`, and {SPEC_NAME} names the operator `{spec.op_name}`",
            where=str(folder),
            fix=f"Name the file so, or mend `op_name` in {spec.at('op_name')}.",
        )
    return path


def _kernel(source: PythonSource) -> str:
    if len(source.kernels) == 1:
        return source.kernels[0]
    found = ", ".join(source.kernels) or "none"
    raise BadInput(
        f"there has to be exactly one function decorated with `@pypto.frontend.jit`; there is {found}",
        where=str(source.path),
        fix="Keep one jit entry; helper functions that it calls need no decorator.",
    )


def _defined(source: PythonSource, name: str) -> str:
    if name in source.functions:
        return name
    raise BadInput(
        f"no function `{name}` is defined",
        where=str(source.path),
        fix=f"Define `{name}(...)` there.",
    )


def _require_wrapper(source: PythonSource, entry: str, tensors: tuple[str, ...]) -> None:
    """The host function takes the golden's tensors first, in their order.

    Raises:
        BadInput: it does not.
    """
    names = signature(source.functions[entry]).names
    if names[: len(tensors)] != tensors:
        raise BadInput(
            f"`{entry}` takes ({', '.join(names)}), and the golden's tensors are ({', '.join(tensors)})",
            where=source.where(source.functions[entry].lineno),
            fix="Give both the same tensors, under the same names and in the same order.",
        )


def _outputs(source: PythonSource, kernel: str, inputs: int) -> tuple[str, ...]:
    """Names of the outputs: the kernel's tensors behind its inputs.

    Raises:
        BadInput: there is none.
    """
    function = source.functions[kernel]
    notes = [(a.arg, ast.unparse(a.annotation)) for a in function.args.args if a.annotation]
    outputs = [name for name, note in notes if "Tensor" in note][inputs:]
    if outputs:
        return tuple(outputs)
    raise BadInput(
        f"`{kernel}` has no output: the tensors among its parameters are {len(notes)}, its inputs {inputs}",
        where=source.where(function.lineno),
        fix="Give it each output as a tensor behind the inputs, as PyPTO 0.2 wants it.",
    )


def _workload(spec: Spec, case: Case) -> Workload:
    return Workload(
        id=case.id,
        shape={},
        dtype=spec.dtypes[0],
        params=spec.default_params,
        kind=WorkloadKind.TUNE if case.level == "P0" else WorkloadKind.SMOKE,
        tensors=case.tensors,
    )


def _target(spec: Spec, chosen: Chosen) -> TargetRecord | None:
    """What the command line says; else a budget that may be compared with what the backend gives."""
    for metric, value in chosen.options.items():
        if value is not None:
            return TargetRecord(metric=metric, value=value, source="command line")
    budget = spec.budget
    if budget is None or budget.value is None:
        return None
    of_device = budget.metric == "latency_us" and budget.kind == OF_DEVICE
    if of_device and (chosen.backend or BACKEND) == BACKEND:
        return None
    source = f"{SPEC_NAME}:{budget.line}"
    return TargetRecord(metric=budget.metric, value=budget.value, source=source)


def _provenance(
    files: Files, chosen: Chosen, target: TargetRecord | None
) -> Iterator[tuple[str, str]]:
    """Where each field came from."""
    spec, source = files.spec, files.source
    yield "name", spec.at("op_name")
    yield "project", "convention: name of the folder above"
    yield "source", f"convention: {source.path.name}"
    yield "kernel", source.at(source.functions[files.kernel].lineno)
    yield "golden", f"convention: {spec.op_name}{GOLDEN}.py"
    yield "backend", "command line" if chosen.backend else "default for this layout"
    yield "flow", "command line" if chosen.flow else "default for this layout"
    yield "flops", "default"
    for case in files.cases:
        yield f"workloads.{case.id}", spec.at("p0_shapes" if case.level == "P0" else "l0_shapes")
    for dtype in spec.dtypes:
        yield f"tolerances.{dtype}", spec.at("tolerance")
    yield "target", target.source if target else _not_compared(spec, target) or "default"


def _not_compared(spec: Spec, target: TargetRecord | None) -> str:
    """What is to be said of a budget that is no target here; empty where there is none."""
    budget = spec.budget
    if budget is None or target is not None:
        return ""
    if budget.value is None:
        return f"{SPEC_NAME}:{budget.line}: `{budget.text}` is no figure, and no target"
    return f"{SPEC_NAME}:{budget.line}: `{budget.text}` speaks of a device, and is not compared with simulated figures"
