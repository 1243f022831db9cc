"""The protocol of a backend: a DSL on a target. A new backend is one file that implements it and one registration.

A backend is used on both sides of a process border. The supervisor asks it what it needs (`requirements`), what
edits must respect (`target`), and what identifies its toolchain (`toolchain`). A build worker, a process that may
die, lets it turn a candidate's source into artefacts (`build`). A run worker never imports the backend: it loads the
artefact with the backend's `runtime`, a small module without heavy imports, so that a fresh process costs little.
Nothing that a candidate controls ever runs in the supervisor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from opratchet.edit.model import Target
from opratchet.ledger.words import Bottleneck, Latency, MetricKind, Outcome
from opratchet.operator.model import Operator, Workload
from opratchet.profile.roofline import Floor


@dataclass(frozen=True)
class Requirement:
    """One thing that a backend needs on this machine.

    Attributes:
        what: Name for people.
        found: Version or path when it is there, empty when it is missing.
        install: Command that installs it.
    """

    what: str
    found: str
    install: str


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of a kernel's signature: name, shape, dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True)
class BuildJob:
    """What a build worker gets: a source file and the arguments of one workload.

    Attributes:
        source: Path of the candidate's source.
        kernel: Name of the kernel factory.
        arguments: Keyword arguments for the factory (shape names, dtype, params).
        folder: The job's own folder; artefacts are left there.
    """

    source: str
    kernel: str
    arguments: Mapping[str, Any]
    folder: str


@dataclass(frozen=True)
class Artifact:
    """What a build leaves behind for one workload.

    Attributes:
        path: The file to load.
        symbol: Entry point in it.
        tensors: Signature, inputs and outputs in call order.
        code_sha256: Hash of the generated code: equal hashes mean that an edit has no effect on this target.
        work: Counted operations (`flops`, `transcendentals`, `bytes`), empty when not counted.
        reports: Further files that the toolchain left, by name, e.g. the trace of a cost model.
    """

    path: str
    symbol: str
    tensors: tuple[TensorSpec, ...]
    code_sha256: str
    work: Mapping[str, int] = field(default_factory=dict)
    reports: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Artifact:
        """The inverse of `to_json`."""
        tensors = tuple(
            TensorSpec(t["name"], tuple(t["shape"]), t["dtype"]) for t in data["tensors"]
        )
        more = [dict(data.get(name, {})) for name in ("work", "reports")]
        return cls(data["path"], data["symbol"], tensors, data["code_sha256"], *more)


class BuildError(Exception):
    """The candidate does not build. Its text is shown to people, so it holds the tool's own message.

    Class attributes:
        outcome: How a trial ends that way.
    """

    outcome: ClassVar[Outcome] = Outcome.COMPILE_FAILED


class OverCapacity(BuildError):
    """The candidate needs more of a memory of the target than there is."""

    outcome = Outcome.OUT_OF_MEMORY


class Backend(ABC):
    """A DSL on a target.

    Class attributes:
        name: Name on the command line and in files.
        metric_kind: Kind of every latency it yields.
        preload: Heavy modules that the nursery imports once before it forks workers.
        runtime: Module with `load(artifact, addresses) -> call`, imported by run workers.
        summary: One line for `doctor`.
    """

    name: ClassVar[str]
    metric_kind: ClassVar[MetricKind]
    preload: ClassVar[Sequence[str]] = ()
    runtime: ClassVar[str] = "opratchet.backend.native"
    summary: ClassVar[str]

    @abstractmethod
    def requirements(self) -> list[Requirement]:
        """What it needs here, found or missing. Must be cheap: imports nothing heavy."""

    @abstractmethod
    def target(self) -> Target:
        """What edits must respect on this machine."""

    @abstractmethod
    def toolchain(self) -> dict[str, str]:
        """Versions of everything that turns source into code, by name."""

    @abstractmethod
    def build(self, job: BuildJob) -> Artifact:
        """Build one workload; runs in a build worker.

        Raises:
            BuildError: the candidate does not build.
        """

    @abstractmethod
    def diagnose(
        self,
        operator: Operator,
        text: str,
        artifacts: Mapping[str, Artifact],
        latency: Mapping[str, Latency],
    ) -> tuple[list[Bottleneck], dict[str, Any]]:
        """What binds a version: findings, the strongest first, and the facts they were computed from.

        Args:
            operator: The operator.
            text: Source of the version.
            artifacts: Its artefacts by workload id.
            latency: Its latency by workload id.
        """

    def prepare(self, tell: Callable[[str], None]) -> None:
        """Make what is made once for a machine, before anything runs. Cheap when it is there.

        Args:
            tell: Told what is being done, and how far it is.

        Raises:
            EnvironmentMissing: it cannot be made.
        """
        return

    def shown(self) -> list[Path]:
        """Files and folders besides the packages that workers have to read, after `prepare`."""
        return []

    def modelled_us(self, artifact: Artifact) -> float:
        """Microseconds a call that a cost model or a static model gives; only where `metric_kind` is not `measured`.

        Read by the supervisor, from files that were taken out of the reach of the process that left them.

        Raises:
            BadInput: the files do not hold it.
        """
        raise NotImplementedError(f"{self.name} has no model: it is measured")

    def floor(self, operator: Operator, workload: Workload, artifact: Artifact) -> Floor | None:
        """The time below which no honest latency of this workload can lie, or None where it is not known."""
        return None

    def doubt(self, artifact: Artifact, text: str) -> str:
        """Evidence that an artefact was not made from the source, as far as the supervisor can tell; else an empty text.

        What a build worker answers is the candidate's word: its source runs there.
        """
        return ""

    def missing(self) -> list[Requirement]:
        """The requirements that are not met."""
        return [need for need in self.requirements() if not need.found]

    def device(self) -> str:
        """Name of the device that measurements must not share, e.g. `cpu0`; used for the lock."""
        return "cpu"


def package_version(package: str) -> str:
    """Version of an installed package; empty where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def not_the_source(artifact: Artifact, text: str) -> str:
    """The doubt of backends whose artefact is the source itself: it has to be that, letter for letter."""
    if Path(artifact.path).read_bytes() == text.encode("utf-8"):
        return ""
    return "what the build left is not the source of the candidate"


def candidate_file(folder: Path, stem: str) -> Path:
    """Where a candidate's source lies in its job's folder. The name is the operator's, as a user would see it."""
    return folder / f"{stem}.py"
