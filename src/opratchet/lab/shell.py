"""Timing shell commands against each other: every run is a fresh process, and the two take turns in the order ABBA.

A run has no input, is the leader of its own session, and is killed with everything it started when it takes too long, or
when the tool is stopped. Its time is the wall time around it, or what it printed itself (`printed`).

The end of a process is waited for by a blocking call: `Popen.wait` with a timeout looks every 50 ms, and that would be in the
time. A timer in a thread ends what takes too long. The process is collected only afterwards, so that its number cannot be
another one's when it is killed.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from opratchet.errors import BadInput
from opratchet.judge.floor import impossible
from opratchet.lab.printed import Reader
from opratchet.lab.processes import kill_tree

PER_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}
READ_BYTES = (
    16 << 20
)  # the end of an output that is read; nobody prints a time before that much else
TAIL_LINES = 12


@dataclass(frozen=True)
class Command:
    """A command for the shell; `name` is `A` or `B`."""

    name: str
    text: str


@dataclass(frozen=True)
class Reading:
    """How a run gives its time.

    Attributes:
        reader: Reads it from stdout; None takes the wall time.
        unit: Unit of the figures, e.g. `us`; empty when the command prints one that nobody named.
        timeout: Seconds that a run may take.
        cpu: CPU that runs are bound to; None leaves them free.
    """

    reader: Reader | None = None
    unit: str = "us"
    timeout: float = 300.0
    cpu: int | None = None


@dataclass(frozen=True)
class Ran:
    """One run.

    Attributes:
        seconds: Wall time.
        code: Exit code, negative for a signal; None when it took too long and was killed.
        stdout: What it printed.
        stderr: What it complained of.
    """

    seconds: float
    code: int | None
    stdout: str
    stderr: str


def run(text: str, timeout: float, cpu: int | None = None) -> Ran:
    """Run a command to its end, or to its timeout in seconds; nothing of it is left afterwards."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with bound_to(cpu):
            start = time.perf_counter()
            process = subprocess.Popen(
                ["/bin/sh", "-c", text],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        try:
            end, late = _wait(process.pid, timeout)
        finally:
            kill_tree(process.pid)
            code = process.wait()
        return Ran(end - start, None if late else code, _read(out), _read(err))


@contextmanager
def bound_to(cpu: int | None) -> Iterator[None]:
    """Bind what is started inside to a CPU: a child inherits this thread's."""
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _wait(pid: int, timeout: float) -> tuple[float, bool]:
    """Wait until a child has ended, without collecting it: when that was, and whether it had to be killed."""
    late = threading.Event()

    def end() -> None:
        late.set()
        kill_tree(pid)

    timer = threading.Timer(min(timeout, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return time.perf_counter(), late.is_set()
    finally:
        timer.cancel()
        timer.join()


def _read(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - READ_BYTES))
    return file.read().decode("utf-8", "replace")


@dataclass
class Pairing:
    """Two commands in turns.

    Attributes:
        a: The reference.
        b: What is compared with it.
        reading: How a run gives its time.
        times: Figures of the counted runs by the command's name, in the reading's unit.
        seconds: Wall time of all runs, those of the warm-up too.
    """

    a: Command
    b: Command
    reading: Reading
    times: dict[str, list[float]] = field(default_factory=lambda: {"A": [], "B": []})
    seconds: float = 0.0

    def figure(self, command: Command) -> float:
        """The figure of one run.

        Raises:
            BadInput: it failed, took too long, or gave none that can be a time.
        """
        ran = run(command.text, self.reading.timeout, self.reading.cpu)
        self.seconds += ran.seconds
        return figure_of(command, ran, self.reading)

    def warm_up(self, runs: int) -> None:
        """Runs of each that do not count.

        Raises:
            BadInput: as for `figure`.
        """
        for _ in range(runs):
            self.figure(self.a)
            self.figure(self.b)

    def turns(self, until: float) -> Iterator[float]:
        """Log ratios `ln(a / b)`, one a turn, as long as another turn is expected to end before `until` (monotonic clock).

        Raises:
            BadInput: as for `figure`.
        """
        longest = 0.0
        while time.monotonic() + longest <= until:
            start = time.monotonic()
            first, second = self._pair(self.a, self.b)
            third, fourth = self._pair(self.b, self.a)
            longest = max(longest, time.monotonic() - start)
            yield (math.log(first / second) + math.log(fourth / third)) / 2

    def _pair(self, one: Command, other: Command) -> tuple[float, float]:
        first, second = self.figure(one), self.figure(other)
        self.times[one.name].append(first)
        self.times[other.name].append(second)
        return first, second


def figure_of(command: Command, ran: Ran, reading: Reading) -> float:
    """The figure that a run gave.

    Raises:
        BadInput: it failed, took too long, or gave none that can be a time.
    """
    if ran.code is None:
        what = f"did not end within {reading.timeout:g} s and was killed"
        raise _failed(command, what, ran, "Give it more time with --timeout.")
    if ran.code:
        raise _failed(command, _ended(ran.code), ran)
    if reading.reader is None:
        return ran.seconds * PER_SECOND[reading.unit]
    try:
        found = reading.reader(ran.stdout)
    except LookupError as error:
        raise _failed(command, f"gave no time: {error.args[0]}", ran) from None
    wrong = impossible(found, reading.unit or "time units", "a run")
    if wrong:
        raise _failed(command, f"gave an impossible time: {wrong}", ran)
    return float(str(found))


def _ended(code: int) -> str:
    return f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"


def _failed(command: Command, what: str, ran: Ran, fix: str = "") -> BadInput:
    """The error for a run that gave no figure: the command, its exit code, and the end of what it printed."""
    code = f" (exit code {ran.code})" if ran.code == 0 else ""
    lines = (ran.stdout + ran.stderr).strip().splitlines()[-TAIL_LINES:]
    shown = "\n    ".join(line[:400] for line in lines)
    tail = f"The end of its output:\n    {shown}" if lines else "It printed nothing."
    return BadInput(
        f"`{command.text}` {what}{code}", where=command.name, fix=f"{fix} {tail}".strip()
    )
