"""A run that is stopped, hung up or killed while it builds and while it measures: nothing is left, nothing is lost.

The operator needs no real compiler, and time comes from a script.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from opratchet.ledger.events import Line, TrialFinished, TrialPassed, TrialStarted
from opratchet.ledger.state import fold
from opratchet.ledger.store import read_lines
from tests.cli.conftest import SCRIPTED, Command, background
from tests.cli.toy import write_toy

# A run that is over soon: one round of two candidates.
SHORT = ("--max-rounds", 1, "--max-experiments", 2)


# Files in the folder for temporary files: what stands still while they are there.
FIRST_COMPARISON = "hold-1"  # the baseline with itself
SECOND_CANDIDATE = "hold-3"


class Running:
    """A run in a process of its own, with a folder of its own for its temporary files and the device's lock."""

    def __init__(self, operator: Path, temporary: Path, *held: str) -> None:
        self.operator = operator
        self.folder = operator / "perf_opt"
        self.temporary = temporary
        for name in held:
            (temporary / name).touch()
        self.process = background("tune", operator, *SHORT, module=SCRIPTED, TMPDIR=str(temporary))

    def wait(self, holds: Callable[[Running], bool]) -> list[psutil.Process]:
        """Wait until something holds; gives the processes below the run at that time."""
        deadline = time.monotonic() + 120
        while not holds(self):
            assert time.monotonic() < deadline, "the run made no progress"
            assert self.process.poll() is None, "the run ended early"
            time.sleep(0.02)
        return self.below()

    def below(self) -> list[psutil.Process]:
        """All processes below the run."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def recorded(self, kind: str) -> bool:
        """Whether an event of this kind is on record."""
        ledger = self.folder / "ledger.jsonl"
        return ledger.exists() and f'"type":"{kind}"' in ledger.read_text(encoding="utf-8")

    def ctrl_c(self) -> None:
        """What a terminal does: the signal goes to its whole foreground process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float) -> str:
        """Wait until the process has ended; gives what it wrote to stderr."""
        return self.process.communicate(timeout=seconds)[1]

    def lines(self) -> list[Line]:
        """The ledger; reading it checks its chain."""
        return read_lines(self.folder / "ledger.jsonl")

    def let_go(self) -> None:
        """Let go on what stands still."""
        for held in self.temporary.glob("hold-*"):
            held.unlink()

    def resume(self, scripted: Command) -> subprocess.CompletedProcess[str]:
        """Go on with the run."""
        self.let_go()
        return scripted("resume", self.operator, "--json", TMPDIR=str(self.temporary))


def building(run: Running) -> bool:
    """Candidates of a round are being built, side by side."""
    return run.recorded("trial_started") and not timing(run) and len(run.below()) >= 3


def timing(run: Running) -> bool:
    """A candidate is being compared with the incumbent, and one before it is on record."""
    done = run.recorded("trial_finished") or run.recorded("trial_passed")
    return done and len(workers(run)) >= 2


def workers(run: Running) -> list[psutil.Process]:
    """The processes that call kernels."""
    return [process for process in run.below() if is_called(process, "opratchet.lab.runner")]


def is_called(process: psutil.Process, word: str) -> bool:
    """Whether this word stands in the command of a process."""
    try:
        return word in process.cmdline()
    except psutil.Error:
        return False


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a run; it and all below it are killed in the end, should a test fail."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    begun: list[Running] = []

    def begin(operator: Path, *held: str) -> Running:
        begun.append(Running(operator, temporary, *held))
        return begun[-1]

    yield begin
    for run in begun:
        if run.process.poll() is None:
            for process in [psutil.Process(run.process.pid), *run.below()]:
                process.kill()
            run.process.communicate()


def all_gone(family: list[psutil.Process], seconds: float = 10.0) -> bool:
    """Whether these processes end; one that nobody has collected yet does not run any more."""
    deadline = time.monotonic() + seconds
    while any(map(runs, family)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(runs, family))


def runs(process: psutil.Process) -> bool:
    """Whether a process runs."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def is_free(lock: Path) -> bool:
    """Whether nobody holds the lock of a device."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def goes_on_and_repeats_nothing(run: Running, before: list[Line], scripted: Command) -> None:
    """The run is resumed and completes; every trial, those on record among them, is taken exactly once."""
    done = run.resume(scripted)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 1
    lines = run.lines()
    assert lines[: len(before)] == before
    assert fold(lines).delivered is not None
    for kind in (TrialStarted, TrialPassed, TrialFinished):
        trials = [line.event.trial for line in lines if isinstance(line.event, kind)]
        assert len(trials) == len(set(trials))
    started = [line.event.trial for line in lines if isinstance(line.event, TrialStarted)]
    finished = [line.event.trial for line in lines if isinstance(line.event, TrialFinished)]
    assert sorted(started) == sorted(finished) == list(range(1, len(started) + 1))


def ctrl_c_twice(run: Running, moment: Callable[[Running], bool]) -> list[Line]:
    """Stop a run at once; nothing of it is left but its ledger, which is given."""
    family = run.wait(moment)
    run.ctrl_c()
    time.sleep(0.5)
    family += run.below()
    run.ctrl_c()
    errors = run.end(seconds=20)
    assert run.process.returncode == 5, errors
    assert "resume" in errors
    assert "Traceback" not in errors
    assert all_gone(family)
    locks = list(Path(os.environ["OPRATCHET_LOCKS"]).glob("*.lock"))
    assert locks
    assert all(map(is_free, locks))
    assert [path for path in run.temporary.iterdir() if path.is_dir()] == []
    assert not (run.folder / "run.pid").exists()
    lines = run.lines()
    assert fold(lines).delivered is None
    return lines


def hanging(run: Running) -> bool:
    """The compilers of both builds that run side by side hang."""
    return sum(is_called(process, "sleep") for process in run.below()) >= 2


def test_ctrl_c_twice_does_not_wait_for_compilers(start: Start, tmp_path: Path) -> None:
    operator = write_toy(tmp_path, 'candidates = "compile_for_ever"')
    lines = ctrl_c_twice(start(operator), hanging)
    assert not any(isinstance(line.event, TrialFinished) for line in lines), "no outcome is made up"


def test_ctrl_c_twice_while_timing_loses_nothing(
    scripted: Command, start: Start, toy: Path
) -> None:
    run = start(toy, SECOND_CANDIDATE)
    goes_on_and_repeats_nothing(run, ctrl_c_twice(run, timing), scripted)


def test_ctrl_c_twice_before_the_baseline_leaves_nothing(start: Start, toy: Path) -> None:
    run = start(toy, FIRST_COMPARISON)
    run.wait(lambda run: len(workers(run)) >= 2)
    run.ctrl_c()
    time.sleep(0.5)
    run.ctrl_c()
    errors = run.end(seconds=20)
    assert run.process.returncode == 5, errors
    assert "resume" not in errors
    assert not run.folder.exists()
    assert [path for path in run.temporary.iterdir() if path.is_dir()] == []


def test_sigterm_delivers_the_best_so_far_however_often_it_comes(start: Start, toy: Path) -> None:
    run = start(toy, SECOND_CANDIDATE)
    family = run.wait(timing)
    for _ in range(3):
        run.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    run.let_go()
    errors = run.end(seconds=120)
    assert run.process.returncode == 5, errors
    assert (run.folder / "double.py").exists()
    state = fold(run.lines())
    assert state.delivered is not None
    assert state.lineage
    assert all_gone(family)


@pytest.mark.parametrize(("sent", "moment"), [(signal.SIGKILL, building), (signal.SIGHUP, timing)])
def test_the_workers_of_a_killed_run_die_with_it_and_it_is_resumed(
    scripted: Command,
    start: Start,
    tmp_path: Path,
    sent: signal.Signals,
    moment: Callable[[Running], bool],
) -> None:
    run = start(write_toy(tmp_path, 'candidates = "build_slowly"'), SECOND_CANDIDATE)
    family = run.wait(moment)
    run.process.send_signal(sent)
    run.end(seconds=20)
    assert run.process.returncode == -sent
    assert all_gone(family)
    goes_on_and_repeats_nothing(run, run.lines(), scripted)


@pytest.mark.parametrize("later", [0.0, 0.01, 0.03, 0.1, 0.3])
def test_ctrl_c_ends_a_command_that_is_no_run(toy: Path, tmp_path: Path, later: float) -> None:
    """At any moment of its start: what is being started then must not stay behind."""
    process = background("measure", toy, module=SCRIPTED, TMPDIR=str(tmp_path))
    deadline = time.monotonic() + 60
    while not psutil.Process(process.pid).children():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(later)
    family = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _out, errors = process.communicate(timeout=20)
    assert process.returncode == 5, errors
    assert "Traceback" not in errors
    assert all_gone(family)
