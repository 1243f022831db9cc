"""What dependencies say about times: when each task was ready, and the longest chain of them.

Tasks that do no work (`HUB`, those that no core executed) are passed through in no time: waiting for one is waiting
for the scheduler. Upstream's files tell dependencies within one `seqNo` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opratchet.errors import BadInput
from opratchet.profile.swimlane.timeline import (
    DUMMIES,
    UNKNOWN,
    Key,
    Slot,
    Timeline,
    task_name,
)


@dataclass(frozen=True)
class Step:
    """A task on the critical path.

    Attributes:
        task: Launch, call and operation, as in PyPTO's trace.
        core: Where it ran.
        psg: Number of its subgraph; None when unknown.
        leaf: Hash of its leaf function; empty when unknown.
        start_us: When it started, microseconds from the first task.
        us: How long it took, microseconds.
    """

    task: str
    core: str
    psg: int | None
    leaf: str
    start_us: float
    us: float


@dataclass(frozen=True)
class CriticalPath:
    """The longest chain of tasks that had to follow one another.

    Attributes:
        us: The sum of its tasks, microseconds: with these tasks and dependencies no schedule is shorter.
        share: `us` over the execution time.
        steps: Its tasks in order.
    """

    us: float
    share: float
    steps: tuple[Step, ...]


def ready_times(timeline: Timeline) -> dict[Key, float]:
    """When all that a task depends on had ended, microseconds; the first start where it depends on nothing.

    Raises:
        BadInput: dependencies run in a circle.
    """
    if timeline.successors is None:
        return {}
    first, _ = timeline.span
    working = {slot.key: slot for _, slot in _working(timeline)}
    ready = dict.fromkeys(timeline.successors, first)
    for key in _in_order(timeline):
        done = working[key].end if key in working else ready[key]
        for other in timeline.successors[key]:
            ready[other] = max(ready[other], done)
    return ready


def critical_path(timeline: Timeline) -> CriticalPath | None:
    """The longest chain of dependent tasks by their times; None when no file tells dependencies.

    Raises:
        BadInput: dependencies run in a circle.
    """
    if timeline.successors is None:
        return None
    placed = {slot.key: (core, slot) for core, slot in _working(timeline)}
    first, last = timeline.span
    chain = [placed[key] for key in _longest(timeline, placed) if key in placed]
    us = sum(slot.us for _, slot in chain)
    steps = tuple(_step(core, slot, first, timeline) for core, slot in chain)
    return CriticalPath(us, us / (last - first), steps)


def _step(core: str, slot: Slot, first: float, timeline: Timeline) -> Step:
    label = timeline.labels.get(slot.key, UNKNOWN)
    return Step(task_name(slot.key), core, label.psg, label.leaf, slot.start - first, slot.us)


def _working(timeline: Timeline) -> Iterator[tuple[str, Slot]]:
    """Every task that does work, with the name of its lane."""
    return (
        (lane.name, slot)
        for lane in timeline.lanes
        if lane.kind not in DUMMIES
        for slot in lane.slots
    )


def _longest(timeline: Timeline, placed: Mapping[Key, tuple[str, Slot]]) -> list[Key]:
    """The chain with the largest sum of times, found backwards: what follows a task is known before the task."""
    successors = timeline.successors or {}
    total: dict[Key, float] = {}
    following: dict[Key, Key | None] = {}
    for key in reversed(list(_in_order(timeline))):
        best = max(successors[key], key=lambda other: total[other], default=None)
        following[key] = best
        own = placed[key][1].us if key in placed else 0.0
        total[key] = own + (total[best] if best is not None else 0.0)
    chain: list[Key] = []
    here = max(total, key=lambda key: total[key], default=None)
    while here is not None:
        chain.append(here)
        here = following[here]
    return chain


def _in_order(timeline: Timeline) -> Iterator[Key]:
    """The tasks so that each comes after all it depends on (A. B. Kahn, CACM 5(11), 1962)."""
    successors = timeline.successors or {}
    missing = {key: len(before) for key, before in timeline.predecessors.items()}
    free = [key for key, count in missing.items() if not count]
    for key in free:
        yield key
        for other in successors[key]:
            missing[other] -= 1
            if not missing[other]:
                free.append(other)
    if len(free) < len(missing):
        stuck = next(key for key, count in missing.items() if count)
        raise BadInput(
            f"the dependencies run in a circle; task {task_name(stuck)} could never start",
            where="dyn_topo.txt or the flows of merged_swimlane.json",
            fix="Collect the profile again.",
        )
