"""A clock that reads from a script: kernels really run, in real workers, and what a batch took is what the source says.

Of the many batches of a comparison only the first ones of a process really run, and some later ones: they would all be alike.
What a run decides then depends on nothing else that the machine does. There is noise, of the process and of the batch, drawn
from a generator that is seeded by what is timed: the same comparison always gives the same times, whatever was before it.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from opratchet import contest
from opratchet.lab.rig import Rig
from opratchet.operator.model import Workload

PROCESS_NOISE = (
    0.004  # standard deviation of what a process, and of what a batch, adds to a log time
)
BATCH_NOISE = 0.002
FIRST, EVERY = 8, 16  # the first batches of a process, and one of so many later ones, really run
CALIBRATION, FINAL_BOUTS = 3, 2  # pairs of processes, instead of what a run takes
EMPTY_NS = 100  # what a batch without any call takes


class ScriptedClock:
    """Times the batches of a fake backend's kernels.

    Attributes:
        slowdown: Factor on every time: the machine as it is now.
        crashing: Whether every process crashes that is timed.
    """

    def __init__(self) -> None:
        self.slowdown = 1.0
        self.crashing = False
        self._opened = 0
        self._really = Rig.__init__, Rig.batch, contest.Match.__post_init__

    @contextmanager
    def ticking(self) -> Iterator[ScriptedClock]:
        """Time comes from the script inside; comparisons take few processes, as it is not their precision that is tested."""
        with (
            mock.patch.object(contest.Match, "__post_init__", lambda match: self._meet(match)),
            mock.patch.object(Rig, "__init__", lambda rig, *a, **k: self._open(rig, *a, **k)),
            mock.patch.object(Rig, "batch", lambda rig, w, n: self._batch(rig, w, n)),
            mock.patch.object(contest, "CONTEST_SECONDS", float("inf")),
            mock.patch.object(contest, "CALIBRATION", CALIBRATION),
            mock.patch.object(contest, "FINAL_BOUTS", FINAL_BOUTS),
        ):
            yield self

    def _meet(self, match: contest.Match) -> None:
        """A comparison begins."""
        self._opened = 0
        self._really[2](match)

    def _open(self, rig: Rig, *arguments: Any, **options: Any) -> None:
        """One more process of this comparison."""
        self._really[0](rig, *arguments, **options)
        self._opened += 1
        rig.scripted = (self._opened, {})  # type: ignore[attr-defined]

    def _batch(self, rig: Rig, workload: Workload, count: int) -> tuple[int, int]:
        """Run a batch as ever, then say what it took by either clock."""
        if self.crashing:
            os.kill(rig.worker.pid, signal.SIGSEGV)
        process, batches = rig.scripted  # type: ignore[attr-defined]
        number = batches[workload.id] = batches.get(workload.id, 0) + 1
        if number <= FIRST or number % EVERY == 0:
            self._really[1](rig, workload, count)
        artifact = rig._build.artifacts[workload.id]
        stated = stated_ns(artifact.path, artifact.tensors[0].size)
        noise = noise_of(f"{artifact.code_sha256} {workload.id} {process}", number)
        taken = round(stated * count * self.slowdown * noise) or EMPTY_NS
        return taken, taken


def noise_of(process: str, batch: int) -> float:
    """Noise of a batch, as a factor."""
    own = random.Random(process).gauss(0, PROCESS_NOISE)
    return 1 + own + random.Random(f"{process} {batch}").gauss(0, BATCH_NOISE)


@cache
def stated_ns(path: str, elements: int) -> float:
    """Nanoseconds of a call by the directives of an artefact, which never changes."""
    behaviour = json.loads(Path(path).read_text(encoding="utf-8"))
    return 1e3 * float(behaviour.get(f"time_{elements}", behaviour.get("time", "100")))
