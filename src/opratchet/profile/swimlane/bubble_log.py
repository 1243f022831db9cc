"""`bubble_analysis.log`: how long each core worked and waited, in microseconds, as PyPTO's drawing script counts it.

A block a core: a header with its name and number of tasks, then four figures, then its longest waits. The first lines
of the file, the longest waits of all, tell nothing that the blocks do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from pathlib import Path

from opratchet.profile.swimlane.reading import damaged, read_lines
from opratchet.profile.swimlane.timeline import KINDS, LONGEST_US

FIGURES = (
    "Core Total Work Time",
    "Total Wait Time",
    "Wait Schedule Time",
    "Wait Predecessor Time",
)
_HEADER = re.compile(r"\[(.+_\d{1,15})\] Execute task num:\s*(\d{1,15})(?:, Fake Task:\s*\d+)?\s*")


@dataclass(frozen=True)
class CoreFigures:
    """One block. All times are microseconds.

    Attributes:
        name: E.g. `AIV_25`.
        tasks: Tasks that it executed.
        work: From the first start of the run to the end of its own last task.
        wait: The part of it without a task; overlapping tasks count as negative waits.
        schedule: The part of the waits in which the next task was ready, negative where tasks overlap.
        predecessor: The rest of the waits.
    """

    name: str
    tasks: int
    work: float
    wait: float
    schedule: float
    predecessor: float

    @property
    def kind(self) -> str:
        """The kind of core, e.g. `AIV`."""
        return self.name.rpartition("_")[0]

    @property
    def is_core(self) -> bool:
        """False for what PyPTO lists beside the cores."""
        return self.kind in KINDS

    @property
    def aicore(self) -> float:
        """The time with a task, microseconds."""
        return self.work - self.wait


def read_log(path: Path) -> tuple[CoreFigures, ...]:
    """Read a `bubble_analysis.log`.

    Raises:
        BadInput: the file cannot be read, is empty, of another tool, or torn in a block.
    """
    lines = enumerate(read_lines(path), 1)
    found = [
        _block(path, number, header, lines)
        for number, line in lines
        if (header := _HEADER.fullmatch(line))
    ]
    if not any(core.is_core for core in found):
        raise damaged(path, "the file tells of no core; blocks like `[AIV_25] …` are expected")
    return tuple(found)


def _block(
    path: Path, number: int, header: re.Match[str], lines: Iterator[tuple[int, str]]
) -> CoreFigures:
    figures = [_figure(path, number, label, lines) for label in FIGURES]
    if figures[0] < 0:
        raise damaged(path, f"{header.group(1)} worked for {figures[0]} us", number + 1)
    return CoreFigures(header.group(1), int(header.group(2)), *figures)


def _figure(path: Path, header: int, label: str, lines: Iterator[tuple[int, str]]) -> float:
    number, line = next(lines, (header, ""))
    name, _, text = line.strip().partition(": ")
    try:
        value = float(text)
    except ValueError:
        value = nan
    if name != label or not abs(value) < LONGEST_US:
        raise damaged(path, f"the block is torn: `{label}: ` with a number is expected", number)
    return value
