"""The rates over all the core time there was.

A kernel has the cores of the kinds it uses, from the first start of a task on any core to the last end: with `N` cores
of a kind and a span of `S`, that is `N * S` of core time, idle cores and the tail included. It was spent

    busy     a task was running (overlapping tasks count once)
    bubble   no task was running on a core, although one for this kind was ready: min(idle cores, ready tasks),
             integrated over time. A task is ready when all it depends on has ended.
    the rest nothing was ready: dependencies, or too few tasks

and the rates are the shares of the first two. Load balance is the mean of the busy times over their maximum, as in
the POP methodology (Performance Optimisation and Productivity, "Standard metrics for performance analysis of parallel
applications"); with two kinds of core it is averaged, weighted by their busy times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opratchet.profile.swimlane.bubble_log import CoreFigures
from opratchet.profile.swimlane.dependencies import ready_times
from opratchet.profile.swimlane.rates import Rates
from opratchet.profile.swimlane.timeline import KINDS, Cores, Key, Lane, Timeline


@dataclass(frozen=True)
class KindUse:
    """What the cores of one kind did.

    Attributes:
        kind: `AIC` or `AIV`.
        cores: How many there are.
        used: How many had a task.
        tasks: How many tasks they executed.
        span_us: The time they had, microseconds.
        busy_us: Core time with a task, microseconds.
        bubble_us: Core time without one although one was ready, microseconds.
        longest_us: Busy time of the core with most of it, microseconds.
    """

    kind: str
    cores: int
    used: int
    tasks: int
    span_us: float
    busy_us: float
    bubble_us: float
    longest_us: float

    @property
    def core_us(self) -> float:
        """All the core time there was, microseconds."""
        return self.cores * self.span_us

    @property
    def rates(self) -> Rates:
        """The rates of this kind alone."""
        return rates([self])


def kind_uses(timeline: Timeline, cores: Cores) -> tuple[KindUse, ...]:
    """What each kind of core did.

    Without dependencies every task counts as ready from the start, so the bubble is an upper limit.

    Args:
        timeline: A run with at least one task, that took some time.
        cores: The cores of the chip, no fewer than were used.
    """
    ready = ready_times(timeline)
    return tuple(_of_kind(timeline, kind, cores.of(kind), ready) for kind in KINDS)


def _of_kind(timeline: Timeline, kind: str, cores: int, ready: Mapping[Key, float]) -> KindUse:
    first, last = timeline.span
    lanes = timeline.of(kind)
    intervals = [_merged(lane) for lane in lanes]
    busy = [sum(end - start for start, end in merged) for merged in intervals]
    waits = [(ready.get(s.key, first), s.start) for lane in lanes for s in lane.slots]
    return KindUse(
        kind=kind,
        cores=cores,
        used=sum(1 for lane in lanes if lane.slots),
        tasks=sum(len(lane.slots) for lane in lanes),
        span_us=last - first,
        busy_us=sum(busy),
        bubble_us=_bubble(cores, [part for merged in intervals for part in merged], waits),
        longest_us=max(busy, default=0.0),
    )


def _merged(lane: Lane) -> list[tuple[float, float]]:
    """When a core was busy: its tasks as intervals that do not overlap."""
    found: list[tuple[float, float]] = []
    for start, end in sorted((slot.start, slot.end) for slot in lane.slots):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _bubble(
    cores: int, busy: Sequence[tuple[float, float]], waits: Sequence[tuple[float, float]]
) -> float:
    """Core time lost while tasks were ready: a sweep over the times at which anything changes."""
    changes = [(time, step, 0) for start, end in busy for time, step in ((start, -1), (end, 1))]
    changes += [
        (time, 0, step)
        for start, end in waits
        if start < end
        for time, step in ((start, 1), (end, -1))
    ]
    lost, idle, ready, now = 0.0, cores, 0, 0.0
    for time, more_idle, more_ready in sorted(changes):
        lost += min(idle, ready) * (time - now) if ready > 0 and idle > 0 else 0.0
        idle, ready, now = idle + more_idle, ready + more_ready, time
    return lost


def rates(uses: Sequence[KindUse]) -> Rates:
    """The rates over the kinds that had a task; one of them has to have been busy."""
    used = [use for use in uses if use.tasks]
    core_us = sum(use.core_us for use in used)
    busy_us = sum(use.busy_us for use in used)
    if not busy_us:
        return Rates(0.0, 0.0, 1.0)
    balanced = sum(
        use.busy_us * use.busy_us / (use.cores * use.longest_us) for use in used if use.longest_us
    )
    return Rates(
        core_utilisation=busy_us / core_us,
        bubble=sum(use.bubble_us for use in used) / core_us,
        load_balance=balanced / busy_us,
    )


def uses_of_log(log: Sequence[CoreFigures], cores: Cores) -> tuple[KindUse, ...]:
    """The same from the log alone, which has no times: waits for the scheduler stand for the bubble.

    The span is the longest work, which begins at the first start of anything, so all figures are lower limits.
    """
    span = max(core.work for core in log if core.is_core)
    return tuple(
        _of_log(kind, [core for core in log if core.kind == kind], cores.of(kind), span)
        for kind in KINDS
    )


def _of_log(kind: str, log: Sequence[CoreFigures], cores: int, span: float) -> KindUse:
    busy = [
        min(max(core.aicore, 0.0), core.work) for core in log
    ]  # overlapping tasks count twice there
    lost = [
        min(max(core.schedule, 0.0), core.work - own) for core, own in zip(log, busy, strict=True)
    ]
    return KindUse(
        kind=kind,
        cores=cores,
        used=sum(1 for core in log if core.tasks),
        tasks=sum(core.tasks for core in log),
        span_us=span,
        busy_us=sum(busy),
        bubble_us=sum(lost),
        longest_us=max(busy, default=0.0),
    )
