"""A backend for faults: builds nothing, and does what a candidate's source says by assignments, at the worst moment.

Like `tests.fake_backend`: `build = "fail|abort|illegal|leave|flood|surrogate"` says what
happens in the build worker and `call = "abort|illegal|leave|flood"` what happens in the middle of a call; `refuse = "64"` is
the size of a workload on which it happens, all where nothing is said. `others_build = "fail"` says what happens to every
version but the one as given. Another text is other code, so that whole commands can tune on it without any compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from opratchet.backend.base import Artifact, BuildError, BuildJob, TensorSpec
from opratchet.edit.model import Target
from tests.fake_backend import FakeBackend, directives

NAME = "tests.faults.backend:FaultBackend"
OTHERS = "others_"
FLOOD_BYTES = 100 << 20
NOT_TEXT = b"\xff\xfe not UTF-8 \x80\n"


class FaultBackend(FakeBackend):
    """See the module."""

    name = NAME
    runtime = "tests.faults.runtime"

    def target(self) -> Target:
        from opratchet.edit.knobs.tables import gcc_flag_groups  # not in workers: it takes its time

        return Target(backend=self.name, compile_flags=gcc_flag_groups(vector_bytes=32))

    def build(self, job: BuildJob) -> Artifact:
        text = Path(job.source).read_text(encoding="utf-8")
        behaviour = directives(text)
        if not is_original(text):
            behaviour |= {
                key.removeprefix(OTHERS): value
                for key, value in behaviour.items()
                if key.startswith(OTHERS)
            }
        size = int(job.arguments["N"])
        if behaviour.get("refuse", str(size)) == str(size):
            misbehave(behaviour.get("build", ""))
        path = Path(job.folder) / f"artefact-{size}.json"
        path.write_text(json.dumps(behaviour))
        tensors = tuple(TensorSpec(name, (size,), "float32") for name in "XY")
        return Artifact(str(path), "double", tensors, hashlib.sha256(text.encode()).hexdigest())


def is_original(text: str) -> bool:
    """Whether this is the operator as given: its compile flags are those it was written with."""
    return "compile_flags" not in text or '@jit(compile_flags=["-O3"])' in text


def misbehave(how: str) -> None:
    """One of the ways to fail that no limit foresees."""
    if how == "fail":
        raise BuildError("error: expected ';' before '}' token")
    if how == "abort":
        os.abort()
    if how == "illegal":
        os.kill(os.getpid(), signal.SIGILL)
    if how == "leave":
        ctypes.CDLL(None).exit(0)
    if how == "surrogate":
        raise BuildError("error: \udc80\udcff in the source \x1b[2Kpassed")
    if how == "flood":
        flood()
        raise BuildError("error: too much was said")


def flood() -> None:
    """100 MB of output, some of it no text."""
    chunk = (NOT_TEXT * (1 + (1 << 20) // len(NOT_TEXT)))[: 1 << 20]
    for _ in range(FLOOD_BYTES >> 20):
        os.write(1, chunk)
    os.write(2, b"the last words\n")
    sys.stdout.flush()
