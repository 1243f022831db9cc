"""Runtime of the self-test: calls whose work is known exactly, without an operator, a DSL or a compiler.

A call does a number of equal units of work in one call into C, so that the interpreter takes no part in what is timed:

- `compute`: SHA-256 of memory, a unit is one run of its compression function. A message of `n` bytes takes
  `n // 64 + 1` of them where `n` is a multiple of 64, since one more block holds the padding (FIPS 180-4, 5.1.1).
- `memory`: a search for a byte that is not there (`memchr`), a unit is one cache line of 64 bytes that is read.

Two calls of 1000 and 1010 units are 1 % apart in work. What a call costs besides, the way from Python into C, is below
one microsecond and the same for both. Standard library only, as run workers import this.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

UNIT = 64
"""Bytes that a unit of work reads."""
ABSENT = 1
"""The byte that `memory` looks for; the memory must not hold it."""

Call = Callable[[], object]


def size(kind: str, units: int) -> int:
    """Bytes that a call of so many units reads.

    Raises:
        ValueError: such a kind, or so few units, there are not.
    """
    if kind not in ("compute", "memory") or units < 2:
        raise ValueError(f"no work of kind `{kind}` with {units} units")
    return UNIT * (units - 1 if kind == "compute" else units)


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Call:
    """Bind the work to the memory at the one address.

    Args:
        artifact: `kind` and `units`.
        addresses: Where `size(kind, units)` bytes lie.

    Returns:
        A call that does the work once.
    """
    kind = artifact["kind"]
    count = size(kind, artifact["units"])
    return _digest(addresses[0], count) if kind == "compute" else _search(addresses[0], count)


def _digest(address: int, count: int) -> Call:
    data = memoryview((ctypes.c_char * count).from_address(address)).cast("B")
    sha256 = hashlib.sha256

    def call() -> object:
        return sha256(data)

    return call


def _search(address: int, count: int) -> Call:
    memchr = ctypes.CDLL(None).memchr
    memchr.restype = ctypes.c_void_p
    arguments = ctypes.c_void_p(address), ctypes.c_int(ABSENT), ctypes.c_size_t(count)

    def call() -> object:
        return memchr(*arguments)

    return call
