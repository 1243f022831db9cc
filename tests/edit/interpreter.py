"""Runs a kernel's source statement by statement in plain Python, float64, to compare it before and after an edit.

It follows TileLang where a rewrite relies on it: a read outside a tensor gives zero, a write outside is dropped,
`T.copy` fills what lies outside with zeros, and a local buffer holds anything until it is set.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from opratchet.edit.source import KernelSource
from tests.edit.sources import HEAD


class Element(float):
    """A value that knows where it was read, so that `T.copy` can take it as the corner of a tile."""

    base: Tensor
    index: tuple[int, ...]


class Tensor:
    """A tensor in global memory with guarded access."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def holds(self, index: tuple[int, ...]) -> bool:
        return all(0 <= i < size for i, size in zip(index, self.data.shape, strict=True))

    def __getitem__(self, index: tuple[int, ...]) -> Element:
        found = Element(self.data[index] if self.holds(index) else 0.0)
        found.base, found.index = self, index
        return found

    def __setitem__(self, index: tuple[int, ...], value: float) -> None:
        if self.holds(index):
            self.data[index] = value


def copy(source: Any, target: Any) -> None:
    tile = source if isinstance(source, np.ndarray) else target
    for index in np.ndindex(*tile.shape):
        if isinstance(source, Element):
            corner = tuple(a + b for a, b in zip(source.index, index, strict=True))
            target[index] = source.base[corner]
        elif isinstance(target, Element):
            corner = tuple(a + b for a, b in zip(target.index, index, strict=True))
            target.base[corner] = source[index]
        else:
            target[index] = source[index]


def language(block: int, garbage: np.random.Generator) -> SimpleNamespace:
    """What the source calls `T`, for one block of the grid."""

    @contextmanager
    def one_block(_: int) -> Iterator[int]:
        yield block

    def reduce_sum(source: np.ndarray, target: np.ndarray, dim: int) -> None:
        target[:] = source.sum(axis=dim)

    return SimpleNamespace(
        prim_func=lambda function: function,
        Tensor=lambda shape, dtype: None,
        Kernel=one_block,
        ceildiv=lambda a, b: -(-a // b),
        alloc_local=lambda shape, dtype: garbage.normal(size=shape),
        serial=range,
        grid=lambda *sizes: itertools.product(*map(range, sizes)),
        copy=copy,
        clear=lambda target: target.fill(0.0),
        reduce_sum=reduce_sum,
        tanh=math.tanh,
    )


def interpret(source: KernelSource, x: np.ndarray, block_m: int, seed: int) -> np.ndarray:
    """Output Y of the kernel for the input X [M, N]; the seed says what is in memory that nobody has set."""
    garbage = np.random.default_rng(seed)
    out = Tensor(garbage.normal(size=x.shape))
    for block in range(-(-x.shape[0] // block_m)):
        scope: dict[str, Any] = {"T": language(block, garbage)}
        exec(source.text.removeprefix(HEAD), scope)
        scope["op"](*x.shape, block_M=block_m)(Tensor(x), out)
    return out.data
