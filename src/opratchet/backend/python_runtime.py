"""Runtime of the backend `python`: runs the source in the run worker, and binds its kernel to tensors.

The source and its factory run once in a process; each set of tensors is only bound. A kernel writes into the outputs that it is
given, or returns its results, which are copied there. A result has to be a plain array of the right kind: anything else, such as an object that computes when it is
looked at, or the input's own memory, is refused. The process is the kernel's, so this is a convenience that names the
mistake; what decides is what the supervisor finds in the memory.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class ResultRefused(Exception):
    """A kernel returned what is no result.

    Attributes:
        outcome: What that means for the candidate.
    """

    outcome = "cheated"


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """Bind the kernel to the tensors at these addresses.

    Args:
        artifact: `Artifact.to_json()` of a build.
        addresses: One address a tensor, in the order of the signature.

    Returns:
        A call that runs the kernel once and puts its results into the outputs.
    """
    entry = json.loads(artifact["symbol"])
    count = entry["inputs"]
    kernel = _kernel(artifact["path"], artifact["symbol"])
    pairs = zip(artifact["tensors"], addresses, strict=True)
    arrays = [array_at(spec, address) for spec, address in pairs]
    inputs, outputs = arrays[:count], arrays[count:]
    for array in inputs:
        array.flags.writeable = False

    def call() -> object:
        deliver(kernel(*inputs), inputs, outputs)
        return None

    def call_in_place() -> object:
        if kernel(*arrays) is not None:
            raise ResultRefused("the kernel gave a result besides the outputs that it was given")
        return None

    return call_in_place if entry["in_place"] else call


@cache
def _kernel(path: str, symbol: str) -> Callable[..., Any]:
    entry = json.loads(symbol)
    factory = getattr(_module(path), entry["kernel"])
    return factory(**entry["arguments"])  # type: ignore[no-any-return]


@cache
def _module(path: str) -> ModuleType:
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    text = Path(path).read_text(encoding="utf-8-sig")
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def array_at(spec: Mapping[str, Any], address: int) -> Array:
    """A tensor at an address, as an array."""
    dtype = np.dtype(spec["dtype"])
    count = int(np.prod(spec["shape"], dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    flat: Array = np.frombuffer(memory, dtype, count)
    shaped: Array = flat.reshape(spec["shape"])
    return shaped


def deliver(results: Any, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Copy what a kernel returned into the outputs.

    Args:
        results: One array, or a tuple of one for each output.
        inputs: What the kernel was given.
        outputs: Where the results go.

    Raises:
        ResultRefused: a result is not what was declared.
    """
    given = results if type(results) is tuple else (results,)
    if len(given) != len(outputs):
        raise ResultRefused(f"the kernel gave {len(given)} results, and declares {len(outputs)}")
    for result, output in zip(given, outputs, strict=True):
        if wrong := _wrong(result, output, inputs):
            raise ResultRefused(f"the kernel gave {wrong}")
        np.copyto(output, result)


def _wrong(result: Any, output: Array, inputs: Sequence[Array]) -> str:
    """What is wrong with a result, or an empty text."""
    if type(result) is not np.ndarray:
        return f"a {type(result).__name__}, which is no plain NumPy array"
    if result.dtype != output.dtype or result.shape != output.shape:
        return f"{result.dtype}{list(result.shape)} and declares {output.dtype}{list(output.shape)}"
    if not result.flags.c_contiguous:
        return f"a view with the strides {result.strides}; results are contiguous"
    if any(np.may_share_memory(result, array) for array in inputs):
        return "the memory of its input; a result is memory of its own"
    return ""
