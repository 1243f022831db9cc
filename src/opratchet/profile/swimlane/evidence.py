"""The files of a run, read, and what they say together: the clock, the lanes, and the cores of the chip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.profile.swimlane.bubble_log import CoreFigures, read_log
from opratchet.profile.swimlane.files import SIMULATED_TASKS, RunFiles
from opratchet.profile.swimlane.machine_report import MachineReport, read_report
from opratchet.profile.swimlane.reading import damaged
from opratchet.profile.swimlane.tasks import Tasks, read_tasks
from opratchet.profile.swimlane.timeline import AIC, AIV, KINDS, Cores, Timeline
from opratchet.profile.swimlane.topology import Topology, read_topology
from opratchet.profile.swimlane.trace import Trace, read_trace

# PyPTO's cost model draws its traces with this clock (1.8 GHz), whatever the chip.
SIMULATED_CYCLES_PER_US = 1800.0
SLOWEST, FASTEST = 1e-3, 1e6  # ticks in a microsecond that a counter may have


@dataclass(frozen=True)
class Evidence:
    """What was read; None for files that are not there."""

    files: RunFiles
    tasks: Tasks | None
    trace: Trace | None
    log: tuple[CoreFigures, ...] | None
    report: MachineReport | None
    topology: Topology | None

    @property
    def source(self) -> Path:
        """The file that the times come from."""
        return self.files.tasks or self.files.trace or self.files.log or self.files.folder

    @property
    def lists_idle_cores(self) -> bool:
        """Whether the files name every core of the chip: the cost model's do, a device's need not."""
        return self.files.simulated


def read(files: RunFiles) -> Evidence:
    """Read every file of a run.

    Raises:
        BadInput: one of them cannot be read, is empty, torn, or of another tool.
    """
    return Evidence(
        files,
        read_tasks(files.tasks) if files.tasks else None,
        read_trace(files.trace) if files.trace else None,
        read_log(files.log) if files.log else None,
        read_report(files.report) if files.report else None,
        read_topology(files.topology) if files.topology else None,
    )


def clock_of(evidence: Evidence, given: float | None) -> float | None:
    """Ticks of the counter of the raw tasks in a microsecond; None where there are none.

    As given; else 1800 for the cost model; else what the log or the trace, which are in microseconds, make of it.

    Raises:
        BadInput: the figure given cannot be one, or none was given and nothing tells it.
    """
    if given is not None and not SLOWEST <= given <= FASTEST:
        what = f"{given} ticks in a microsecond is no clock"
        raise BadInput(what, where="cycles_per_us", fix="Give a number such as 50 or 1800.")
    if evidence.tasks is None or given is not None:
        return given if evidence.tasks is not None else None
    if evidence.files.tasks and evidence.files.tasks.name == SIMULATED_TASKS:
        return SIMULATED_CYCLES_PER_US
    return _clock_by_others(evidence, evidence.tasks)


def _clock_by_others(evidence: Evidence, tasks: Tasks) -> float:
    cycles, us = 0, 0.0
    if evidence.log is not None:
        cycles, us = tasks.upstream_cycles, max(c.work for c in evidence.log if c.is_core)
    elif evidence.trace is not None and any(evidence.trace.timeline.slots()):
        first, last = evidence.trace.timeline.span
        cycles, us = tasks.span_cycles, last - first
    clock = round(cycles / us, 3) if us > 0 else 0.0
    if not SLOWEST <= clock <= FASTEST:
        raise BadInput(
            "no file tells how many ticks of the device's counter make a microsecond",
            where=str(evidence.source),
            fix="Give cycles_per_us: 50 on A2 and A3 (910B, 910C), 1000 on A5 (950).",
        )
    return clock


def timeline_of(evidence: Evidence, clock: float | None) -> Timeline | None:
    """The lanes with all that is known of their tasks; None where only a log was read.

    Raises:
        BadInput: no task ran on a core, or no time passed.
    """
    if evidence.tasks is not None and clock is not None:
        timeline = evidence.tasks.timeline(clock)
    elif evidence.trace is not None:
        timeline = evidence.trace.timeline
    else:
        return None
    if not any(timeline.slots()):
        raise damaged(evidence.source, "no task ran on an AIC or AIV core")
    if not timeline.span[0] < timeline.span[1]:
        raise damaged(evidence.source, "no time passes between the first start and the last end")
    return _completed(timeline, evidence)


def _completed(timeline: Timeline, evidence: Evidence) -> Timeline:
    """Dependencies and labels from the file that tells them best."""
    drawn = evidence.trace.timeline if evidence.trace else Timeline(())
    topology = evidence.topology
    return replace(
        timeline,
        successors=topology.successors if topology else drawn.successors,
        labels={**timeline.labels, **drawn.labels, **(topology.labels if topology else {})},
    )


def chip_cores(evidence: Evidence, timeline: Timeline | None, given: Cores | None) -> Cores:
    """The cores of the chip: as given, else all that the files list or the cost model reports.

    Raises:
        BadInput: fewer are given than had a task.
    """
    listed, used = _seen(evidence, timeline)
    if given is None:
        reported = evidence.report.cores if evidence.report else Cores(0, 0)
        return Cores(max(listed.aic, reported.aic), max(listed.aiv, reported.aiv))
    for kind in KINDS:
        if given.of(kind) < used.of(kind):
            raise BadInput(
                f"{given.of(kind)} {kind} cores are given, and {used.of(kind)} had a task",
                where="cores",
                fix="Give the cores of the whole chip, e.g. 24 AIC and 48 AIV.",
            )
    return given


def _seen(evidence: Evidence, timeline: Timeline | None) -> tuple[Cores, Cores]:
    """How many cores are listed, and how many of them had a task."""
    if timeline is not None:
        seen = [(lane.kind, len(lane.slots)) for lane in timeline.lanes]
    else:
        seen = [(core.kind, core.tasks) for core in evidence.log or ()]
    listed, used = [k for k, _ in seen], [k for k, tasks in seen if tasks]
    return _counts(listed), _counts(used)


def _counts(kinds: list[str]) -> Cores:
    return Cores(kinds.count(AIC), kinds.count(AIV))
