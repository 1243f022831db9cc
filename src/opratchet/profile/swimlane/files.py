"""Which files of a folder belong to one run.

PyPTO writes `output/output_<time>/`; the cost model puts its files into `CostModelSimulationOutput/` below it, the
topology stays above. The search is recursive, as upstream's, but a folder with several runs is refused: figures of
two runs must never be mixed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opratchet.errors import BadInput

SIMULATED = "CostModelSimulationOutput"
SIMULATED_TASKS, MEASURED_TASKS = "_simulate.swim.json", "tilefwk_L1_prof_data.json"
TRACE, LOG, TOPOLOGY = "merged_swimlane.json", "bubble_analysis.log", "dyn_topo.txt"
REPORT = "_simulate.stat.report.txt"
# A folder with one of these can be analysed; the others only add to it.
ENOUGH = (SIMULATED_TASKS, MEASURED_TASKS, TRACE, LOG)
_LISTED = f"{', '.join(ENOUGH[:-1])} or {ENOUGH[-1]}"


@dataclass(frozen=True)
class RunFiles:
    """The files of one run; None for those that are not there.

    Attributes:
        folder: Where they lie.
        simulated: They come from the cost model, not from a device.
        left_aside: Other folders of the same run that were not read.
    """

    folder: Path
    simulated: bool
    tasks: Path | None
    trace: Path | None
    log: Path | None
    report: Path | None
    topology: Path | None
    left_aside: tuple[Path, ...] = ()

    @property
    def present(self) -> tuple[Path, ...]:
        """All that will be read."""
        every = (self.tasks, self.trace, self.log, self.report, self.topology)
        return tuple(path for path in every if path is not None)


def is_output(path: Path) -> bool:
    """Whether a folder is one that a run of PyPTO left: it, or a folder where PyPTO puts them, holds such files.

    Looks at a few names only. An operator whose folder has an `output/` in it is still an operator.
    """
    if not path.is_dir():
        return False
    runs = [path, *path.glob("output_*")]
    return any(_has_files(place) for run in runs for place in (run, run / SIMULATED))


def find_run(folder: Path) -> RunFiles:
    """The files of the one run in a folder, or below it.

    Raises:
        BadInput: it is no folder, holds none of the files, or those of several runs.
    """
    if not folder.is_dir():
        raise BadInput("this is no folder", where=str(folder), fix=f"Name a folder with {_LISTED}.")
    folder = folder.resolve()  # so that the name of the folder tells even where it was given as `.`
    places = sorted(Path(root) for root, _, names in os.walk(folder) if set(names) & set(ENOUGH))
    runs = sorted({_run_of(place) for place in places})
    if not runs:
        raise BadInput(
            "no swimlane lies in this folder", where=str(folder), fix=f"It has to hold {_LISTED}."
        )
    if len(runs) > 1:
        raise _several(folder, runs)
    measured_first = sorted(places, key=_is_simulated)
    return _files(measured_first[0], tuple(measured_first[1:]))


def _has_files(place: Path) -> bool:
    return any((place / name).is_file() for name in ENOUGH)


def _run_of(place: Path) -> Path:
    return place.parent if place.name == SIMULATED else place


def _is_simulated(place: Path) -> bool:
    return place.name == SIMULATED or any(
        (place / name).is_file() for name in (SIMULATED_TASKS, REPORT)
    )


def _files(place: Path, left_aside: tuple[Path, ...]) -> RunFiles:
    return RunFiles(
        folder=place,
        simulated=_is_simulated(place),
        tasks=_first(place / MEASURED_TASKS, place / SIMULATED_TASKS),
        trace=_first(place / TRACE),
        log=_first(place / LOG),
        report=_first(place / REPORT),
        topology=_first(place / TOPOLOGY, _run_of(place) / TOPOLOGY),
        left_aside=left_aside,
    )


def _first(*paths: Path) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _several(folder: Path, runs: Iterable[Path]) -> BadInput:
    names = [str(run.relative_to(folder)) for run in runs]
    listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return BadInput(
        f"{len(names)} runs lie in this folder: {listed}",
        where=str(folder),
        fix=f"Name one of them, e.g. {folder / names[-1]}.",
    )
