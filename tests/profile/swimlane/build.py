"""Files of runs as PyPTO writes them, from a few tuples."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opratchet.profile.swimlane.timeline import Lane, Slot, Timeline, kind_of

DATA = Path(__file__).parent / "data"
TASKS, TRACE = "tilefwk_L1_prof_data.json", "merged_swimlane.json"
LOG, TOPOLOGY = "bubble_analysis.log", "dyn_topo.txt"
MODEL = "CostModelSimulationOutput"

# The hand-made device run: core, task, start and end in microseconds after the first start. What waits for what is
#
#     1 (AIC_1, 0-10) -> 3 (AIV_25, 11-15)
#     2 (AIC_2, 0-8), 1048577 (AIC_1, 12-20) -> 4 (AIV_26, 22-25)
#
# with a task before all and one after all that no core executed.


def copied(tmp_path: Path, name: str, *without: str) -> Path:
    """A recorded run in a folder of its own, some of its files left out."""
    folder = tmp_path / name
    shutil.copytree(DATA / name, folder)
    for path in folder.rglob("*"):
        if path.name in without:
            path.unlink()
    return folder


def raw_tasks(cores: Iterable[tuple[int, str, Sequence[tuple[int, int, int, int, int]]]]) -> str:
    """A raw list: block, core type, and of each task seqNo, taskId, subgraph, start and end in cycles."""
    return json.dumps(
        [
            {
                "blockIdx": block,
                "coreType": kind,
                "tasks": [
                    {"seqNo": s, "taskId": i, "subGraphId": g, "execStart": a, "execEnd": b}
                    for s, i, g, a, b in tasks
                ],
            }
            for block, kind, tasks in cores
        ]
    )


def thread(tid: int, name: str) -> dict[str, Any]:
    """The event that names a lane."""
    return {"name": "thread_name", "ph": "M", "pid": 1, "tid": tid, "args": {"name": name}}


def task(tid: int, number: int, start: float, us: float, **args: Any) -> dict[str, Any]:
    """The event of a task."""
    hint = f"Task:[0-0-{number}], rootHash:900, callOpMagic:1, leafHash:77, TaskId:{number}"
    return {
        "args": {"event-hint": hint, "taskId": number, "seqNo": 0, **args},
        "cat": "event",
        "id": number,
        "name": f"0-0-{number}-5-3()",
        "ph": "X",
        "pid": 1,
        "tid": tid,
        "ts": start,
        "dur": us,
    }


def flow(number: int, left: tuple[int, float], met: tuple[int, float]) -> list[dict[str, Any]]:
    """The two events of a dependency: lane and end of the first task, lane and start of the second."""
    common = {"cat": "machine-view-last-dep", "id": number, "name": "machine-view-last-dep"}
    return [
        {**common, "ph": "s", "pid": 1, "tid": left[0], "ts": left[1] - 0.0001},
        {**common, "ph": "f", "bp": "e", "pid": 1, "tid": met[0], "ts": met[1]},
    ]


def trace_text(events: Iterable[Any]) -> str:
    """A whole trace file."""
    return json.dumps({"traceEvents": list(events)}, indent=4)


def timeline(
    lanes: dict[str, list[tuple[int, float, float]]],
    after: dict[int, list[int]] | None = None,
) -> Timeline:
    """Lanes by name, each with task, start and end; and which tasks wait for a task."""
    built = tuple(
        Lane(
            name,
            kind_of(name.rpartition("_")[0]),
            tuple(Slot((0, number), start, end) for number, start, end in slots),
        )
        for name, slots in lanes.items()
    )
    if after is None:
        return Timeline(built)
    numbers = {slot.key[1] for lane in built for slot in lane.slots} | set(after)
    return Timeline(
        built, {(0, n): tuple((0, other) for other in after.get(n, [])) for n in numbers}
    )
