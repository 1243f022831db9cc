"""Runtime of the fake backend: doubles its input in the time that the artefact says, or misbehaves as it says.

Two environment variables of a run worker stand for the machine it runs on: `FAKE_SLOWDOWN`, a factor on the time of every
call, and `FAKE_RUN`, what every artefact does whatever it says itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

CALLS: Counter[str] = Counter()  # of an artefact, on whatever tensors


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """Bind to two float32 vectors."""
    behaviour = json.loads(Path(artifact["path"]).read_text())
    count = artifact["tensors"][0]["shape"][0]
    vector = ctypes.c_float * count
    x, y = (vector.from_address(address) for address in addresses)
    slowdown = float(os.environ.get("FAKE_SLOWDOWN", "1"))
    time_us = behaviour.get(f"time_{count}", behaviour.get("time", "100"))
    seconds = 0.0 if behaviour.get("wait") == "no" else float(time_us) * 1e-6 * slowdown
    how = os.environ.get("FAKE_RUN") or behaviour.get("run", "")

    def call() -> object:
        CALLS[artifact["path"]] += 1
        start = time.perf_counter()
        _misbehave(how)
        factor = 3.0 if how == "wrong" or (how == "late" and CALLS[artifact["path"]] > 3) else 2.0
        for index in range(count // 2 if how == "half" else count):
            y[index] = x[index] * factor
        if how == "mutate":
            x[0] = 0.0
        while time.perf_counter() - start < seconds:
            pass
        return None

    return call


def _misbehave(how: str) -> None:
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    while how == "hang":
        time.sleep(1)
