"""What is passed around of builds and calls: a candidate that built, one call as the supervisor saw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opratchet.backend.base import Artifact
from opratchet.lab.tensors import Array
from opratchet.operator.model import Workload


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
