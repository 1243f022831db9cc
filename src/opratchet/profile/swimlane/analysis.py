"""The whole analysis of one run: read what is there, compute what it allows, and say what it does not.

Times come from the raw tasks where they are there, else from the trace, else from the log; dependencies from the
topology, else from the flows of the trace. Upstream's rates come from the log, else from the same figures computed
from the tasks; where both are there, every core for which they differ is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.ledger.words import MetricKind
from opratchet.profile.swimlane import honest, upstream
from opratchet.profile.swimlane.bubble_log import CoreFigures
from opratchet.profile.swimlane.dependencies import critical_path
from opratchet.profile.swimlane.evidence import (
    Evidence,
    chip_cores,
    clock_of,
    read,
    timeline_of,
)
from opratchet.profile.swimlane.files import find_run
from opratchet.profile.swimlane.honest import KindUse
from opratchet.profile.swimlane.merge_guide import MergeGroup, merge_guide
from opratchet.profile.swimlane.notes import notes_on
from opratchet.profile.swimlane.reading import damaged
from opratchet.profile.swimlane.result import Analysis
from opratchet.profile.swimlane.subgraphs import bottleneck_gap, subgraphs
from opratchet.profile.swimlane.timeline import Cores, Timeline


def analyse(
    folder: Path,
    *,
    cores: Cores | None = None,
    cycles_per_us: float | None = None,
    outer_loops: int | None = None,
) -> Analysis:
    """Analyse the run whose files lie in a folder, or below it.

    Args:
        folder: E.g. `output/output_20261201_061906_…`.
        cores: Cores of the chip. The cost model's files tell them, a device's do not.
        cycles_per_us: Ticks of the counter in a microsecond. 1800 for the cost model where not given; for a device
            the log or the trace tell it.
        outer_loops: Trip count of all loops but the innermost, for the merge guide; where not given, the calls of the
            root function that were seen.

    Raises:
        BadInput: the folder holds no such files, or those of several runs; a file is empty, torn or of another tool;
            no task ran; or an argument cannot be true.
    """
    if outer_loops is not None and outer_loops < 1:
        raise BadInput(f"{outer_loops} iterations", where="outer_loops", fix="Give 1 or more.")
    evidence = read(find_run(folder))
    clock = clock_of(evidence, cycles_per_us)
    timeline = timeline_of(evidence, clock)
    chip = chip_cores(evidence, timeline, cores)
    figures = evidence.log or (upstream.figures(timeline) if timeline else ())
    uses = _uses(evidence, timeline, chip)
    is_told = cores is not None or evidence.lists_idle_cores
    rows = subgraphs(timeline, chip if is_told else None) if timeline else ()
    return Analysis(
        folder=evidence.files.folder,
        files=tuple(path.name for path in evidence.files.present),
        metric_kind=MetricKind.SIMULATED if evidence.files.simulated else MetricKind.MEASURED,
        cycles_per_us=clock,
        execution_us=uses[0].span_us,
        upstream_execution_us=upstream.execution_us(figures),
        cores=chip,
        upstream=upstream.rates(figures),
        honest=honest.rates(uses),
        kinds=uses,
        subgraphs=rows,
        bottleneck_gap=bottleneck_gap(rows),
        critical_path=critical_path(timeline) if timeline else None,
        merge_guide=_guide(evidence, timeline, outer_loops),
        pipes=evidence.report.pipes if evidence.report else {},
        notes=notes_on(evidence, timeline, figures, cores),
    )


def _uses(evidence: Evidence, timeline: Timeline | None, chip: Cores) -> tuple[KindUse, ...]:
    if timeline is not None:
        return honest.kind_uses(timeline, chip)
    log: Sequence[CoreFigures] = evidence.log or ()
    if not any(core.work for core in log if core.is_core):
        raise damaged(evidence.source, "no core worked")
    return honest.uses_of_log(log, chip)


def _guide(
    evidence: Evidence, timeline: Timeline | None, outer_loops: int | None
) -> tuple[MergeGroup, ...]:
    hints = evidence.trace.hints if evidence.trace else {}
    return merge_guide(timeline, hints, outer_loops) if timeline and hints else ()
