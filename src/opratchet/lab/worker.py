"""What a forked worker does: build a candidate, or compute goldens. Runs in processes that may die.

The build worker executes the candidate's source and is gone after its one job. The reference worker executes the
*original* source only, computes the golden of inputs that the supervisor gives it, and writes the results into memory
that no candidate can map.
"""

from __future__ import annotations

import math
import mmap
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opratchet.backend.base import BuildError, BuildJob
from opratchet.backend.modules import load_module
from opratchet.backend.registry import get_backend
from opratchet.lab.channel import Channel
from opratchet.lab.interpreted import interpret

Array = NDArray[Any]


def build(channel: Channel, message: dict[str, Any]) -> None:
    """Build every workload of one candidate, in order; answer each with its artefact, or the first failure."""
    backend = get_backend(message["backend"])
    for workload, arguments in message["workloads"].items():
        job = BuildJob(
            source=message["source"],
            kernel=message["kernel"],
            arguments=arguments,
            folder=message["folder"],
        )
        try:
            artifact = backend.build(job)
        except BuildError as error:
            channel.send({"workload": workload, "error": str(error), "kind": error.outcome.value})
            return
        except MemoryError:
            channel.send({"workload": workload, "error": "memory limit", "kind": "out_of_memory"})
            return
        channel.send({"workload": workload, "artifact": artifact.to_json()})


def reference(channel: Channel, message: dict[str, Any]) -> None:
    """Load the original source once, then answer `expect` requests."""
    try:
        module = load_module(Path(message["source"]))
        golden = getattr(module, message["golden"])
    except Exception as error:
        channel.send({"error": f"{type(error).__name__}: {error}"})
        return
    convert = _converter(module)
    channel.send({"ready": True})
    while True:
        request, fds = channel.receive()
        channel.send(_expect(golden, convert, request, fds))


def _converter(module: ModuleType) -> Callable[[Array], Any]:
    """From an array to what the golden wants: a golden whose module does not import torch is written for NumPy."""
    if not any(getattr(value, "__name__", "") == "torch" for value in vars(module).values()):
        return np.copy
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)

    def convert(array: Array) -> Any:
        return torch.from_numpy(array.copy())

    return convert


def _expect(
    golden: Callable[..., Any],
    convert: Callable[[Array], Any],
    request: dict[str, Any],
    fds: list[int],
) -> dict[str, Any]:
    """Run the golden on tensors in shared memory and write its results into the second shared memory."""
    memories = [mmap.mmap(fd, size) for fd, size in zip(fds, request["bytes"], strict=True)]
    for fd in fds:
        os.close(fd)
    try:
        inputs = [convert(_view(memories[0], spec)) for spec in request["inputs"]]
        results = golden(*inputs, **request["keywords"])
        outputs = list(results) if isinstance(results, (tuple, list)) else [results]
        return _deliver(outputs, request["outputs"], memories[1])
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {"error": f"{type(error).__name__}: {error} (line {where.lineno})"}


def _deliver(results: list[Any], specs: list[dict[str, Any]], memory: mmap.mmap) -> dict[str, Any]:
    if len(results) != len(specs):
        return {
            "error": f"the golden returns {len(results)} tensors, the kernel has {len(specs)} outputs"
        }
    for result, spec in zip(results, specs, strict=True):
        value = np.asarray(result)
        if value.shape != tuple(spec["shape"]):
            return {
                "error": f"the golden's output {spec['name']} has shape {value.shape}, "
                f"the kernel's has {tuple(spec['shape'])}"
            }
        _view(memory, spec)[...] = value
    return {"ok": True}


def _view(memory: mmap.mmap, spec: dict[str, Any]) -> Array:
    count = math.prod(spec["shape"])
    flat: Array = np.frombuffer(memory, np.dtype(spec["dtype"]), count, spec["offset"])
    shaped: Array = flat.reshape(spec["shape"])
    return shaped


ROLES: dict[str, Callable[[Channel, dict[str, Any]], None]] = {
    "build": build,
    "reference": reference,
    "interpret": interpret,
}
