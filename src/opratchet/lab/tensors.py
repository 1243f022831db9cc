"""The tensors of one workload in memory that the supervisor owns and one run worker shares.

Inputs are filled by the supervisor, which keeps its own copy; outputs are poisoned, so an element that a kernel did
not write is seen. What a worker maps is a memory file without a name: nothing else on the machine can open it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opratchet.backend.base import TensorSpec
from opratchet.errors import BadInput
from opratchet.operator.model import InputSpec

ALIGNMENT = 64
POISON = 0xFF
Array = NDArray[Any]


@dataclass(frozen=True)
class Slot:
    """Where one tensor lies: its signature and its offset in bytes."""

    spec: TensorSpec
    offset: int

    def to_json(self) -> dict[str, Any]:
        """As the reference worker wants it."""
        return {
            "name": self.spec.name,
            "shape": list(self.spec.shape),
            "dtype": self.spec.dtype,
            "offset": self.offset,
        }


class SharedTensors:
    """A memory file that holds some tensors one after another, each aligned to a cache line."""

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self.slots: list[Slot] = []
        self.size = 0
        for spec in specs:
            self.slots.append(Slot(spec, self.size))
            length = spec.size * numpy_dtype(spec.dtype).itemsize
            self.size += -(-length // ALIGNMENT) * ALIGNMENT
        self.size = max(self.size, mmap.PAGESIZE)
        self.fd = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.size)
        self._map = mmap.mmap(self.fd, self.size)

    def array(self, index: int) -> Array:
        """A live view of tensor `index`."""
        slot = self.slots[index]
        flat: Array = np.frombuffer(
            self._map, numpy_dtype(slot.spec.dtype), slot.spec.size, slot.offset
        )
        return flat.reshape(slot.spec.shape)

    def poison(self, index: int) -> None:
        """Overwrite tensor `index` with bytes that no result holds (NaN for floating point)."""
        self.array(index).view(np.uint8)[...] = POISON

    def close(self) -> None:
        """Give the descriptor back; the memory goes when the last view is gone."""
        os.close(self.fd)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy dtype of a tensor.

    Raises:
        BadInput: NumPy has no such dtype.
    """
    try:
        return np.dtype(name)
    except TypeError:
        raise BadInput(
            f"tensors of dtype `{name}` are not supported by this backend",
            fix="Use float16, float32, float64 or an integer type.",
        ) from None


def fill(
    tensors: SharedTensors,
    count: int,
    specs: Mapping[str, InputSpec],
    generator: np.random.Generator,
) -> list[Array]:
    """Fill the first `count` tensors with fresh inputs and give the supervisor's own copies back."""
    copies = []
    for index in range(count):
        view = tensors.array(index)
        spec = specs.get(tensors.slots[index].spec.name, InputSpec())
        view[...] = draw(spec, view.shape, view.dtype, generator)
        copies.append(view.copy())
    return copies


def draw(
    spec: InputSpec, shape: tuple[int, ...], dtype: np.dtype[Any], generator: np.random.Generator
) -> Array:
    """Random values of one input tensor; integers are drawn uniformly from a small range."""
    if dtype.kind in "iu":
        low, high = (int(spec.a), int(spec.b)) if spec.distribution == "uniform" else (0, 100)
        return generator.integers(low, high, shape).astype(dtype)
    if spec.distribution == "uniform":
        return generator.uniform(spec.a, spec.b, shape).astype(dtype)
    return generator.normal(spec.a, spec.b, shape).astype(dtype)


def same_bytes(left: Array, right: Array) -> bool:
    """Bitwise equality, NaN included."""
    return bool(np.array_equal(left.view(np.uint8), right.view(np.uint8)))
