"""A tool that is killed at any moment, and a ledger that is cut anywhere: nothing is lost, doubled or decided otherwise."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from opratchet.errors import LedgerError
from opratchet.ledger.events import TrialStarted
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from tests.faults.conftest import ROOT, environment
from tests.faults.scene import decisions, play


def bench(*options: object) -> subprocess.CompletedProcess[str]:
    """The bench of killed runs, in a process of its own: it forks, and this one may have threads."""
    command = [sys.executable, "benchmarks/faults.py", *map(str, options)]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )


CLEAN = "0 lost trials, 0 doubled trials, 0 orphans, 0 runs that decided otherwise"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_at_the_boundary_of_every_event() -> None:
    done = bench("--every-event", "--points", 0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert CLEAN in done.stdout


@pytest.mark.parametrize("points", [3, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.timeout(1800)
def test_killed_at_any_moment(points: int) -> None:
    done = bench("--points", points)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{points} kill points: {CLEAN}" in done.stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("finished")
    play(folder)
    return folder


@pytest.mark.parametrize("late", [0.0, 0.02, 0.3])
def test_workers_that_somebody_else_kills_change_no_decision(
    tmp_path: Path, finished: Path, late: float
) -> None:
    """As the system does when its memory runs out: with every trial that begins, all processes that start workers."""
    strikes: list[threading.Timer] = []

    def strike() -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "opratchet.lab.nursery" in process.cmdline():
                    process.kill()

    def after(ledger: Ledger) -> None:
        if isinstance(ledger.lines[-1].event, TrialStarted):
            strikes.append(threading.Timer(late, strike))
            strikes[-1].start()

    play(tmp_path, after=after)
    for one in strikes:
        one.join()
    assert len(strikes) == 4
    assert decisions(tmp_path / "out") == decisions(finished / "out")


def cut(finished: Path, folder: Path, end: int) -> Path:
    """A copy of the run whose ledger ends after so many bytes."""
    shutil.copytree(finished, folder, symlinks=True)
    ledger = folder / "out" / LEDGER
    os.truncate(ledger, end)
    return folder


def ends(finished: Path) -> list[int]:
    """Where each line of its ledger ends, and 0."""
    data = (finished / "out" / LEDGER).read_bytes()
    return [0, *(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))]


def test_cut_at_every_byte_of_its_last_record_a_ledger_says_what_it_said_before(
    finished: Path, tmp_path: Path
) -> None:
    lines, borders = read_lines(finished / "out" / LEDGER), ends(finished)
    data = (finished / "out" / LEDGER).read_bytes()
    for number in (len(lines), index_of(lines, "trial_passed"), index_of(lines, "round_finished")):
        before = fold(lines[: number - 1])
        for end in range(borders[number - 1], borders[number]):
            assert state_of(tmp_path / "ledger", data[:end]) == before


def index_of(lines: list, kind: str) -> int:  # type: ignore[type-arg]
    """How many lines there are up to the first event of a kind."""
    return next(k for k, line in enumerate(lines, 1) if line.event.type == kind)


def state_of(folder: Path, data: bytes) -> RunState:
    """What a run that goes on with such a ledger begins with."""
    folder.mkdir(exist_ok=True)
    (folder / LEDGER).write_bytes(data)
    with Ledger(folder, create=False) as ledger:
        state = fold(ledger.lines)
    assert read_lines(folder / LEDGER) == ledger.lines
    return state


@pytest.mark.parametrize(
    ("kind", "share"),
    [("trial_passed", 0.0), ("trial_finished", 0.5), ("round_finished", 0.9), ("delivered", 1.0)],
)
def test_a_run_with_a_cut_ledger_reaches_the_same_decisions(
    finished: Path, tmp_path: Path, kind: str, share: float
) -> None:
    number = index_of(read_lines(finished / "out" / LEDGER), kind)
    start, end = ends(finished)[number - 1 : number + 1]
    last = start + round(share * (end - 1 - start))
    folder = cut(finished, tmp_path / "cut", last)
    play(folder)
    assert decisions(folder / "out") == decisions(finished / "out")


@pytest.mark.parametrize("survived", [1, 2])
def test_a_ledger_without_its_baseline_is_refused_and_says_what_to_do(
    finished: Path, tmp_path: Path, survived: int
) -> None:
    folder = cut(finished, tmp_path / "cut", ends(finished)[survived])
    with pytest.raises(LedgerError, match="before its baseline") as caught:
        play(folder)
    assert "--fresh" in caught.value.fix
