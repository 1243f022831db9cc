"""The tensors of one workload in memory that the supervisor owns and run workers share.

There may be several sets of them, one behind the other, each aligned to a page. What a worker maps is a memory file
without a name: nothing else on the machine can open it. `lab.ring` says what the supervisor writes there.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opratchet.backend.base import TensorSpec
from opratchet.errors import BadInput
from opratchet.lab.memory import memory_file

ALIGNMENT = 64
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
    """A memory file that holds some tensors one after another, each aligned to a cache line, in one or more sets.

    Attributes:
        slots: Where each tensor lies in a set.
        stride: Bytes from one set to the next.
        sets: How many sets there are.
        fd: Descriptor of the memory file.
    """

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self.slots: list[Slot] = []
        used = 0
        for spec in specs:
            self.slots.append(Slot(spec, used))
            length = spec.size * numpy_dtype(spec.dtype).itemsize
            used += _rounded(length, ALIGNMENT)
        self.stride = max(_rounded(used, mmap.PAGESIZE), mmap.PAGESIZE)
        self.sets = 0
        self.fd = memory_file("tensors")
        self.grow(1)

    @property
    def size(self) -> int:
        """Bytes of all sets."""
        return self.stride * self.sets

    def grow(self, sets: int) -> None:
        """Have at least so many sets; those that are there keep their content, and views of them stay valid."""
        if sets > self.sets:
            self.sets = sets
            os.ftruncate(self.fd, self.size)
            self._map = mmap.mmap(self.fd, self.size)

    def array(self, index: int, of_set: int = 0) -> Array:
        """A live view of tensor `index` in a set."""
        slot = self.slots[index]
        offset = of_set * self.stride + slot.offset
        flat: Array = np.frombuffer(self._map, numpy_dtype(slot.spec.dtype), slot.spec.size, offset)
        return flat.reshape(slot.spec.shape)

    def stretch(self, index: int, sets: int, start: int, count: int) -> Array:
        """A live view of `count` elements of tensor `index`, flat, from `start` on, in the first `sets` sets: one row a set."""
        slot, dtype = self.slots[index], numpy_dtype(self.slots[index].spec.dtype)
        offset = slot.offset + start * dtype.itemsize
        view: Array = np.ndarray(
            (sets, count), dtype, self._map, offset, (self.stride, dtype.itemsize)
        )
        return view

    @property
    def memory(self) -> mmap.mmap:
        """All sets as they lie in memory."""
        return self._map

    def close(self) -> None:
        """Give the descriptor back; the memory goes when the last view is gone."""
        os.close(self.fd)


def _rounded(length: int, unit: int) -> int:
    return -(-length // unit) * unit


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
