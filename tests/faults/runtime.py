"""Runtime of the backend for faults: doubles its input at once, or misbehaves in the middle of a call. Time is scripted."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """Bind to two float32 vectors."""
    behaviour = json.loads(Path(artifact["path"]).read_text())
    count = artifact["tensors"][0]["shape"][0]
    vector = ctypes.c_float * count
    x, y = (vector.from_address(address) for address in addresses)
    applies = behaviour.get("refuse", str(count)) == str(count)
    how = behaviour.get("call", "") if applies else ""
    factor = 3.0 if behaviour.get("run") == "wrong" else 2.0

    def call() -> object:
        for index in range(count):
            y[index] = x[index] * factor
            if how and index == count // 2:
                _misbehave(how)
        return None

    return call


def _misbehave(how: str) -> None:
    from tests.faults.backend import flood, misbehave

    if how == "flood":
        flood()
        how = "abort"
    misbehave(how)
