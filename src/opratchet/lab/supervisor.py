"""The supervisor's side: it starts workers, gives them work, and ends them, whatever they do.

A worker is ended by killing its whole process tree with SIGKILL, first its session and then every descendant that
left it. Nothing waits for a worker longer than its time limit.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from opratchet.errors import EnvironmentMissing
from opratchet.judge.integrity import impossible_clock
from opratchet.lab.channel import Channel, ChannelClosed
from opratchet.lab.flags import Flags
from opratchet.ledger.words import Outcome

START_SECONDS = 60.0
_MEMORY_SIGNS = ("MemoryError", "bad_alloc", "Cannot allocate memory", "out of memory")


class WorkerFailed(Exception):
    """A worker did not do its job.

    Attributes:
        outcome: `timeout`, `out_of_memory`, `crashed` or `compile_failed`.
        reason: What happened, for people.
        log: The end of what it printed.
    """

    def __init__(self, outcome: Outcome, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.log = log


def kill_tree(pid: int) -> None:
    """Kill a process, its session and all its descendants. Never raises for what is gone already."""
    victims = [pid]
    with contextlib.suppress(psutil.Error):
        victims += [child.pid for child in psutil.Process(pid).children(recursive=True)]
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    for victim in victims:
        with contextlib.suppress(OSError):
            os.kill(victim, signal.SIGKILL)


def worker_environment() -> dict[str, str]:
    """The environment of workers: one thread a library, the same text encoding everywhere, ours to import."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **single, "PYTHONPATH": path, "PYTHONUTF8": "1"}


class Nursery:
    """The process that forks workers which need the backend's heavy modules."""

    def __init__(self, preload: Sequence[str], log: Path) -> None:
        self.channel, theirs = Channel.pair()
        self._lock = threading.Lock()
        self._alive: set[int] = set()
        command = [sys.executable, "-m", "opratchet.lab.nursery", str(theirs.fileno()), *preload]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=worker_environment(),
            )
        theirs.close()
        self._ready = False

    def wait_ready(self, timeout: float = 180.0) -> None:
        """Wait until the heavy modules are imported.

        Raises:
            EnvironmentMissing: one of them cannot be imported.
        """
        with self._lock:
            if self._ready:
                return
            reply = self._first_answer(timeout)
            self._ready = "error" not in reply
        if not self._ready:
            raise EnvironmentMissing(
                f"the backend's packages cannot be imported: {reply['error']}",
                fix="`opratchet doctor` says what is missing and how to install it.",
            )

    def _first_answer(self, timeout: float) -> dict[str, Any]:
        try:
            return self.channel.receive(timeout)[0]
        except (ChannelClosed, TimeoutError):
            return {"error": "the process ended or did not answer in time"}

    def fork(self, role: str, folder: Path, job: Mapping[str, Any]) -> Worker:
        """Start a worker in a role (see `opratchet.lab.worker.ROLES`)."""
        ours, theirs = Channel.pair()
        log = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (the worker object keeps it)
        message = {"op": "fork", "role": role, "folder": str(folder), **job}
        self.wait_ready()
        with self._lock:
            self.channel.send(message, [theirs.fileno(), log.fileno()])
            pid = int(self.channel.receive(30)[0]["pid"])
            self._alive.add(pid)
        theirs.close()
        return Worker(ours, pid, log, self)

    def end(self, pid: int) -> int:
        """Kill a worker's tree and collect its exit code."""
        kill_tree(pid)
        with self._lock:
            status = self._collect(pid)
            self._alive.discard(pid)
            self._end_strays()
        return status

    def _collect(self, pid: int) -> int:
        return int(self.channel.ask({"op": "wait", "pid": pid}, 30)["status"])

    def _end_strays(self) -> None:
        """Descendants of ended workers were adopted by the nursery: children of it that it did not fork."""
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children():
                if child.pid not in self._alive:
                    kill_tree(child.pid)
                    self._collect(child.pid)

    def close(self) -> None:
        """End the nursery and everything below it."""
        kill_tree(self.process.pid)
        self.process.wait()
        self.channel.close()


class Worker:
    """One forked worker: its channel, and the end of what it printed."""

    def __init__(self, channel: Channel, pid: int, log: Any, nursery: Nursery) -> None:
        self.channel = channel
        self.pid = pid
        self._log = log
        self._nursery = nursery
        self._status: int | None = None

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next answer.

        Raises:
            WorkerFailed: it took too long, ran out of memory or crashed; the worker is dead then.
        """
        try:
            return self.channel.receive(max(timeout, 0.001))[0]
        except TimeoutError:
            self.close()
            raise WorkerFailed(Outcome.TIMEOUT, "took longer than allowed", self.output()) from None
        except ChannelClosed:
            status = self.close()
            raise died(status, self.output()) from None

    def output(self, limit: int = 64 << 10) -> str:
        """The end of what the worker printed."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - limit))
        return str(self._log.read().decode("utf-8", "replace"))

    def close(self) -> int:
        """End the worker, once; gives its exit code."""
        if self._status is None:
            self._status = self._nursery.end(self.pid)
            self.channel.close()
        return self._status


def died(status: int, output: str) -> WorkerFailed:
    """What it means that a worker ended without an answer."""
    if any(sign in output for sign in _MEMORY_SIGNS):
        return WorkerFailed(Outcome.OUT_OF_MEMORY, "ran into the memory limit", output)
    if status < 0:
        return WorkerFailed(Outcome.CRASHED, f"killed by {_signal_name(-status)}", output)
    return WorkerFailed(Outcome.CRASHED, f"ended with exit code {status} and no result", output)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True)
class Standing:
    """What a run worker is at one moment, as far as the system tells.

    Attributes:
        threads: Its threads.
        children: Its descendants.
        cpus: The CPUs that it may run on.
        priority: Its nice value.
    """

    threads: int
    children: int
    cpus: frozenset[int]
    priority: int

    @classmethod
    def of(cls, pid: int) -> Standing | None:
        """Read it; None where the process is gone or the system does not tell."""
        try:
            process = psutil.Process(pid)
            children = len(process.children(recursive=True))
            cpus = frozenset(os.sched_getaffinity(pid))
            return cls(process.num_threads(), children, cpus, int(process.nice()))
        except (psutil.Error, OSError):
            return None

    def evidence(self, now: Standing) -> str:
        """What is not as it was, or an empty text."""
        if now.children > self.children:
            return f"it started {now.children - self.children} other processes, which outlive its calls"
        if now.threads > self.threads:
            return f"it started {now.threads - self.threads} threads, which outlive its calls"
        if now.cpus != self.cpus:
            return f"it moved itself from the CPUs {sorted(self.cpus)} to {sorted(now.cpus)}"
        if now.priority != self.priority:
            return f"it changed its priority from {self.priority} to {now.priority}"
        return ""


def _nanoseconds(reply: Mapping[str, Any]) -> int:
    value = reply.get("ns")
    if isinstance(value, bool) or not isinstance(value, int):
        raise WorkerFailed(Outcome.CHEATED, f"a worker's time is not a number: {value!r:.60}")
    return value


class RunWorker:
    """A fresh run worker (`opratchet.lab.runner`): loads artefacts and calls them.

    Args:
        runtime: The backend's runtime module.
        cpu: CPU to keep to, or -1.
        memory: Bytes it may take beyond its start.
        folder: Where its output is kept.
    """

    def __init__(self, runtime: str, cpu: int, memory: int, folder: Path) -> None:
        self.channel, theirs = Channel.pair()
        self._flags = Flags.made()
        self._log = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        descriptors = [theirs.fileno(), self._flags.fd]
        arguments = [*map(str, descriptors), runtime, str(cpu), str(memory)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "opratchet.lab.runner", *arguments],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            env=worker_environment(),
        )
        theirs.close()
        self._began: Standing | None = None

    @property
    def pid(self) -> int:
        """Process id of the worker as this process sees it."""
        return self.process.pid

    def remember(self) -> None:
        """Remember what the worker is now, while nothing of a candidate is loaded."""
        self.ask({"op": "hello"}, START_SECONDS)
        self._began = Standing.of(self.pid)

    def irregular(self) -> str:
        """Evidence that the worker is not what it was before it loaded a kernel, or an empty text."""
        now = Standing.of(self.pid)
        if self._began is None or now is None:
            return ""
        return self._began.evidence(now)

    def timed(self, message: Mapping[str, Any], timeout: float) -> tuple[int, int]:
        """Have a batch run: nanoseconds by the worker's clock, and by ours.

        Ours runs from giving the start to seeing the end, both in memory that is shared, watched without sleeping: to wake
        a process can take longer than a batch.

        Raises:
            WorkerFailed: see `ask`.
        """
        asked = time.perf_counter_ns()
        nonce = self._send(message, ())
        passed = self._flags.start_and_wait(timeout, self._is_gone)
        inside = _nanoseconds(self._answer(nonce, timeout))
        until_answer = time.perf_counter_ns() - asked
        if message["n"] and (evidence := impossible_clock([(inside, until_answer)])):
            raise WorkerFailed(Outcome.CHEATED, evidence)
        return inside, passed

    def _is_gone(self) -> bool:
        return self.process.poll() is not None

    def ask(
        self, message: Mapping[str, Any], timeout: float, fds: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Give one command and wait for its answer.

        Raises:
            WorkerFailed: it took too long, ran out of memory, crashed, could not do it, or sent what is no answer to it.
        """
        return self._answer(self._send(message, fds), timeout)

    def _send(self, message: Mapping[str, Any], fds: Sequence[int]) -> str:
        nonce = secrets.token_hex(8)
        try:
            self.channel.send({**message, "nonce": nonce}, fds)
        except ChannelClosed:
            raise self._died() from None
        return nonce

    def _answer(self, nonce: str, timeout: float) -> dict[str, Any]:
        try:
            reply = self.channel.receive(timeout)[0]
        except TimeoutError:
            self.close()
            raise WorkerFailed(Outcome.TIMEOUT, "a call took longer than allowed") from None
        except ChannelClosed:
            raise self._died() from None
        if reply.get("nonce") != nonce:
            self.close()
            raise WorkerFailed(Outcome.CHEATED, "an answer was forged: it is not to what was asked")
        if reply.get("ok") is not True:
            reason = str(reply.get("error", "refused"))
            memory = any(sign in reason for sign in _MEMORY_SIGNS)
            raise WorkerFailed(Outcome.OUT_OF_MEMORY if memory else Outcome.CRASHED, reason)
        return reply

    def _died(self) -> WorkerFailed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        self.close()
        return died(self.process.returncode, self._output())

    def _output(self) -> str:
        self._log.seek(0)
        return str(self._log.read(64 << 10).decode("utf-8", "replace"))

    def close(self) -> None:
        """Kill the worker's tree."""
        kill_tree(self.process.pid)
        self.process.wait()
        self.channel.close()
        self._flags.close()
