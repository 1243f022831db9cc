"""Runtime for artefacts that are shared objects: what a run worker needs, and no more.

Standard library only: a fresh run worker is started for every pair of versions, and its start must cost little.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """Bind the exported symbol to tensors at these addresses.

    Args:
        artifact: `Artifact.to_json()` of a build.
        addresses: One address a tensor, in the order of the signature.

    Returns:
        A call that runs the kernel once, to completion.

    Raises:
        OSError: the shared object cannot be loaded.
        AttributeError: it does not export the symbol.
    """
    function = _function(artifact["path"], artifact["symbol"])
    pointers = [ctypes.c_void_p(address) for address in addresses]

    def call() -> object:
        return function(*pointers)

    return call


@cache
def _function(path: str, symbol: str) -> Callable[..., object]:
    function = getattr(ctypes.CDLL(path), symbol)
    function.restype = ctypes.c_int32
    return function  # type: ignore[no-any-return]
