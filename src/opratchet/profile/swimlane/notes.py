"""What the figures of an analysis leave out or rest on, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opratchet.ledger.plural import counted
from opratchet.profile.swimlane import upstream
from opratchet.profile.swimlane.bubble_log import CoreFigures
from opratchet.profile.swimlane.evidence import Evidence
from opratchet.profile.swimlane.timeline import AIC, Cores, Timeline

SHOWN = 5  # names in one sentence


def notes_on(
    evidence: Evidence,
    timeline: Timeline | None,
    figures: Sequence[CoreFigures],
    given: Cores | None,
) -> tuple[str, ...]:
    """All notes.

    Args:
        evidence: What was read.
        timeline: The lanes; None where only a log was read.
        figures: What upstream's rates were computed from.
        given: The cores of the chip that were given.
    """
    return (
        *_on_files(evidence, given),
        *_on_upstream(figures),
        *_on_agreement(evidence, timeline),
        *_on_dependencies(evidence, timeline),
    )


def _on_files(evidence: Evidence, given: Cores | None) -> Iterator[str]:
    for place in evidence.files.left_aside:
        yield f"{place.name} holds files of the same run from the cost model; they were left aside"
    if evidence.tasks is None and evidence.trace is None:
        yield (
            "only the log was read: honest rates are lower limits, as it tells no times of tasks; "
            "there are no subgraphs and no critical path"
        )
    if not evidence.lists_idle_cores and given is None:
        yield (
            "files of a device list only cores that had a task: with idle cores beside them the "
            "honest rates are lower, and whether a subgraph fills the cores is unknown; give `cores`"
        )


def _on_upstream(figures: Sequence[CoreFigures]) -> Iterator[str]:
    lost = [core.name for core in figures if core.is_core and not upstream.is_counted(core)]
    if lost:
        yield f"upstream's script drops {_named(lost)}: a figure there is negative or has an exponent"
    if sum(1 for core in figures if core.kind == AIC and upstream.is_counted(core)) < 2:
        yield "upstream's load balance is 1 by definition: it looks at AIC cores, and finds fewer than two"
    idle = sum(1 for core in figures if core.is_core and not core.tasks)
    if idle:
        yield (
            f"upstream's rates count {counted(idle, 'idle core')} as 0, as the log lists them; "
            "that of a device does not"
        )


def _on_agreement(evidence: Evidence, timeline: Timeline | None) -> Iterator[str]:
    if evidence.log is not None and timeline is not None:
        known = timeline.successors is not None
        computed = upstream.figures(timeline)
        wrong = upstream.disagreements(evidence.log, computed, dependencies=known)
        if wrong:
            yield f"bubble_analysis.log does not agree with the tasks for {_named(wrong)}"
    if evidence.tasks is not None and evidence.trace is not None:
        raw = {task.key for core in evidence.tasks.cores for task in core.tasks}
        drawn = {slot.key for slot in evidence.trace.timeline.slots()}
        if not drawn <= raw:
            missing = counted(len(drawn - raw), "task")
            yield f"merged_swimlane.json draws {missing} that the raw list does not have"


def _on_dependencies(evidence: Evidence, timeline: Timeline | None) -> Iterator[str]:
    if timeline is None:
        return
    if timeline.successors is None:
        drawn = evidence.trace is not None and evidence.trace.flows
        why = "flows do not meet tasks" if drawn else "no file tells dependencies"
        yield f"{why}: the bubbles are upper limits, and there is no critical path"
        return
    keys = {slot.key for slot in timeline.slots()}
    alone = len(keys - timeline.successors.keys())
    if alone:
        yield f"{counted(alone, 'task')} without a line in the topology: taken as ready from the start"
    launches = len({seq for seq, _ in keys})
    if launches > 1:
        yield (
            f"{launches} launches (seqNo), and dependencies are told within each only: "
            "the critical path lies within one, and time between launches counts as bubble"
        )


def _named(names: Sequence[str]) -> str:
    listed = ", ".join(names[:SHOWN])
    return listed if len(names) <= SHOWN else f"{listed} and {len(names) - SHOWN} more"
