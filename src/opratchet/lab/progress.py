"""Whether the calls of a batch do their work as they are made, or one of them does it for many: watched while the batch runs.

A kernel that knows the size of its batch (it shares a process with the loop, so nothing can hide it) can put its calls off and
do all their work in the last one, at less cost. When the batch ends its outputs are right. So while the supervisor waits for the
end, it also looks at a byte that it has poisoned in the output of one call out of the first half, taken at random. Calls that
work as they are made have overwritten it when their share of the batch is over; calls that were put off have not.

A single late sight is no evidence, as the worker may have lost its CPU at the beginning of a batch.
"""

from __future__ import annotations

import mmap
import time
from dataclasses import dataclass

FEWEST_CALLS = 4  # of a batch that is watched
MARGIN = 0.25  # of a batch, by which a call may be late
FEWEST_WATCHED = 6
SHARE = 0.6  # of the watched batches, from which on lateness has to be explained


@dataclass
class Witness:
    """A poisoned byte in the output of one call.

    Attributes:
        memory: The tensors.
        place: Where the byte lies.
        byte: What it was poisoned with.
        due: Share of the batch after which the call should be over.
        poisoned_at: When the poison was last seen, nanoseconds.
    """

    memory: mmap.mmap
    place: int
    byte: int
    due: float
    poisoned_at: int = 0

    def is_gone(self) -> bool:
        """Whether the poison is overwritten by now."""
        if self.memory[self.place] != self.byte:
            return True
        self.poisoned_at = time.perf_counter_ns()
        return False


@dataclass
class Progress:
    """What was seen of one worker's batches.

    Attributes:
        watched: Batches that were looked into.
        late: Those of them in which the poison was there when it should have been gone.
    """

    watched: int = 0
    late: int = 0

    def saw(self, witness: Witness | None, start: int, end: int) -> None:
        """A batch ran from `start` to `end`, nanoseconds."""
        if witness is not None and witness.poisoned_at:
            self.watched += 1
            self.late += witness.poisoned_at - start > (witness.due + MARGIN) * (end - start)

    def evidence(self) -> str:
        """Evidence that calls were put off, or an empty text."""
        if self.watched < FEWEST_WATCHED or self.late < SHARE * self.watched:
            return ""
        return (
            f"in {self.late} of {self.watched} batches that were watched, calls had not done their work long after they "
            "should have: it was put off"
        )
