"""The raw list of tasks: `_simulate.swim.json` of the cost model, `tilefwk_L1_prof_data.json` of a device.

Both are arrays of cores, `{"blockIdx", "coreType", "tasks": [...]}`, a task being `{"seqNo", "taskId",
"subGraphId", "execStart", "execEnd"}` in ticks of a counter. The cost model lists every core, a device only those
that worked; newer versions on a device write `leafIndex` instead of `subGraphId`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from opratchet.profile.swimlane.json_stream import json_items
from opratchet.profile.swimlane.reading import damaged
from opratchet.profile.swimlane.timeline import (
    KINDS,
    Key,
    Label,
    Lane,
    Slot,
    Timeline,
    kind_of,
    task_name,
)

Count = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True)
class Task:
    """One task as it was recorded.

    Attributes:
        key: seqNo and taskId.
        subgraph: Number of its subgraph; None when the file has none.
        start: Counter at its start, cycles.
        end: Counter at its end, cycles; not before `start`.
    """

    key: Key
    subgraph: int | None
    start: int
    end: int


@dataclass(frozen=True)
class Core:
    """A core and its tasks in the order of the file. `index` counts over all kinds from 0."""

    kind: str
    index: int
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """As PyPTO's other files call it; they count from 1."""
        return f"{self.kind}_{self.index + 1}"


@dataclass(frozen=True)
class Tasks:
    """Everything in one file."""

    cores: tuple[Core, ...]

    @property
    def span_cycles(self) -> int:
        """First start to last end on AIC and AIV cores; PyPTO's `AICore End-to-End Time`, in cycles. 0 without tasks."""
        tasks = [task for core in self.cores if core.kind in KINDS for task in core.tasks]
        if not tasks:
            return 0
        return max(task.end for task in tasks) - min(task.start for task in tasks)

    @property
    def upstream_cycles(self) -> int:
        """As `span_cycles`, but from the first start of anything: what upstream's reports call execution time."""
        ends = [task.end for core in self.cores if core.kind in KINDS for task in core.tasks]
        starts = [task.start for core in self.cores for task in core.tasks]
        return max(ends) - min(starts) if ends else 0

    def timeline(self, cycles_per_us: float) -> Timeline:
        """The tasks in microseconds of the counter, without dependencies."""
        lanes = tuple(
            Lane(
                core.name,
                core.kind,
                tuple(
                    Slot(task.key, task.start / cycles_per_us, task.end / cycles_per_us)
                    for task in core.tasks
                ),
            )
            for core in self.cores
        )
        labels = {
            task.key: Label("", task.subgraph)
            for core in self.cores
            for task in core.tasks
            if task.subgraph is not None
        }
        return Timeline(lanes, None, labels)


class _Task(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    seq: Count = Field(default=0, alias="seqNo")
    id: Count = Field(alias="taskId")
    subgraph: int | None = Field(
        default=None, validation_alias=AliasChoices("subGraphId", "leafIndex")
    )
    start: Count = Field(alias="execStart")
    end: Count = Field(alias="execEnd")


class _Core(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    index: Count = Field(alias="blockIdx")
    kind: str = Field(default="Core", alias="coreType", min_length=1)
    tasks: list[_Task]


def read_tasks(path: Path) -> Tasks:
    """Read a raw list of tasks.

    Args:
        path: A `_simulate.swim.json` or `tilefwk_L1_prof_data.json`.

    Raises:
        BadInput: the file cannot be read, is empty, torn or of another tool, lists no core, names a core or a task
            twice, or lets a task end before it starts.
    """
    cores = [_core(path, place, item) for place, item in enumerate(json_items(path))]
    if not cores:
        raise damaged(path, "the file lists no cores; an array of them is expected")
    _require_once(path, cores)
    return Tasks(tuple(cores))


def _core(path: Path, place: int, item: Any) -> Core:
    try:
        read = _Core.model_validate(item)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise damaged(
            path, f"core {place} is not of this format: {where}: {first['msg']}"
        ) from None
    kind = kind_of(read.kind)
    return Core(kind, read.index, tuple(_task(path, kind, task) for task in read.tasks))


def _task(path: Path, kind: str, read: _Task) -> Task:
    key = (read.seq, read.id)
    if read.end < read.start:
        what = (
            f"task {task_name(key)} on {kind} ends at {read.end}, before it starts at {read.start}"
        )
        raise damaged(path, what)
    return Task(key, read.subgraph, read.start, read.end)


def _require_once(path: Path, cores: list[Core]) -> None:
    names: set[str] = set()
    keys: set[Key] = set()
    for core in cores:
        if core.name in names:
            raise damaged(path, f"core {core.name} is listed twice")
        names.add(core.name)
        for task in core.tasks:
            if task.key in keys:
                what = f"task {task_name(task.key)} is listed twice: this is more than one launch"
                raise damaged(path, what)
            keys.add(task.key)
