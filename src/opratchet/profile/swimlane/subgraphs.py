"""The tasks by subgraph: which one takes the time, and does it fill the cores.

Tasks of one leaf function are instances of the same subgraph, as upstream counts; where no file tells the hash of the
leaf function, the number of the subgraph stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opratchet.profile.swimlane.timeline import KINDS, UNKNOWN, Cores, Label, Timeline


@dataclass(frozen=True)
class Subgraph:
    """One row of the table.

    Attributes:
        psg: Number of the subgraph within its root function; None when unknown.
        leaf: Hash of the leaf function; empty when unknown.
        kind: Kind of core it ran on.
        tasks: How many tasks there were.
        used: How many cores had at least one.
        theoretical: How many cores of this kind the chip has; None when unknown.
        mean_us: Time of a task, microseconds.
        total_us: Time of all, microseconds.
    """

    psg: int | None
    leaf: str
    kind: str
    tasks: int
    used: int
    theoretical: int | None
    mean_us: float
    total_us: float

    @property
    def full(self) -> bool | None:
        """Whether it fills the cores; only then can merging its tasks help. None when unknown."""
        return None if self.theoretical is None else self.used >= self.theoretical


def subgraphs(timeline: Timeline, cores: Cores | None) -> tuple[Subgraph, ...]:
    """All subgraphs that ran on a core, the one with the largest total first.

    Args:
        timeline: The run.
        cores: The cores of the chip; None when unknown.
    """
    groups: dict[tuple[str, str], _Group] = {}
    for lane in timeline.lanes:
        if lane.kind not in KINDS:
            continue
        for slot in lane.slots:
            label = timeline.labels.get(slot.key, UNKNOWN)
            same = lane.kind, label.leaf or str(label.psg)
            group = groups.setdefault(same, _Group(lane.kind, label))
            group.us.append(slot.us)
            group.cores.add(lane.name)
    found = [group.row(cores.of(group.kind) if cores else None) for group in groups.values()]
    return tuple(sorted(found, key=lambda row: -row.total_us))


@dataclass
class _Group:
    kind: str
    label: Label
    us: list[float] = field(default_factory=list)
    cores: set[str] = field(default_factory=set)

    def row(self, theoretical: int | None) -> Subgraph:
        return Subgraph(
            psg=self.label.psg,
            leaf=self.label.leaf,
            kind=self.kind,
            tasks=len(self.us),
            used=len(self.cores),
            theoretical=theoretical,
            mean_us=sum(self.us) / len(self.us),
            total_us=sum(self.us),
        )


def bottleneck_gap(rows: Sequence[Subgraph]) -> float | None:
    """By how much the first subgraph leads: (largest total - second) / largest; None without times.

    1 with a single one. Beyond 0.2 it has to be seen to before anything is merged.
    """
    totals = sorted((row.total_us for row in rows), reverse=True)
    if not totals or not totals[0]:
        return None
    second = totals[1] if len(totals) > 1 else 0.0
    return (totals[0] - second) / totals[0]
