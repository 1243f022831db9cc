"""Each reader: what it reads is what was written, and whatever else it is given it says what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.profile.swimlane import analyse, read_tasks
from opratchet.profile.swimlane.bubble_log import read_log
from opratchet.profile.swimlane.machine_report import read_report
from opratchet.profile.swimlane.timeline import Cores, Label
from opratchet.profile.swimlane.topology import read_topology
from opratchet.profile.swimlane.trace import read_trace
from tests.profile.swimlane.build import (
    DATA,
    LOG,
    MODEL,
    TASKS,
    TOPOLOGY,
    TRACE,
    flow,
    raw_tasks,
    task,
    thread,
    trace_text,
)

READERS: dict[str, Callable[[Path], Any]] = {
    TASKS: read_tasks,
    TRACE: read_trace,
    LOG: read_log,
    TOPOLOGY: read_topology,
    "_simulate.stat.report.txt": read_report,
}
RECORDED = [
    DATA / "matmul" / TOPOLOGY,
    *sorted(path for path in (DATA / "matmul" / MODEL).iterdir()),
    *sorted(path for path in (DATA / "device").iterdir()),
]
ONE_OF_EACH = [READERS.get(path.name, read_tasks) for path in RECORDED]

TIMES = st.integers(0, 2**40)
CORE_TASKS = st.lists(st.tuples(st.integers(0, 9), TIMES, TIMES), max_size=6)
LISTS = st.lists(
    st.tuples(st.sampled_from(["AIC", "AIV", "HUB"]), CORE_TASKS), min_size=1, max_size=8
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "ph",
                    "tid",
                    "ts",
                    "dur",
                    "id",
                    "name",
                    "args",
                    "taskId",
                    "seqNo",
                    "tasks",
                    "blockIdx",
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


def reads_or_refuses(reader: Callable[[Path], Any], path: Path) -> None:
    """No other end is allowed, and a refusal names the file."""
    try:
        reader(path)
    except BadInput as error:
        assert path.name in error.where
        assert error.what and error.fix
        str(error).encode()


@given(written=LISTS)
def test_written_tasks_are_read(
    written: list[tuple[str, list[tuple[int, int, int]]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    number = 0
    cores = []
    for block, (kind, tasks) in enumerate(written):
        rows = []
        for subgraph, a, b in tasks:
            number += 1
            rows.append((number % 3, number, subgraph, min(a, b), max(a, b)))
        cores.append((block, kind, rows))
    path = tmp_path_factory.mktemp("tasks") / TASKS
    path.write_text(raw_tasks(cores))
    found = [
        (core.index, core.kind, [(*t.key, t.subgraph, t.start, t.end) for t in core.tasks])
        for core in read_tasks(path).cores
    ]
    assert found == cores


@given(content=st.binary(max_size=400))
@pytest.mark.parametrize("name", list(READERS))
def test_any_bytes(name: str, content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("bytes") / name
    path.write_bytes(content)
    reads_or_refuses(READERS[name], path)


@given(items=st.lists(JSON, max_size=5))
def test_any_json(items: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("json")
    (folder / TASKS).write_text(json.dumps(items))
    (folder / TRACE).write_text(json.dumps({"traceEvents": items}))
    reads_or_refuses(read_tasks, folder / TASKS)
    reads_or_refuses(read_trace, folder / TRACE)


@given(data=st.data())
@pytest.mark.parametrize(("path", "reader"), list(zip(RECORDED, ONE_OF_EACH, strict=True)))
def test_recorded_files_with_damage(
    path: Path,
    reader: Callable[[Path], Any],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Torn anywhere, or with a few bytes replaced."""
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.sampled_from([len(whole), at]))
    damage = data.draw(st.binary(max_size=6))
    other = tmp_path_factory.mktemp("damaged") / path.name
    other.write_bytes(whole[:at] + damage + whole[at + len(damage) : max(end, at)])
    reads_or_refuses(reader, other)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_half_a_json_or_an_empty_file_is_refused(path: Path, tmp_path: Path) -> None:
    reader = READERS.get(path.name, read_tasks)
    other = tmp_path / path.name
    other.write_bytes(b"")
    with pytest.raises(BadInput, match="the file is empty"):
        reader(other)
    if path.suffix == ".json":
        other.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(BadInput, match="torn, or not JSON"):
            reader(other)


@pytest.mark.parametrize("name", list(READERS))
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        READERS[name](tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        READERS[name](tmp_path / name)


TASK = {"seqNo": 0, "taskId": 1, "subGraphId": 0, "execStart": 5, "execEnd": 9}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "lists no cores"),
        ('{"traceEvents": []}', "lists no cores"),
        ("[1]", "core 0 is not of this format"),
        ('[{"blockIdx": 0, "coreType": "AIC"}]', "core 0 is not of this format: tasks"),
        ([{**TASK, "execEnd": 4}], "ends at 4, before it starts at 5"),
        ([{**TASK, "execEnd": 9.5}], "tasks.0.execEnd"),
        ([{**TASK, "execEnd": "9"}], "tasks.0.execEnd"),
        ([{**TASK, "execEnd": -9}], "tasks.0.execEnd"),
        ([TASK, TASK], "listed twice"),
    ],
)
def test_raw_tasks_that_cannot_be(content: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / TASKS
    if not isinstance(content, str):
        content = json.dumps([{"blockIdx": 0, "coreType": "AIC", "tasks": content}])
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        read_tasks(path)
    assert said in refused.value.what
    assert refused.value.where == str(path)


LANE = thread(1002, "AIC_1")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "draws no task"),
        ([LANE], "draws no task"),
        ([LANE, {"ph": "X", "name": "f", "ts": 1, "dur": 2, "tid": 1002}], "draws no task"),
        ([task(1002, 1, 0.0, 1.0)], "lane 1002, which has no name"),
        ([LANE, task(1002, 1, 0.0, 1.0), task(1002, 1, 2.0, 1.0)], "drawn twice"),
        ([LANE, task(1002, 1, 0.0, -1.0)], "takes -1.0 us"),
        ([LANE, {**task(1002, 1, 0.0, 1.0), "ts": "soon"}], "'soon' is no time"),
        ([LANE, {**task(1002, 1, 0.0, 1.0), "ts": 10**17}], "is no time"),
        ([LANE, {**task(1002, 1, 0.0, 1.0), "tid": 1.5}], "1.5 is no whole number"),
        ([LANE, {"args": {"taskId": 1}, "ph": "X"}], "event 1 is not one of PyPTO's"),
        ([5], "event 0 is not one of PyPTO's"),
    ],
)
def test_traces_that_cannot_be(events: list[Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / TRACE
    path.write_text(trace_text(events))
    with pytest.raises(BadInput) as refused:
        read_trace(path)
    assert said in refused.value.what


def test_a_trace_is_read(tmp_path: Path) -> None:
    """Overlapping tasks of a core are on two lanes with its name; flows may come in any order."""
    path = tmp_path / TRACE
    there = flow(9, (1002, 3.0), (1004, 4.5))
    events = [
        *reversed(there),
        LANE,
        thread(1003, "AIC_1"),
        thread(1004, "AIV_2"),
        task(
            1002, 1, 1.0, 2.0, **{"hashOrder-hint": "vecMergeInfo hashOrder: f, subGraphCount: 2"}
        ),
        task(1003, 2, 2.5, 2.0),
        task(1004, 3, 4.5, 1.0),
        {"name": "ReadyCount_AIC", "ph": "C", "pid": 1, "tid": 1, "ts": 1.0, "args": {"size": 1}},
    ]
    path.write_text(trace_text(events))
    trace = read_trace(path)
    lanes = {lane.name: [slot.key[1] for slot in lane.slots] for lane in trace.timeline.lanes}
    assert lanes == {"AIC_1": [1, 2], "AIV_2": [3]}
    assert trace.timeline.successors == {(0, 1): ((0, 3),), (0, 2): (), (0, 3): ()}
    assert trace.timeline.labels[(0, 1)] == Label("77", 3)
    assert list(trace.hints) == [(0, 1)]


def test_flows_that_meet_no_task_give_no_dependencies(tmp_path: Path) -> None:
    events = [LANE, task(1002, 1, 1.0, 2.0), *flow(9, (1002, 3.0), (1002, 8.0))]
    (tmp_path / TRACE).write_text(trace_text(events))
    found = analyse(tmp_path)
    assert found.critical_path is None
    assert any("flows do not meet tasks" in note for note in found.notes)


HEAD = "seqNo,taskId,rootIndex,rootHash,opmagic,leafIndex,leafHash,coreType,psgId,successors"


@pytest.mark.parametrize(
    ("lines", "said", "line"),
    [
        (["a,b,c"], "the header has to name", ":1"),
        ([HEAD, "0,1,0,9,1,1,77,1,0,,x"], "the line is torn", ":2"),
        ([HEAD, "0,1,0,9"], "the line is torn", ":2"),
        ([HEAD, "0,1,0,9,1,1,77,1,0,", "0,1,0,9,1,1,77,1,0,"], "has two lines", ":3"),
        ([HEAD, "0,1,0,9,1,1,77,1,0,,2"], "releases 0-0-2, which has no line", ""),
    ],
)
def test_topologies_that_cannot_be(lines: list[str], said: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / TOPOLOGY
    path.write_text("\n".join(lines))
    with pytest.raises(BadInput) as refused:
        read_topology(path)
    assert said in refused.value.what
    assert refused.value.where == f"{path}{line}"


BLOCK = (
    "[AIV_48] Execute task num:1\n    Core Total Work Time: 4.86\n    Total Wait Time: 0.0\n"
    "    Wait Schedule Time: -5.5e-16\n    Wait Predecessor Time: 0\n"
)


def test_a_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_text(f"Top 10 tasks in waiting schedule\n\n\n{BLOCK}")
    (core,) = read_log(path)
    assert (core.name, core.tasks, core.work, core.schedule) == ("AIV_48", 1, 4.86, -5.5e-16)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[AIV_48]", "AIV_48", "tells of no core"),
        ("    Wait Predecessor Time: 0\n", "", "`Wait Predecessor Time: ` with a number"),
        ("Total Wait Time: 0.0", "Total Wait Time: nan", "`Total Wait Time: ` with a number"),
        ("Total Wait Time: 0.0", "Total Wait Time: ", "`Total Wait Time: ` with a number"),
        ("Time: 4.86", "Time: -4.86", "worked for -4.86 us"),
    ],
)
def test_logs_that_cannot_be(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_text(BLOCK.replace(old, new))
    with pytest.raises(BadInput) as refused:
        read_log(path)
    assert said in refused.value.what


def test_the_report_tells_the_machine() -> None:
    report = read_report(DATA / "matmul" / MODEL / "_simulate.stat.report.txt")
    assert report.cycles == 33928
    assert report.cores == Cores(24, 48)
    assert report.pipes == pytest.approx(
        {"Cube": 0.0176, "Vector": 0.0049, "MTE_IN": 0.0748, "MTE1": 0.0187, "MTE_OUT": 0.0153}
    )


def test_a_report_of_another_tool_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "_simulate.stat.report.txt"
    path.write_text("Total Cycles.....: 7\nnothing else\n")
    with pytest.raises(BadInput, match="no report of PyPTO's cost model"):
        read_report(path)
