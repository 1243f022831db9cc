"""`dyn_topo.txt`: which tasks there were, of which subgraph, and which tasks each one releases.

A table with commas and a header. The last named column is the first of as many successors as a task has; they are
task ids of the same `seqNo`. Versions differ in the columns before it, so cells are found by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opratchet.profile.swimlane.reading import damaged, read_lines
from opratchet.profile.swimlane.timeline import NO_LEAF, Key, Label, Successors, task_name


@dataclass(frozen=True)
class Topology:
    """What the file tells, by task."""

    successors: Successors
    labels: dict[Key, Label]


@dataclass(frozen=True)
class _Columns:
    seq: int
    task: int
    leaf: int
    psg: int
    successors: int


def read_topology(path: Path) -> Topology:
    """Read a `dyn_topo.txt`.

    Raises:
        BadInput: the file cannot be read, is empty or of another tool, has a cell that is no number, or names a task
            twice or one that has no line.
    """
    lines = read_lines(path)
    columns = _columns(path, lines[0])
    successors: dict[Key, tuple[Key, ...]] = {}
    labels: dict[Key, Label] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        key, label, after = _row(path, number, line, columns)
        if key in successors:
            raise damaged(path, f"task {task_name(key)} has two lines", number)
        successors[key] = after
        if label.leaf != NO_LEAF:
            labels[key] = label
    _require_known(path, successors)
    return Topology(successors, labels)


def _columns(path: Path, header: str) -> _Columns:
    names = [name.strip() for name in header.split(",")]
    try:
        return _Columns(
            names.index("seqNo"),
            names.index("taskId"),
            names.index("leafHash"),
            names.index("psgId"),
            names.index("successors"),
        )
    except ValueError:
        what = "this is no table of tasks: the header has to name seqNo, taskId, leafHash, psgId, successors"
        raise damaged(path, what, 1) from None


def _row(
    path: Path, number: int, line: str, columns: _Columns
) -> tuple[Key, Label, tuple[Key, ...]]:
    cells = [cell.strip() for cell in line.split(",")]
    try:
        seq, task, psg = (int(cells[c]) for c in (columns.seq, columns.task, columns.psg))
        leaf = str(int(cells[columns.leaf]))
        after = tuple((seq, int(cell)) for cell in cells[columns.successors :] if cell)
    except (ValueError, IndexError):
        raise damaged(path, "the line is torn: a number is missing in it", number) from None
    return (seq, task), Label(leaf, psg), after


def _require_known(path: Path, successors: dict[Key, tuple[Key, ...]]) -> None:
    for key, after in successors.items():
        for other in after:
            if other not in successors:
                what = f"task {task_name(key)} releases {task_name(other)}, which has no line"
                raise damaged(path, what)
