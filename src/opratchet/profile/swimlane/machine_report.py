"""`_simulate.stat.report.txt`: what the cost model says of its machine.

Lines of a label, dots, a colon and a number, some with a percentage. Used are the number of cores, which no other
file of a trace alone would tell, and how busy each kind of pipe was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from opratchet.profile.swimlane.reading import damaged, read_lines
from opratchet.profile.swimlane.timeline import Cores

_LINE = re.compile(r"([A-Za-z_][A-Za-z_0-9 ]*?)\.*:\s+([\d.]+)(?:\s+([\d.]+)%)?")
_PIPE = re.compile(r"Average (\w+) Usage")


@dataclass(frozen=True)
class MachineReport:
    """The simulated machine.

    Attributes:
        cycles: When the simulation ended, cycles; it began at 0.
        cores: Cores of the chip.
        pipes: Share of these cycles that a pipe was busy, on average over those of its kind that were used.
    """

    cycles: int
    cores: Cores
    pipes: dict[str, float]


def read_report(path: Path) -> MachineReport:
    """Read a `_simulate.stat.report.txt`.

    Raises:
        BadInput: the file cannot be read, is empty, torn, or of another tool.
    """
    lines = (line.strip(" \t|-") for line in read_lines(path))
    rows = [found.groups() for line in lines if (found := _LINE.fullmatch(line))]
    values = {label: value for label, value, _ in rows}
    try:
        cores = Cores(int(values["Cube Count"]), int(values["Vector Count"]))
        pipes = {
            pipe.group(1): float(percent) / 100
            for label, _, percent in rows
            if percent and (pipe := _PIPE.fullmatch(label))
        }
        return MachineReport(int(values["Total Cycles"]), cores, pipes)
    except (KeyError, ValueError) as error:
        what = f"this is no report of PyPTO's cost model, or a torn one ({error})"
        raise damaged(path, what) from None
