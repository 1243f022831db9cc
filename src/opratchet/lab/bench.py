"""The lab: where candidates are built, run and timed, each in processes of its own.

`Lab.build` turns a source into artefacts for every workload. `Lab.open` starts a fresh run worker and gives a `Rig`: the
loaded kernels with their tensors, on which a single checked call or a timed batch can be asked for. Builds may run
side by side; timings never overlap with anything on the device, by the device lock.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np

from opratchet.backend.base import Artifact, Backend, candidate_file
from opratchet.backend.registry import get_backend
from opratchet.errors import BadInput
from opratchet.lab.limits import Limits
from opratchet.lab.reference import Reference, split_tensors
from opratchet.lab.supervisor import Nursery, RunWorker, WorkerFailed
from opratchet.lab.tensors import Array, SharedTensors, fill, numpy_dtype
from opratchet.ledger.words import Outcome
from opratchet.operator.model import Operator, Workload


@dataclass(frozen=True)
class Build:
    """A candidate that built: its artefact for each workload.

    Attributes:
        artifacts: Artefact by workload id.
        seconds: Wall time of the build.
    """

    artifacts: Mapping[str, Artifact]
    seconds: float

    @property
    def code(self) -> str:
        """Identity of all generated code together; equal means that two sources build to the same thing."""
        return " ".join(artifact.code_sha256 for artifact in self.artifacts.values())


@dataclass(frozen=True)
class CheckedCall:
    """One call on fresh inputs, as the supervisor saw it.

    Attributes:
        inputs: Input name to (own copy, what the memory holds after the call).
        outputs: Output name to (golden, what the kernel wrote).
    """

    inputs: Mapping[str, tuple[Array, Array]]
    outputs: Mapping[str, tuple[Array, Array]]


@dataclass
class Bound:
    """One workload loaded into a run worker."""

    workload: Workload
    tensors: SharedTensors
    inputs: int
    calls: int = 0
    own: list[Array] = field(default_factory=list)
    expected: list[Array] = field(default_factory=list)

    def poison(self) -> None:
        """Poison the outputs, so that what stands there afterwards was written by the kernel."""
        for index in range(self.inputs, len(self.tensors.slots)):
            self.tensors.poison(index)


class Lab:
    """Everything that runs candidates, for one operator and one backend.

    Args:
        operator: The operator; its original source is the only one the reference worker ever runs.
        limits: Time and memory limits.

    Raises:
        EnvironmentMissing: the backend cannot run here.
    """

    def __init__(self, operator: Operator, limits: Limits | None = None) -> None:
        self.operator = operator
        self.limits = limits or Limits()
        self.backend: Backend = get_backend(operator.backend)
        self.folder = Path(tempfile.mkdtemp(prefix="opratchet-"))
        self.cpu = max(os.sched_getaffinity(0))
        modules = [*self.backend.preload, type(self.backend).__module__, "opratchet.lab.worker"]
        self._nursery = Nursery(modules, self.folder / "nursery.log")
        self._reference: Reference | None = None
        self._generator = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def build(self, text: str, workloads: Sequence[Workload]) -> Build:
        """Build a candidate for these workloads in a worker of its own.

        Raises:
            WorkerFailed: it does not build, or took too much time or memory.
        """
        self._nursery.wait_ready()
        start = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="build-", dir=self.folder))
        source = candidate_file(folder, self.operator.name)
        source.write_text(text, encoding="utf-8", newline="")
        worker = self._nursery.fork("build", folder, self._build_message(source, folder, workloads))
        deadline = start + self.limits.build_seconds
        artifacts: dict[str, Artifact] = {}
        try:
            for workload in workloads:
                reply = worker.receive(deadline - time.monotonic())
                if "error" in reply:
                    outcome = Outcome(reply["kind"])
                    reason = f"{workload.id}: {reply['error']}"
                    raise WorkerFailed(outcome, reason, worker.output(4 << 10))
                artifacts[workload.id] = Artifact.from_json(reply["artifact"])
        except WorkerFailed:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            worker.close()
        return Build(artifacts, time.monotonic() - start)

    def _build_message(
        self, source: Path, folder: Path, workloads: Sequence[Workload]
    ) -> dict[str, object]:
        return {
            "backend": self.backend.name,
            "source": str(source),
            "kernel": self.operator.kernel,
            "folder": str(folder),
            "memory": self.limits.build_bytes,
            "workloads": {w.id: factory_arguments(self.operator, w) for w in workloads},
        }

    @property
    def reference(self) -> Reference:
        """The reference worker; started on first use, started again if the golden ended it."""
        if self._reference is None or not self._reference.alive:
            self._reference = Reference(self._nursery, self.operator, self.limits, self.folder)
        return self._reference

    def open(self, build: Build) -> Rig:
        """Start a fresh run worker for a build."""
        return Rig(self, build)

    def memory(self, workload: Workload, artifact: Artifact) -> Bound:
        """Memory for one workload, with inputs filled.

        Raises:
            BadInput: the workload is too large.
        """
        inputs, _outputs = split_tensors(self.operator, artifact.tensors)
        needed = sum(spec.size * numpy_dtype(spec.dtype).itemsize for spec in artifact.tensors)
        if needed > self.limits.tensor_bytes:
            raise BadInput(
                f"workload {workload.id} needs {needed / 2**30:.1f} GiB of tensors; "
                f"the limit is {self.limits.tensor_bytes / 2**30:.1f} GiB",
                where=str(self.operator.source),
                fix="Give the workload a smaller shape, or mark it as skipped with a reason.",
            )
        tensors = SharedTensors(artifact.tensors)
        bound = Bound(workload, tensors, len(inputs))
        self.fill(bound)
        return bound

    def fill(self, bound: Bound) -> None:
        """Fresh inputs."""
        bound.own = fill(bound.tensors, bound.inputs, self.operator.inputs, self._generator)

    def expect(self, bound: Bound) -> None:
        """The golden of the inputs that lie there."""
        bound.expected = self.reference.expected(bound.workload, bound.tensors, bound.inputs)

    def close(self) -> None:
        """End every worker and remove the lab's folder."""
        self._nursery.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Rig:
    """One run worker with the kernels of one build loaded. A context manager: leaving it ends the worker."""

    def __init__(self, lab: Lab, build: Build) -> None:
        self._lab = lab
        self._build = build
        self._bound: dict[str, Bound] = {}
        self._owned: list[Bound] = []
        self.worker = RunWorker(lab.backend.runtime, lab.cpu, lab.limits.run_bytes, lab.folder)

    def has(self, workload: Workload) -> bool:
        """Whether a workload is loaded."""
        return workload.id in self._bound

    def load(self, workload: Workload, memory: Bound | None = None) -> None:
        """Load one workload's artefact.

        Args:
            workload: The workload.
            memory: Memory to run on, which stays its owner's; else it gets its own, with inputs filled. Two versions that
                are timed against each other read and write the same physical pages: where these happen to lie moves
                memory-bound kernels by several per cent.

        Raises:
            WorkerFailed: the artefact cannot be loaded.
        """
        artifact = self._build.artifacts[workload.id]
        bound = memory or self._lab.memory(workload, artifact)
        if memory is None:
            self._owned.append(bound)
        self._bound[workload.id] = bound
        message = {
            "op": "load",
            "workload": workload.id,
            "artifact": artifact.to_json(),
            "bytes": bound.tensors.size,
            "offsets": [slot.offset for slot in bound.tensors.slots],
        }
        self.worker.ask(message, self._lab.limits.call_seconds, [bound.tensors.fd])

    def call(self, workload: Workload, *, batch: int = 0) -> CheckedCall:
        """Run the kernel on poisoned outputs, and hand over all that is needed to judge what it wrote.

        Args:
            workload: A workload that is loaded.
            batch: 0 for a single call on fresh inputs; else as many calls in a batch, as when it is timed.
        """
        bound = self._bound[workload.id]
        if bound.calls and not batch:
            self._lab.fill(bound)
        bound.calls += 1
        if not batch or not bound.expected:
            self._lab.expect(bound)
        bound.poison()
        message = {"op": "batch", "workload": workload.id, "n": max(1, batch)}
        self.worker.ask(message, self._lab.limits.call_seconds)
        names = [slot.spec.name for slot in bound.tensors.slots]
        count = bound.inputs
        seen = [bound.tensors.array(index).copy() for index in range(len(names))]
        inputs = zip(names, zip(bound.own, seen, strict=False), strict=False)
        outputs = zip(names[count:], zip(bound.expected, seen[count:], strict=True), strict=True)
        return CheckedCall(dict(inputs), dict(outputs))

    def batch(self, workload: Workload, count: int) -> tuple[int, int]:
        """Time `count` calls: nanoseconds by the worker's clock, and by ours around it."""
        message = {"op": "batch", "workload": workload.id, "n": count}
        start = time.perf_counter_ns()
        reply = self.worker.ask(message, self._lab.limits.call_seconds)
        return int(reply["ns"]), time.perf_counter_ns() - start

    def close(self) -> None:
        """End the worker and give its memory back."""
        self.worker.close()
        for bound in self._owned:
            bound.tensors.close()

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def factory_arguments(operator: Operator, workload: Workload) -> dict[str, object]:
    """Keyword arguments for the kernel factory: shape, dtype and params, as far as it takes them."""
    wanted = set(operator.parameters)
    offered: dict[str, object] = {**workload.shape, "dtype": workload.dtype, **workload.params}
    return {name: value for name, value in offered.items() if name in wanted}
