"""The lab: where candidates are built, run and timed, each in processes of its own.

`Lab.build` turns a source into artefacts for every workload. `Lab.open` starts a fresh run worker and gives a `Rig`: the
loaded kernels with their tensors, on which a single checked call or a timed batch can be asked for. Builds may run
side by side; timings never overlap with anything on the device, by the device lock.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from opratchet.backend.base import Artifact, Backend, TensorSpec, candidate_file
from opratchet.backend.registry import get_backend
from opratchet.errors import BadInput
from opratchet.lab.builders import Nursery, Worker
from opratchet.lab.building import answers, remove, require_unchanged, require_untouched, take
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.folder import LabFolder
from opratchet.lab.interpreted import Interpreter
from opratchet.lab.limits import Limits
from opratchet.lab.reference import Reference, ReferenceLost, split_tensors
from opratchet.lab.ring import Ring
from opratchet.lab.sandbox import Sandbox, choose
from opratchet.lab.supervisor import RunWorker, nothing_to_see
from opratchet.lab.tensors import Array, numpy_dtype
from opratchet.ledger.words import MetricKind, Outcome
from opratchet.operator.model import Operator, Workload

KEEP = 1 / 16  # chance of a timed batch that one of its calls is judged
MOST_KEPT = 6  # calls kept at a time; each holds copies of all tensors


@dataclass(frozen=True)
class Build:
    """A candidate that built: its artefact for each workload.

    Attributes:
        artifacts: Artefact by workload id.
        seconds: Wall time of the build.
        text: The source that was built.
    """

    artifacts: Mapping[str, Artifact]
    seconds: float
    text: str

    @property
    def code(self) -> str:
        """Identity of all generated code together; equal means that two sources build to the same thing."""
        return " ".join(artifact.code_sha256 for artifact in self.artifacts.values())


@dataclass(frozen=True)
class CheckedCall:
    """One call, as the supervisor saw it.

    Attributes:
        inputs: Input name to (what the supervisor gave, what the memory holds after the call).
        outputs: Output name to (golden, what the kernel wrote).
    """

    inputs: Mapping[str, tuple[Array, Array]]
    outputs: Mapping[str, tuple[Array, Array]]


@dataclass(frozen=True)
class Kept:
    """One call of a timed batch, kept to be judged when nothing is being timed: all its tensors before and after."""

    workload: Workload
    given: Sequence[Array]
    seen: Sequence[Array]


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
        self._generator = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def build(self, text: str, workloads: Sequence[Workload]) -> Build:
        """Build a candidate for these workloads in a worker of its own.

        Where the process that starts workers was lost meanwhile, e.g. because the system ran out of memory, that says nothing
        of the candidate: it is built once more.

        Raises:
            WorkerFailed: it does not build, or took too much time or memory.
        """
        losses = self._nursery.losses
        try:
            return self._built(text, workloads)
        except WorkerFailed:
            if self._nursery.losses == losses:
                raise
        return self._built(text, workloads)

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

    def judged_call(
        self,
        workload: Workload,
        given: Sequence[Array],
        seen: Sequence[Array],
        specs: Sequence[TensorSpec],
    ) -> CheckedCall:
        """A call with its golden.

        Args:
            workload: The workload.
            given: What the inputs held before, from the supervisor's own memory.
            seen: What all tensors hold after it.
            specs: The tensors.
        """
        return self.judged(Kept(workload, given, seen), specs)

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


class Rig:
    """One run worker with the kernels of one build loaded. A context manager: leaving it ends the worker.

    Attributes:
        worker: The worker.
        kept: Calls of timed batches that were picked at random to be judged.
    """

    def __init__(self, lab: Lab, build: Build, *, watched: bool = False) -> None:
        self._lab = lab
        self._build = build
        self._watched = watched
        self._rings: dict[str, Ring] = {}
        self._mapped: dict[str, int] = {}
        self._owned: list[Ring] = []
        self.kept: list[Kept] = []
        for artifact in build.artifacts.values():
            require_untouched(artifact)
        self.worker = RunWorker(
            lab.backend.runtime,
            lab.cpu,
            lab.limits.run_bytes,
            lab.limits,
            lab.sandbox,
            [Path(artifact.path) for artifact in build.artifacts.values()],
        )

    def has(self, workload: Workload) -> bool:
        """Whether a workload is loaded."""
        return workload.id in self._rings

    def load(self, workload: Workload, memory: Ring | None = None) -> None:
        """Load one workload's artefact.

        Args:
            workload: The workload.
            memory: Memory to run on, which stays its owner's; else it gets its own. Two versions that are timed against
                each other read and write the same physical pages: where these happen to lie moves memory-bound kernels
                by several per cent.

        Raises:
            WorkerFailed: the artefact cannot be loaded.
        """
        if not self._rings:
            self.worker.remember()
        ring = memory or self._lab.memory(workload, self._build.artifacts[workload.id])
        if memory is None:
            self._owned.append(ring)
        self._rings[workload.id] = ring
        self._map(workload)

    def _map(self, workload: Workload) -> None:
        tensors = self._rings[workload.id].tensors
        message = {
            "op": "load",
            "workload": workload.id,
            "artifact": self._build.artifacts[workload.id].to_json(),
            "bytes": tensors.size,
            "stride": tensors.stride,
            "offsets": [slot.offset for slot in tensors.slots],
        }
        self.worker.ask(message, self._lab.limits.call_seconds, [tensors.fd])
        self._mapped[workload.id] = tensors.sets

    def reserve(self, workload: Workload, count: int) -> None:
        """Have a set of tensors for each call of a batch, as far as memory goes."""
        ring = self._rings[workload.id]
        ring.reserve(count)
        if ring.tensors.sets != self._mapped[workload.id]:
            self._map(workload)

    def call(self, workload: Workload) -> CheckedCall:
        """Run the kernel once on fresh inputs and wholly poisoned outputs, and hand over what is needed to judge it."""
        ring = self._rings[workload.id]
        ring.renew(1)
        ring.poison_all()
        message = {"op": "batch", "workload": workload.id, "n": 1}
        self.worker.timed(message, self._lab.limits.call_seconds)
        return self._lab.judged(self._keep(workload), self._specs(workload))

    def batch(self, workload: Workload, count: int) -> tuple[int, int]:
        """Time `count` calls: nanoseconds by the worker's clock, and by the supervisor's.

        Raises:
            WorkerFailed: a call failed, or left an output as it was.
        """
        ring = self._rings[workload.id]
        ring.renew(count)
        message = {"op": "batch", "workload": workload.id, "n": count}
        look = ring.untouched if count else nothing_to_see
        witness = ring.witness(count)
        clocks = self.worker.timed(message, self._lab.limits.call_seconds, look, witness)
        if self._watched and count and len(self.kept) < MOST_KEPT and self._lab.by_chance(KEEP):
            self.keep_one(workload)
        return clocks

    def keep_one(self, workload: Workload) -> None:
        """Keep one call of the batch that was just timed, at random."""
        self.kept.append(self._keep(workload))

    def _keep(self, workload: Workload) -> Kept:
        ring = self._rings[workload.id]
        of_set = ring.any_set()
        given = [ring.given(index, of_set) for index in range(ring.inputs)]
        return Kept(workload, given, ring.seen(of_set))

    def judged(self) -> Iterator[tuple[Workload, CheckedCall]]:
        """The calls that were kept, each with its golden."""
        while self.kept:
            kept = self.kept.pop()
            yield kept.workload, self._lab.judged(kept, self._specs(kept.workload))

    def _specs(self, workload: Workload) -> Sequence[TensorSpec]:
        return self._build.artifacts[workload.id].tensors

    def close(self) -> None:
        """End the worker and give its memory back."""
        self.worker.close()
        for ring in self._owned:
            ring.close()

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
