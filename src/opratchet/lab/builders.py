"""The supervisor's side of nurseries: it has workers forked, reads their answers, and ends them, whatever they do.

Nothing waits for a worker longer than its time limit. A nursery that does not answer any more, which a candidate can bring
about only without a sandbox, is ended with everything below it, and a new one is started for the next worker.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opratchet.errors import EnvironmentMissing
from opratchet.lab import processes
from opratchet.lab.apart import as_signal
from opratchet.lab.bounds import children_of
from opratchet.lab.channel import Channel, ChannelClosed
from opratchet.lab.failure import WorkerFailed, died
from opratchet.lab.limits import Limits
from opratchet.lab.sandbox import Sandbox
from opratchet.lab.tail import Tail
from opratchet.ledger.words import Outcome

IMPORT_SECONDS = 180.0
STARTS = 3  # of a nursery that ends before it is ready
ANSWER_SECONDS = 15.0  # a nursery that does not answer for so long is taken for dead
LAST_SECONDS = 2.0  # for one that has hung up, as it does when it dies
GLANCE = 0.25  # seconds between two looks at what a worker leaves behind

Watch = Callable[[], str]
"""What is wrong with what a worker has done so far, or an empty text."""


class Nursery:
    """The process that forks workers which need the backend's heavy modules.

    Args:
        preload: Modules that it imports.
        log: Where its own output goes.
        limits: Limits of its workers.
        sandbox: What stands around it; None for the golden's, which is trusted.
        jobs: The folder that holds the jobs' folders, the only one that can be written to in the sandbox.
        shown: Files that its workers have to read besides the packages.

    Attributes:
        losses: How often the process was found to be gone.
    """

    def __init__(
        self,
        preload: Sequence[str],
        log: Path,
        limits: Limits,
        sandbox: Sandbox | None = None,
        jobs: Path | None = None,
        shown: Sequence[Path] = (),
    ) -> None:
        self._preload = list(preload)
        self._log = log
        self._limits = limits
        self._sandbox = sandbox
        self._jobs = jobs
        self._shown = list(shown)
        self._lock = threading.RLock()
        self._processes = processes.threads_of_user() + limits.processes
        self._halts = processes.halts()
        self.losses = 0
        self._begin()

    def _begin(self) -> None:
        """Start the process; it imports while this one goes on."""
        self.channel, theirs = Channel.pair()
        number = str(theirs.fileno())
        command = [sys.executable, "-m", "opratchet.lab.nursery", number, *self._preload]
        with self._log.open("ab") as output:
            self.process = processes.start(
                self._wrapped(command),
                pass_fds=[theirs.fileno()],
                stdout=output,
                stderr=output,
                env=self._environment(),
            )
        theirs.close()
        self._covers = self._sandbox.covered() if self._sandbox else []
        self._ready = self._lost = False

    def _wrapped(self, command: list[str]) -> list[str]:
        if self._sandbox is None:
            return command
        writable = [self._jobs] if self._jobs else []
        return self._sandbox.wrap(
            command, self._limits, shown=self._shown, writable=writable, is_first=True
        )

    def _environment(self) -> dict[str, str]:
        return (
            self._sandbox.environment()
            if self._sandbox
            else processes.worker_environment(trusted=True)
        )

    def wait_ready(self, timeout: float = IMPORT_SECONDS) -> None:
        """Wait until the heavy modules are imported. A process that is killed meanwhile is started again.

        Raises:
            EnvironmentMissing: one of them cannot be imported.
        """
        with self._lock:
            for _ in range(STARTS):
                self._renew_if_needed()
                if self._ready:
                    return
                reply = self._first_answer(timeout)
                self._ready = "error" not in reply
                if "ended" not in reply:
                    break
                self._lose()
        if not self._ready:
            raise EnvironmentMissing(
                f"the backend's packages cannot be imported: {reply['error']}",
                fix="`opratchet doctor` says what is missing and how to install it.",
            )

    def _first_answer(self, timeout: float) -> dict[str, Any]:
        try:
            return self.channel.receive(timeout)[0]
        except TimeoutError:
            return {"error": self._with_last_line("the process did not answer in time")}
        except ChannelClosed:
            return {"error": self._with_last_line("the process ended"), "ended": True}

    def _with_last_line(self, what: str) -> str:
        said = self._log.read_text("utf-8", "replace").strip().splitlines()[-1:]
        return "; ".join([what, *said])

    def _renew_if_needed(self) -> None:
        """Start a new process where the old one is lost, or shows what has come into being and is to be hidden."""
        stale = self._sandbox is not None and self._sandbox.covered() != self._covers
        ended = self._ready and self.process.poll() is not None
        if self._lost or stale or ended:
            self._require_not_halted()
            self._give_up()
            self._begin()

    def _require_not_halted(self) -> None:
        if processes.halts() != self._halts:
            raise WorkerFailed(Outcome.CRASHED, "all workers were killed by the user")

    def fork(self, role: str, folder: Path, job: Mapping[str, Any]) -> Worker:
        """Start a worker in a role (see `opratchet.lab.worker.ROLES`).

        Raises:
            EnvironmentMissing: the nursery cannot be started.
            WorkerFailed: it is gone.
        """
        ours, theirs = Channel.pair()
        tail = Tail(self._limits.log_bytes)
        message = {**self._message(role, folder), **job}
        try:
            pid = self._fork(message, [theirs.fileno(), tail.descriptor])
        except BaseException:
            tail.handed_over()
            tail.close()
            ours.close()
            raise
        finally:
            theirs.close()
        tail.handed_over()
        return Worker(ours, pid, tail, self)

    def _message(self, role: str, folder: Path) -> dict[str, Any]:
        apart = self._sandbox is not None and self._sandbox.sets_apart
        return {
            "op": "fork",
            "role": role,
            "folder": str(folder),
            "jobs": str(self._jobs) if apart else "",
            "scratch": self._limits.scratch_bytes,
            "file_bytes": self._limits.file_bytes,
            "processes": self._processes,
        }

    def _fork(self, message: Mapping[str, Any], fds: Sequence[int]) -> int:
        """Have a worker forked; by a new process where this one turns out to be gone."""
        for _ in range(2):
            with self._lock:
                self.wait_ready()
                try:
                    self.channel.send(message, fds)
                    return int(self.channel.receive(ANSWER_SECONDS)[0]["pid"])
                except (ChannelClosed, TimeoutError):
                    self._lose()
        raise WorkerFailed(Outcome.CRASHED, "the process that starts build workers is gone")

    def end(self, pid: int, grace: float) -> int:
        """Kill a worker with all that it has started, and collect its exit code, negative for a signal.

        Args:
            pid: The worker.
            grace: Seconds in which it may end by itself before.
        """
        with self._lock:
            if self._lost:
                return 0
            message = {"op": "end", "pid": pid, "grace": grace}
            try:
                status = int(self.channel.ask(message, ANSWER_SECONDS)["status"])
            except (ChannelClosed, TimeoutError):
                self._lose()
                self._give_up()
                return 0
        return as_signal(status)

    def _lose(self) -> None:
        self._lost = True
        self.losses += 1

    def _give_up(self) -> None:
        """End the process and everything below it."""
        boxed = self._sandbox is not None and self._sandbox.active
        inside = children_of(self.process.pid) if boxed and self.process.poll() is None else []
        processes.end(self.process, inside)
        self.channel.close()

    def close(self) -> None:
        """End the nursery and everything below it."""
        with self._lock:
            self._give_up()


class Worker:
    """One forked worker: its channel, and the end of what it printed."""

    def __init__(self, channel: Channel, pid: int, tail: Tail, nursery: Nursery) -> None:
        self.channel = channel
        self.pid = pid
        self._tail = tail
        self._nursery = nursery
        self._status: int | None = None

    def receive(self, timeout: float, watch: Watch | None = None) -> dict[str, Any]:
        """The next answer.

        Args:
            timeout: Seconds to wait at most.
            watch: Looked at meanwhile; once it finds something, the worker is ended.

        Raises:
            WorkerFailed: it took too long, ran out of memory or crashed, or something was found; the worker is dead then.
        """
        until = time.monotonic() + max(timeout, 0.001)
        try:
            self._wait(until, watch)
            reply, fds = self.channel.receive(max(until - time.monotonic(), 0.001))
        except TimeoutError:
            self.close()
            raise WorkerFailed(Outcome.TIMEOUT, "took longer than allowed", self.output()) from None
        except ChannelClosed:
            status = self.close(grace=LAST_SECONDS)
            raise died(status, self.output()) from None
        for descriptor in fds:  # nobody asked for any
            os.close(descriptor)
        return reply

    def _wait(self, until: float, watch: Watch | None) -> None:
        ready = select.poll()
        ready.register(self.channel.sock, select.POLLIN)
        while watch is not None and time.monotonic() < until:
            if ready.poll(GLANCE * 1e3):
                return
            if found := watch():
                self.close()
                raise WorkerFailed(Outcome.CRASHED, found, self.output())

    def output(self) -> str:
        """The end of what the worker printed; it is ended first."""
        self.close()
        return self._tail.text()

    def close(self, grace: float = 0.0) -> int:
        """End the worker, once; gives its exit code. It may end by itself in the seconds of grace before."""
        if self._status is None:
            self._status = self._nursery.end(self.pid, grace)
            self.channel.close()
            self._tail.text()
            self._tail.close()
        return self._status
