"""A backend without any compiler, for the loop: a candidate's source says by assignments how it behaves.

`time = "120"` is the time of a call in microseconds (`time_64` that on 64 elements), `build = "fail|hang|crash|memory|exit"` what happens in the build
worker, `run = "wrong|crash|hang|mutate|half|late"` what happens in the run worker. Everything else is real: the
nursery, the workers, the limits, the shared memory, the supervisor's clock.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opratchet.backend.base import (
    Artifact,
    Backend,
    BuildError,
    BuildJob,
    Requirement,
    TensorSpec,
)
from opratchet.edit.model import Target
from opratchet.ledger.words import Bottleneck, Latency, MetricKind
from opratchet.operator.model import Operator

NAME = "tests.fake_backend:FakeBackend"
INSTANT = "tests.fake_backend:InstantBackend"
os.environ.setdefault("OPRATCHET_PASS_ENV", "FAKE_SLOWDOWN,FAKE_RUN")


def directives(text: str) -> dict[str, str]:
    """The `key = "value"` lines of a source; the last one of a key wins."""
    return dict(re.findall(r'^\s*(\w+) = "(\S+)"$', text, re.MULTILINE))


class FakeBackend(Backend):
    """Builds nothing; the artefact is the list of directives."""

    name = NAME
    metric_kind = MetricKind.MEASURED
    preload = ()
    runtime = "tests.fake_runtime"
    summary = "for tests"
    waits = True

    def requirements(self) -> list[Requirement]:
        return []

    def target(self) -> Target:
        return Target(backend=self.name)

    def toolchain(self) -> dict[str, str]:
        return {"fake": "1"}

    def diagnose(
        self,
        operator: Operator,
        text: str,
        artifacts: Mapping[str, Artifact],
        latency: Mapping[str, Latency],
    ) -> tuple[list[Bottleneck], dict[str, Any]]:
        found = Bottleneck(name="compute_density", score=0.5, evidence="always, for tests")
        return [found], {}

    def behaviour(self, text: str) -> dict[str, str]:
        """What a source says."""
        return directives(text) if self.waits else {**directives(text), "wait": "no"}

    def build(self, job: BuildJob) -> Artifact:
        text = Path(job.source).read_text(encoding="utf-8")
        behaviour = self.behaviour(text)
        _misbehave(behaviour.get("build", ""))
        code = json.dumps(behaviour, sort_keys=True)
        path = Path(job.folder) / f"{len(list(Path(job.folder).iterdir()))}.json"
        path.write_text(code)
        shape = (int(job.arguments["N"]),)
        tensors = (TensorSpec("X", shape, "float32"), TensorSpec("Y", shape, "float32"))
        return Artifact(str(path), "double", tensors, hashlib.sha256(code.encode()).hexdigest())


class InstantBackend(FakeBackend):
    """Its kernels return at once: for runs whose time comes from a script (`tests.clock`)."""

    name = INSTANT
    waits = False


def _misbehave(how: str) -> None:
    if how == "fail":
        raise BuildError("error: expected ';' before '}' token")
    if how == "memory":
        raise MemoryError
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "exit":
        os._exit(0)
    while how == "hang":
        time.sleep(1)
