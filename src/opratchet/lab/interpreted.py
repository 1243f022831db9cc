"""Calls that are interpreted: what a rig is for a backend that models its target and has no device to call.

Each call runs in a fresh worker, forked from the warm nursery, which is given the artefact and memory with fresh inputs and wholly
poisoned outputs, and has ended before anything in that memory is looked at. Nothing is timed here: the worker only says once more
what its model gave, so that a model that gives another figure each time is found out.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opratchet.backend.base import BuildError, candidate_file
from opratchet.lab.building import crowded, remove, require_untouched
from opratchet.lab.calls import Build, CheckedCall, Kept
from opratchet.lab.channel import Channel
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.ring import Ring
from opratchet.ledger.words import Outcome
from opratchet.operator.model import Workload

if TYPE_CHECKING:
    from opratchet.lab.bench import Lab


class Interpreter:
    """The workloads of one build, to be called one by one. A context manager, as a rig is.

    Attributes:
        modelled_us: Microseconds a call that the model gave again, for each workload that was called.
    """

    def __init__(self, lab: Lab, build: Build) -> None:
        self._lab = lab
        self._build = build
        self._rings: dict[str, Ring] = {}
        self.modelled_us: dict[str, float] = {}

    def has(self, workload: Workload) -> bool:
        """Whether a workload has its memory."""
        return workload.id in self._rings

    def load(self, workload: Workload) -> None:
        """Give a workload its memory."""
        artifact = self._build.artifacts[workload.id]
        require_untouched(artifact)
        self._rings[workload.id] = self._lab.memory(workload, artifact)

    def call(self, workload: Workload) -> CheckedCall:
        """Have a workload interpreted once on fresh inputs, and hand over what is needed to judge it.

        Raises:
            WorkerFailed: it could not be interpreted, or took too much time or memory.
        """
        ring = self._rings[workload.id]
        ring.renew(1)
        ring.poison_all()
        us = self._lab.unless_lost(lambda: self._interpret(workload, ring))
        self.modelled_us[workload.id] = us
        given = [ring.given(index, 0) for index in range(ring.inputs)]
        kept = Kept(workload, given, ring.seen(0))
        return self._lab.judged(kept, self._build.artifacts[workload.id].tensors)

    def _interpret(self, workload: Workload, ring: Ring) -> float:
        lab, tensors = self._lab, ring.tensors
        folder = lab.job_folder()
        artifact = self._build.artifacts[workload.id]
        own = Path(shutil.copy(artifact.path, candidate_file(folder, lab.operator.name)))
        message = {
            "runtime": lab.backend.runtime,
            "artifact": replace(artifact, path=str(own), reports={}).to_json(),
            "memory": lab.limits.build_bytes,
        }
        worker = lab.fork("interpret", folder, message)
        try:
            offsets = [slot.offset for slot in tensors.slots]
            worker.channel.send({"bytes": tensors.size, "offsets": offsets}, [tensors.fd])
            reply = worker.receive(
                lab.limits.build_seconds, lambda: crowded(folder, lab.limits.folder_bytes)
            )
            return _figure(reply, worker.output)
        finally:
            worker.close()
            remove(folder)

    def close(self) -> None:
        """Give the memory back."""
        for ring in self._rings.values():
            ring.close()

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _figure(reply: Mapping[str, Any], output: Callable[[], str]) -> float:
    """The figure in a worker's answer.

    Raises:
        WorkerFailed: the answer tells of a failure, or is none.
    """
    if "error" in reply:
        known = {outcome.value: outcome for outcome in Outcome}
        outcome = known.get(str(reply.get("outcome")), Outcome.CRASHED)
        raise WorkerFailed(outcome, str(reply["error"]), output())
    us = reply.get("us")
    if type(us) is not float:
        raise WorkerFailed(Outcome.CHEATED, f"a model's figure is no number: {us!r:.60}")
    return us


def interpret(channel: Channel, message: dict[str, Any]) -> None:
    """The worker's side: bind the artefact to the memory that is sent, call it once, and answer."""
    request, fds = channel.receive()
    memory = mmap.mmap(fds[0], request["bytes"])
    os.close(fds[0])
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    os.environ["TMPDIR"] = str(Path.cwd())
    try:
        load = import_module(message["runtime"]).load
        call = load(message["artifact"], [base + offset for offset in request["offsets"]])
        channel.send({"us": call()})
    except Exception as error:  # whatever a kernel raises is the answer
        outcome = error.outcome if isinstance(error, BuildError) else Outcome.CRASHED
        channel.send({"error": f"{type(error).__name__}: {error}", "outcome": outcome.value})
