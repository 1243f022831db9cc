"""A run as lanes on one time axis, and what had to wait for what.

Every reader ends here, so that no metric has to know which file its figures come from. A lane is a core, or what
PyPTO lists like one: `HUB` (the cost model) and `Fake Core` (the drawing script) carry tasks that only tie
dependencies together and do no work, `AI-CPU` is a processor beside the cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

AIC, AIV = "AIC", "AIV"
KINDS = (AIC, AIV)
DUMMIES = ("HUB", "Fake Core")
NO_LEAF = "0"  # the hash of a task that does no work

# A task id holds the call of its root function above bit 20, in 11 bits, and the operation below.
_CALL_BITS = 20
_CALL_MASK = (1 << 11) - 1

# What no run takes, microseconds: a time beyond it (30 years) is damage.
LONGEST_US = 1e15

Key = tuple[int, int]  # seqNo (which launch of stitched functions) and taskId (unique within it)
Successors = Mapping[Key, tuple[Key, ...]]


@dataclass(frozen=True, slots=True)
class Cores:
    """How many cores a chip has: cube cores (AIC) and vector cores (AIV)."""

    aic: int
    aiv: int

    def of(self, kind: str) -> int:
        """The number of cores of one kind."""
        return self.aic if kind == AIC else self.aiv


@dataclass(frozen=True, slots=True)
class Slot:
    """One task in its place on a lane.

    Attributes:
        key: seqNo and taskId.
        start: When it began, microseconds.
        end: When it ended, microseconds; not before `start`.
    """

    key: Key
    start: float
    end: float

    @property
    def us(self) -> float:
        """How long it took, microseconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Lane:
    """A core and its tasks, in the order of the file.

    Attributes:
        name: As PyPTO's own files call it, e.g. `AIV_25`.
        kind: `AIC`, `AIV`, or what else PyPTO lists.
        slots: Its tasks; they may overlap.
    """

    name: str
    kind: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """Which subgraph a task is an instance of.

    Attributes:
        leaf: Hash of the leaf function; empty when unknown.
        psg: Number of the subgraph within its root function; None when unknown.
    """

    leaf: str
    psg: int | None


UNKNOWN = Label("", None)


@dataclass(frozen=True)
class Timeline:
    """All lanes of one run.

    Attributes:
        lanes: Cores and dummies.
        successors: Tasks that wait for a task, each of them a key itself; None when no file tells dependencies.
        labels: Subgraph of each task that has one.
    """

    lanes: tuple[Lane, ...]
    successors: Successors | None = None
    labels: Mapping[Key, Label] = field(default_factory=dict)

    def of(self, kind: str) -> tuple[Lane, ...]:
        """The lanes of one kind."""
        return tuple(lane for lane in self.lanes if lane.kind == kind)

    def slots(self) -> Iterator[Slot]:
        """Every task that ran on an AIC or AIV core."""
        return (slot for lane in self.lanes if lane.kind in KINDS for slot in lane.slots)

    @cached_property
    def span(self) -> tuple[float, float]:
        """First start and last end on the cores, microseconds; there has to be a task."""
        slots = list(self.slots())
        return min(slot.start for slot in slots), max(slot.end for slot in slots)

    @cached_property
    def predecessors(self) -> Mapping[Key, list[Key]]:
        """What each task waits for; empty when no file tells dependencies."""
        successors = self.successors or {}
        found: dict[Key, list[Key]] = {key: [] for key in successors}
        for key, after in successors.items():
            for other in after:
                found[other].append(key)
        return found


def kind_of(core_type: str) -> str:
    """The kind behind a `coreType` or the name of a lane, e.g. `AIV` for `AIV_25`."""
    return next((kind for kind in KINDS if kind in core_type), core_type)


def call_of(key: Key) -> Key:
    """Which call of a root function a task belongs to: seqNo, and the number of the call within it."""
    seq, task = key
    return seq, task >> _CALL_BITS & _CALL_MASK


def task_name(key: Key) -> str:
    """A task as PyPTO's trace calls it: launch, call, operation."""
    seq, call = call_of(key)
    return f"{seq}-{call}-{key[1] & (1 << _CALL_BITS) - 1}"
