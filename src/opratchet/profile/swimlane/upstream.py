"""The rates as PyPTO's own scripts compute them, so that a stop rule written for them means the same here.

The drawing script counts, for each core, in the order of its tasks and with `t0` the first start of anything:

    work     = end of its last task - t0
    wait     = sum over its tasks of (start - end of the task before, or t0)
    schedule = sum over its tasks of (start - max(end of the task before, ends of all tasks it depends on))

and writes them to `bubble_analysis.log`. The analysing script reads them back with a pattern that knows digits and
dots only, and averages over the cores it found:

    core utilisation = (work - wait) / work            bubble = schedule / (work - wait + schedule)
    load balance     = 1 - standard deviation / mean of (work - wait) over the AIC cores; 1 with fewer than two
    execution time   = largest work

What that leaves out: the time after a core's own last task; cores without a task, where the log does not list them
(that of a device) while they count as 0 where it does (that of the cost model); and every core with a negative
figure, which overlapping tasks give, or one so small that Python writes it with an exponent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, pstdev

from opratchet.profile.swimlane.bubble_log import CoreFigures
from opratchet.profile.swimlane.rates import Rates
from opratchet.profile.swimlane.timeline import AIC, Key, Lane, Timeline

FAKE_CORE = "Fake Core"
# A task that no core executed is drawn one microsecond long.
FAKE_US = 1.0
# What may lie between figures of the log and the same ones computed from tasks, microseconds: rounding.
AGREEMENT_US = 1e-5

_PLAIN = re.compile(r"[\d.]+")


def figures(timeline: Timeline) -> tuple[CoreFigures, ...]:
    """What the drawing script writes to the log for these tasks; there has to be one."""
    lanes = [lane for lane in timeline.lanes if lane.kind != FAKE_CORE]
    first = min(slot.start for lane in lanes for slot in lane.slots)
    ready = _ready(timeline, first)
    return tuple(_of_lane(lane, first, ready) for lane in lanes)


def _of_lane(lane: Lane, first: float, ready: Mapping[Key, float]) -> CoreFigures:
    before = first
    wait = schedule = 0.0
    for slot in lane.slots:
        schedule += slot.start - max(before, ready.get(slot.key, first))
        wait += slot.start - before
        before = slot.end
    return CoreFigures(lane.name, len(lane.slots), before - first, wait, schedule, wait - schedule)


def _ready(timeline: Timeline, first: float) -> dict[Key, float]:
    """When the last task that each one depends on had ended."""
    if timeline.successors is None:
        return {}
    real = {
        slot.key: (slot.start, slot.end)
        for lane in timeline.lanes
        if lane.kind != FAKE_CORE
        for slot in lane.slots
    }
    ends = {key: end for key, (_, end) in real.items()}
    ends.update(_fake_ends(timeline, real, first))
    return {
        key: max((ends[other] for other in before), default=first)
        for key, before in timeline.predecessors.items()
        if key in real
    }


def _fake_ends(
    timeline: Timeline,
    real: Mapping[Key, tuple[float, float]],
    first: float,
) -> dict[Key, float]:
    """Where the drawing script ends tasks that no core executed: at the first start of those that wait for it."""
    successors = timeline.successors or {}
    found: dict[Key, float] = {}
    nowhere = first
    for key in successors:
        if key in real:
            continue
        starts = [real[other][0] for other in successors[key] if other in real]
        ends = [real[other][1] for other in timeline.predecessors[key] if other in real]
        if starts:
            found[key] = min(starts)
        elif ends:
            found[key] = max(ends) + FAKE_US
        else:
            found[key] = nowhere + FAKE_US
            nowhere += 3 * FAKE_US
    return found


def is_counted(core: CoreFigures) -> bool:
    """Whether the analysing script finds a core: its pattern knows no minus and no exponent.

    Only the start of the last figure has to match, so an exponent there goes unseen.
    """
    whole = (core.work, core.wait, core.schedule)
    return (
        core.is_core
        and all(_PLAIN.fullmatch(repr(value)) for value in whole)
        and _PLAIN.match(repr(core.predecessor)) is not None
    )


def rates(cores: Iterable[CoreFigures]) -> Rates:
    """The rates over the cores that the analysing script finds; no utilisation and no bubble where there is none."""
    counted = [core for core in cores if is_counted(core)]
    if not counted:
        return Rates(0.0, 0.0, 1.0)
    return Rates(
        core_utilisation=fmean(_share(core.aicore, core.wait) for core in counted),
        bubble=fmean(_share(core.schedule, core.aicore) for core in counted),
        load_balance=_load_balance([core.aicore for core in counted if core.kind == AIC]),
    )


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest else 0.0


def _load_balance(times: Sequence[float]) -> float:
    if len(times) < 2:
        return 1.0
    mean = fmean(times)
    return 1 - pstdev(times) / mean if mean > 0 else 0.0


def execution_us(cores: Iterable[CoreFigures]) -> float:
    """Upstream's execution time, microseconds."""
    return max((core.work for core in cores if is_counted(core)), default=0.0)


def disagreements(
    log: Iterable[CoreFigures], computed: Iterable[CoreFigures], *, dependencies: bool
) -> list[str]:
    """Cores whose figures in the log are not those that their tasks give.

    Args:
        log: The blocks of the log.
        computed: The figures of `figures`.
        dependencies: Whether they were known; without them waits for the scheduler cannot be compared.
    """
    ours = {core.name: core for core in computed}
    theirs = {core.name: core for core in log if core.kind != FAKE_CORE}
    names = [*theirs, *(name for name in ours if name not in theirs)]
    return [name for name in names if not _agree(theirs.get(name), ours.get(name), dependencies)]


def _agree(log: CoreFigures | None, ours: CoreFigures | None, dependencies: bool) -> bool:
    if log is None or ours is None:
        return False
    pairs = [(log.work, ours.work), (log.wait, ours.wait)]
    if dependencies:
        pairs.append((log.schedule, ours.schedule))
    return log.tasks == ours.tasks and all(abs(a - b) <= AGREEMENT_US for a, b in pairs)
