"""A rig: one run worker with the kernels of one build loaded, of which a checked call or a timed batch can be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from opratchet.backend.base import TensorSpec
from opratchet.lab.building import require_untouched
from opratchet.lab.calls import Build, CheckedCall, Kept
from opratchet.lab.ring import Ring
from opratchet.lab.supervisor import RunWorker, nothing_to_see
from opratchet.operator.model import Workload

if TYPE_CHECKING:
    from opratchet.lab.bench import Lab

KEEP = 1 / 16  # chance of a timed batch that one of its calls is judged
MOST_KEPT = 6  # calls kept at a time; each holds copies of all tensors


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
