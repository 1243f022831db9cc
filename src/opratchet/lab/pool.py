"""Random inputs by the megabyte: each a fresh mix of two stretches of a pool, which costs a few passes over memory.

Drawing each element of each call of each batch would take longer than what is timed. A stretch of one pool alone would repeat
earlier inputs, shifted, and a kernel could learn the pool. So two stretches at random places are mixed by a random amount, in
a way that keeps the distribution:

- normal: `mean + cos(t) (a - mean) + sin(t) (b - mean)` of normal a, b with the same deviation is normal with it again;
- uniform, and integers: `low + (a - low + b - low + t) mod (high - low)` is uniform again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opratchet.backend.base import TensorSpec
from opratchet.lab.tensors import Array, numpy_dtype
from opratchet.operator.model import InputSpec

LEAST_PLAY = 4096  # places at which a stretch may begin, at least
MOST_PLAY = 1 << 16
INTEGERS = InputSpec("uniform", 0, 100)


@dataclass(frozen=True)
class Draw:
    """One input: where its two stretches begin, and how they are mixed (0 to 1)."""

    first: int
    second: int
    mix: float


class Pool:
    """Where one input tensor is drawn from.

    Args:
        spec: The tensor.
        wanted: What it holds. Integers are drawn from `[low, high)`, 0 to 99 where nothing is said.
        generator: Where the randomness comes from.
    """

    def __init__(self, spec: TensorSpec, wanted: InputSpec, generator: np.random.Generator) -> None:
        dtype = numpy_dtype(spec.dtype)
        self._generator = generator
        self._size = spec.size
        self._play = max(LEAST_PLAY, min(spec.size, MOST_PLAY))
        self._integer = dtype.kind in "iu"
        self._wanted = INTEGERS if self._integer and wanted.distribution == "normal" else wanted
        self._normal = self._wanted.distribution == "normal"
        # Arithmetic in float16 is slow on a CPU, and in integers of 8 bits it overflows.
        self._dtype = np.dtype(np.int64) if self._integer else np.result_type(dtype, np.float32)
        self._numbers = self._drawn(spec.size + self._play)
        self._scratch = np.empty(spec.size, self._dtype)
        self._mixed = np.empty(0 if dtype == self._dtype else spec.size, self._dtype)

    @property
    def _width(self) -> float:
        return self._wanted.b - self._wanted.a

    def _drawn(self, count: int) -> Array:
        """Random numbers, counted from the mean or from the lower end."""
        if self._integer:
            return self._generator.integers(0, max(1, int(self._width)), count)
        if self._normal:
            return self._generator.normal(0.0, self._wanted.b, count).astype(self._dtype)
        return self._generator.uniform(0.0, self._width, count).astype(self._dtype)

    def draw(self) -> Draw:
        """The next input."""
        first, second = self._generator.integers(0, self._play, 2, endpoint=True)
        return Draw(int(first), int(second), float(self._generator.random()))

    def write(self, draw: Draw, out: Array) -> None:
        """Write an input into memory; the same draw gives the same bits every time."""
        first = self._numbers[draw.first : draw.first + self._size]
        second = self._numbers[draw.second : draw.second + self._size]
        mix = self._turned if self._normal else self._shifted
        flat = out.reshape(-1)
        if flat.dtype == self._dtype:
            mix(first, second, draw.mix, flat)
        else:
            mix(first, second, draw.mix, self._mixed)
            flat[...] = self._mixed

    def _turned(self, first: Array, second: Array, mix: float, out: Array) -> None:
        angle, number = 2.0 * math.pi * mix, self._dtype.type
        np.multiply(first, number(math.cos(angle)), out=out)
        np.multiply(second, number(math.sin(angle)), out=self._scratch)
        out += self._scratch
        if self._wanted.a:
            out += number(self._wanted.a)

    def _shifted(self, first: Array, second: Array, mix: float, out: Array) -> None:
        number, width = self._dtype.type, self._dtype.type(self._width)
        np.add(first, second, out=out)
        out += number(mix * self._width)
        for _ in range(2):  # below three widths; a division takes ten times as long
            np.multiply(out >= width, width, out=self._scratch)
            out -= self._scratch
        if self._wanted.a:
            out += number(self._wanted.a)
