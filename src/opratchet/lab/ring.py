"""What a kernel is called on: sets of tensors whose content only the supervisor decides.

Each call of a timed batch has a set of its own, so a kernel gains nothing by remembering an earlier answer, and what every
call has left behind can be looked at. Before each batch

- the inputs of every set are drawn anew (`lab.pool`), from random numbers that are the supervisor's own. So what an input held
  before the batch is known without trusting the memory that the kernel can write to, and no kernel can know what comes;
- a stretch of every output, at a random place, is poisoned. A call that did nothing leaves it there.

Right after a batch the poisoned stretches of all sets are looked at; of some batches, one set in full is kept to be
compared with the golden. Rotating the tensors of successive calls is an old practice in timing kernels (`--rotating` of
hipBLASLt's bench): it also keeps a kernel from finding its tensors in the nearest cache, where no caller would leave them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opratchet.backend.base import TensorSpec
from opratchet.lab.pool import Draw, Pool
from opratchet.lab.progress import FEWEST_CALLS, Witness
from opratchet.lab.tensors import Array, SharedTensors, numpy_dtype
from opratchet.operator.model import InputSpec

MOST_SETS = 256
RING_BYTES = 64 << 20
STRETCH = 64  # elements of an output that are poisoned before a batch
POISON = 0xFF  # a NaN in every floating-point type


@dataclass(frozen=True)
class Poisoned:
    """Where the outputs of the last batch were poisoned: `sets` sets, and by output the first element and the byte."""

    sets: int
    places: Mapping[int, tuple[int, int]]


class Ring:
    """The sets of tensors of one workload.

    Args:
        specs: The kernel's tensors in the order of its signature.
        inputs: How many of them, the leading ones, are inputs.
        described: What the inputs hold, by name; standard normal where nothing is said.
        generator: Where all randomness comes from; seeded by the operating system, never by the user.
    """

    def __init__(
        self,
        specs: Sequence[TensorSpec],
        inputs: int,
        described: Mapping[str, InputSpec],
        generator: np.random.Generator,
    ) -> None:
        self.tensors = SharedTensors(specs)
        self.inputs = inputs
        self._generator = generator
        self._pools = [
            Pool(spec, described.get(spec.name, InputSpec()), generator) for spec in specs[:inputs]
        ]
        self._draws: list[list[Draw]] = []
        self._poisoned = Poisoned(0, {})

    @property
    def _outputs(self) -> range:
        return range(self.inputs, len(self.tensors.slots))

    def reserve(self, calls: int) -> None:
        """Have a set for each of so many calls, as far as the memory set aside for it goes."""
        affordable = max(1, RING_BYTES // self.tensors.stride)
        self.tensors.grow(min(calls, MOST_SETS, affordable))

    def renew(self, calls: int) -> None:
        """Draw the inputs of so many calls and poison a stretch of their outputs."""
        sets = min(calls, self.tensors.sets)
        self._draws = [[pool.draw() for pool in self._pools] for _ in range(sets)]
        for of_set, draws in enumerate(self._draws):
            for index, drawn in enumerate(draws):
                self._pools[index].write(drawn, self.tensors.array(index, of_set))
        self._poisoned = Poisoned(
            sets, {index: self._poison(index, sets) for index in self._outputs}
        )

    def given(self, index: int, of_set: int) -> Array:
        """What input `index` of a set held before the batch, computed once more from the supervisor's own memory."""
        spec = self.tensors.slots[index].spec
        values: Array = np.empty(spec.shape, numpy_dtype(spec.dtype))
        self._pools[index].write(self._draws[of_set][index], values)
        return values

    def _poison(self, index: int, sets: int) -> tuple[int, int]:
        spec = self.tensors.slots[index].spec
        length = min(STRETCH, spec.size)
        start = int(self._generator.integers(0, spec.size - length, endpoint=True))
        floating = numpy_dtype(spec.dtype).kind == "f"
        byte = POISON if floating else int(self._generator.integers(1, 255))
        self._bytes(index, sets, start)[...] = byte
        return start, byte

    def _bytes(self, index: int, sets: int, start: int) -> Array:
        """The bytes of a stretch, one row a set."""
        length = min(STRETCH, self.tensors.slots[index].spec.size)
        return self.tensors.stretch(index, sets, start, length).view(np.uint8)

    def untouched(self) -> str:
        """Evidence that a call of the last batch left an output as it was, or an empty text."""
        for index, (start, byte) in self._poisoned.places.items():
            left = (self._bytes(index, self._poisoned.sets, start) == byte).all(axis=1)
            if left.any():
                name = self.tensors.slots[index].spec.name
                return (
                    f"{int(left.sum())} of {self._poisoned.sets} calls in a row left {name} "
                    f"as it was from element {start} on"
                )
        return ""

    def witness(self, calls: int) -> Witness | None:
        """A poisoned byte of one call in the first half of the next batch; None where it has too few calls."""
        if calls < FEWEST_CALLS:
            return None
        call = int(self._generator.integers(min(calls // 2, self._poisoned.sets)))
        start, byte = self._poisoned.places[self.inputs]
        slot = self.tensors.slots[self.inputs]
        place = slot.offset + start * numpy_dtype(slot.spec.dtype).itemsize
        due = (call + 2) / calls
        return Witness(self.tensors.memory, call * self.tensors.stride + place, byte, due)

    def poison_all(self) -> None:
        """Poison the outputs of the first set wholly."""
        for index in self._outputs:
            self.tensors.array(index).view(np.uint8)[...] = POISON

    def any_set(self) -> int:
        """One set of the last batch, at random."""
        return int(self._generator.integers(self._poisoned.sets))

    def seen(self, of_set: int) -> list[Array]:
        """Copies of all tensors of a set as they are now."""
        return [
            self.tensors.array(index, of_set).copy() for index in range(len(self.tensors.slots))
        ]

    def close(self) -> None:
        """Give the memory back."""
        self.tensors.close()
