"""The lab: where candidates are built, run and timed, each in processes of its own.

`Lab.build` turns a source into artefacts for every workload. `Lab.open` starts a fresh run worker and gives a `Rig`: the
loaded kernels with their tensors, on which a single checked call or a timed batch can be asked for. Builds may run
side by side; timings never overlap with anything on the device, by the device lock.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from opratchet.backend.base import Artifact, Backend, TensorSpec, candidate_file
from opratchet.backend.registry import get_backend
from opratchet.errors import BadInput
from opratchet.lab.builders import Nursery, Worker
from opratchet.lab.building import answers, remove, require_unchanged, take
from opratchet.lab.calls import Build, CheckedCall, Kept
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.folder import LabFolder
from opratchet.lab.interpreted import Interpreter
from opratchet.lab.limits import Limits
from opratchet.lab.reference import Reference, ReferenceLost, split_tensors
from opratchet.lab.rig import Rig
from opratchet.lab.ring import Ring
from opratchet.lab.sandbox import Sandbox, choose
from opratchet.lab.tensors import Array, numpy_dtype
from opratchet.ledger.words import MetricKind, Outcome
from opratchet.operator.model import Operator, Workload

AGAIN = 3
Result = TypeVar("Result")


class Lab:
    """Everything that runs candidates, for one operator and one backend.

    Args:
        operator: The operator; its original source is the only one the reference worker ever runs.
        limits: Time and memory limits.
        sandbox: What stands around everything that runs a candidate; the one that is there, unless told otherwise.
        tell: Told what is made once for this machine, and how far it is.

    Raises:
        EnvironmentMissing: the backend cannot run here.
    """

    def __init__(
        self,
        operator: Operator,
        limits: Limits | None = None,
        sandbox: Sandbox | None = None,
        tell: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self.operator = operator
        self.limits = limits or Limits()
        self.backend: Backend = get_backend(operator.backend)
        self.backend.prepare(tell)
        self._place = LabFolder()
        self.folder = self._place.path
        self.jobs = self.folder / "jobs"
        self.jobs.mkdir()
        hidden = [operator.root, operator.source.parent, self.folder]
        self.sandbox = (sandbox or choose()).hiding(hidden)
        self.cpu = max(os.sched_getaffinity(0))
        modules = [*self.backend.preload, type(self.backend).__module__, "opratchet.lab.worker"]
        self._nursery = Nursery(
            modules,
            self.folder / "nursery.log",
            self.limits,
            self.sandbox,
            self.jobs,
            self.backend.shown(),
        )
        self._trusted = Nursery(modules, self.folder / "golden.log", self.limits)
        self._reference: Reference | None = None
        self._answering = threading.Lock()  # the golden's worker answers one question at a time
        self._generator = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def build(self, text: str, workloads: Sequence[Workload]) -> Build:
        """Build a candidate for these workloads in a worker of its own.

        Raises:
            WorkerFailed: it does not build, or took too much time or memory.
        """
        return self.unless_lost(lambda: self._built(text, workloads))

    def unless_lost(self, work: Callable[[], Result]) -> Result:
        """Do what needs a worker.

        Where the process that starts workers was lost meanwhile, e.g. because the system ran out of memory, that says nothing
        of the candidate: it is done again, a few times at most.

        Raises:
            WorkerFailed: it failed by itself, or every time.
        """
        for _ in range(AGAIN):
            losses = self._nursery.losses
            try:
                return work()
            except WorkerFailed:
                if self._nursery.losses == losses:
                    raise
        return work()

    def _built(self, text: str, workloads: Sequence[Workload]) -> Build:
        self._nursery.wait_ready()
        start = time.monotonic()
        folder = self.job_folder()
        try:
            source = candidate_file(folder, self.operator.name)
            source.write_text(text, encoding="utf-8", newline="")
            message = self._build_message(source, folder, workloads)
            worker = self._nursery.fork("build", folder, message)
            until = start + self.limits.build_seconds
            built = answers(worker, [w.id for w in workloads], until, folder, self.limits)
            require_unchanged(source, text)
            most, store = self.limits.file_bytes, self.folder / "taken"
            artifacts = {name: take(one, folder, store, most) for name, one in built.items()}
            for name, artifact in artifacts.items():
                if doubt := self.backend.doubt(artifact, text):
                    raise WorkerFailed(Outcome.CHEATED, f"{name}: {doubt}")
        finally:
            remove(folder)
        return Build(artifacts, time.monotonic() - start, text)

    def job_folder(self) -> Path:
        """A new folder for a job, the only one that it may write to."""
        return Path(tempfile.mkdtemp(prefix="job-", dir=self.jobs))

    def _build_message(
        self, source: Path, folder: Path, workloads: Sequence[Workload]
    ) -> dict[str, object]:
        return {
            "backend": self.operator.backend,
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
            self._reference = Reference(self._trusted, self.operator, self.limits, self.folder)
        return self._reference

    def open(self, build: Build, *, watched: bool = False) -> Rig:
        """Start a fresh run worker for a build; of a watched one, calls of timed batches are kept to be judged."""
        return Rig(self, build, watched=watched)

    @property
    def is_measured(self) -> bool:
        """Whether latencies come from a clock, not from a model."""
        return self.backend.metric_kind is MetricKind.MEASURED

    def interpreter(self, build: Build) -> Interpreter:
        """What calls a build's workloads one by one where there is no device."""
        return Interpreter(self, build)

    def caller(self, build: Build) -> Rig | Interpreter:
        """What calls a build's workloads to be checked: a run worker, or an interpreter where there is no device."""
        return self.open(build) if self.is_measured else self.interpreter(build)

    def fork(self, role: str, folder: Path, message: Mapping[str, Any]) -> Worker:
        """A worker in a role, from the nursery of candidates."""
        return self._nursery.fork(role, folder, message)

    def by_chance(self, probability: float) -> bool:
        """True in so many cases; nobody outside this process can know which."""
        return float(self._generator.random()) < probability

    def memory(self, workload: Workload, artifact: Artifact) -> Ring:
        """Memory for one workload.

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
        return Ring(artifact.tensors, len(inputs), self.operator.inputs, self._generator)

    def judged(self, kept: Kept, specs: Sequence[TensorSpec]) -> CheckedCall:
        """A call with its golden, which is computed from the supervisor's own copy of the inputs."""
        expected = self._expected(kept, specs)
        names = [spec.name for spec in specs]
        count = len(kept.given)
        inputs = zip(names, zip(kept.given, kept.seen, strict=False), strict=False)
        outputs = zip(names[count:], zip(expected, kept.seen[count:], strict=True), strict=True)
        return CheckedCall(dict(inputs), dict(outputs))

    def _expected(self, kept: Kept, specs: Sequence[TensorSpec]) -> list[Array]:
        """The golden's outputs. Where its worker was lost, by another one; a golden that ends it every time is refused."""
        with self._answering:
            try:
                return self.reference.expected(kept.workload, specs, kept.given)
            except ReferenceLost:
                pass
            try:
                return self.reference.expected(kept.workload, specs, kept.given)
            except ReferenceLost as lost:
                raise lost.refusal from None

    def close(self) -> None:
        """End every worker and remove the lab's folder."""
        self._nursery.close()
        self._trusted.close()
        self._place.remove()

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def factory_arguments(operator: Operator, workload: Workload) -> dict[str, object]:
    """Arguments of a build: shape, dtype and params as far as the kernel factory takes them, or the host function's tensors."""
    if workload.tensors:
        return {
            "entry": operator.entry,
            "tensors": {name: list(shape) for name, shape in workload.tensors.items()},
            "dtype": workload.dtype,
            "keywords": dict(workload.params),
            "outputs": list(operator.outputs),
        }
    wanted = set(operator.parameters)
    offered: dict[str, object] = {**workload.shape, "dtype": workload.dtype, **workload.params}
    return {name: value for name, value in offered.items() if name in wanted}
