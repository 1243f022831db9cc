"""What an analysis of a run says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opratchet.ledger.words import MetricKind
from opratchet.profile.swimlane.dependencies import CriticalPath
from opratchet.profile.swimlane.honest import KindUse
from opratchet.profile.swimlane.merge_guide import MergeGroup
from opratchet.profile.swimlane.rates import Rates
from opratchet.profile.swimlane.subgraphs import Subgraph
from opratchet.profile.swimlane.timeline import Cores


@dataclass(frozen=True)
class Analysis:
    """One run. All times are microseconds, all rates fractions.

    Attributes:
        folder: Where its files lie.
        files: Names of those that were read.
        metric_kind: `simulated` for the cost model, `measured` for a device.
        cycles_per_us: Ticks of the counter in a microsecond; None where no raw tasks were read.
        execution_us: First start to last end of tasks on cores; PyPTO's `AICore End-to-End Time`.
        upstream_execution_us: What upstream's report calls execution time: it begins with the first start of
            anything, also beside the cores, and ends with the last core that upstream counts.
        cores: Cores of the chip, as far as told.
        upstream: The rates by upstream's formulas, which a stop rule written for them refers to.
        honest: The rates over all core time of the kinds that were used, idle cores and tail included.
        kinds: What each kind of core did.
        subgraphs: The tasks by subgraph, the largest total first; empty where only a log was read.
        bottleneck_gap: (largest total - second) / largest over the subgraphs; None where there are none.
        critical_path: The longest chain of dependent tasks; None where no file tells dependencies.
        merge_guide: What can be merged under which key; empty where the trace has no `hashOrder-hint`.
        pipes: Share of the simulation that each kind of pipe was busy; empty without the cost model's report.
        notes: What the figures leave out or rest on.
    """

    folder: Path
    files: tuple[str, ...]
    metric_kind: MetricKind
    cycles_per_us: float | None
    execution_us: float
    upstream_execution_us: float
    cores: Cores
    upstream: Rates
    honest: Rates
    kinds: tuple[KindUse, ...]
    subgraphs: tuple[Subgraph, ...]
    bottleneck_gap: float | None
    critical_path: CriticalPath | None
    merge_guide: tuple[MergeGroup, ...]
    pipes: dict[str, float]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """All of it as JSON, with the figures that follow from others."""
        return {
            **asdict(self),
            "folder": str(self.folder),
            "files": list(self.files),
            "metric_kind": self.metric_kind.value,
            "kinds": [{**asdict(use), "rates": asdict(use.rates)} for use in self.kinds],
            "subgraphs": [{**asdict(row), "full": row.full} for row in self.subgraphs],
            "critical_path": self._path_record(),
            "merge_guide": [
                {**asdict(row), "per_iteration": row.per_iteration} for row in self.merge_guide
            ],
            "notes": list(self.notes),
        }

    def _path_record(self) -> dict[str, Any] | None:
        path = self.critical_path
        if path is None:
            return None
        return {**asdict(path), "steps": [asdict(step) for step in path.steps]}
