"""The supervisor's side of run workers: it starts them, gives them work, watches them, and ends them, whatever they do.

Nothing waits for a worker longer than its time limit. Where there is a sandbox, three processes stand in a row: the program
that keeps it, the first process inside, and the worker; the system ends all that is inside with that first process.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from opratchet.judge.integrity import impossible_clock
from opratchet.lab.apart import as_signal
from opratchet.lab.bounds import children_of, go_first, limit_counts
from opratchet.lab.channel import Channel, ChannelClosed
from opratchet.lab.effort import Effort
from opratchet.lab.failure import MEMORY_SIGNS, WorkerFailed, died
from opratchet.lab.flags import Flags
from opratchet.lab.limits import Limits
from opratchet.lab.processes import end, start, threads_of_user
from opratchet.lab.progress import Progress, Witness
from opratchet.lab.sandbox import SCRATCH, Sandbox
from opratchet.lab.tail import Tail
from opratchet.ledger.words import Outcome

START_SECONDS = 60.0
LAST_SECONDS = 0.5  # for the answer, where a batch ended at the last moment
LEFT_BYTES = 4 << 20  # of files that a worker may leave in its sandbox: a kernel has no use for any
NO_SANDBOX = Sandbox()


@dataclass(frozen=True)
class Standing:
    """What a run worker is at one moment, as far as the system tells.

    Attributes:
        threads: Its threads.
        children: Processes below it, or beside it in its sandbox.
        cpus: The CPUs that it may run on.
        priority: Its nice value.
        files: Bytes in the temporary folders of its sandbox; 0 without one.
    """

    threads: int
    children: int
    cpus: frozenset[int]
    priority: int
    files: int = 0

    @classmethod
    def of(cls, pid: int, root: int, *, boxed: bool = False) -> Standing | None:
        """Read it; None where the process is gone or the system does not tell.

        Args:
            pid: The worker.
            root: The process below which everything is found that it starts: the worker, or what keeps its sandbox.
            boxed: Whether it has temporary folders of its own.
        """
        try:
            process = psutil.Process(pid)
            children = len(psutil.Process(root).children(recursive=True))
            cpus = frozenset(os.sched_getaffinity(pid))
            files = sum(map(_bytes_in, _scratch_of(pid))) if boxed else 0
            return cls(process.num_threads(), children, cpus, int(process.nice()), files)
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
        if now.files - self.files > LEFT_BYTES:
            left = (now.files - self.files) >> 20
            return f"it left {left} MiB of files in folders for temporary ones"
        return ""


def _scratch_of(pid: int) -> list[str]:
    """The temporary folders of a sandbox, as they are seen from outside."""
    return [f"/proc/{pid}/root{place}" for place in SCRATCH]


def _bytes_in(place: str) -> int:
    """Bytes taken of a file system of its own; 0 where the system does not tell."""
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _nanoseconds(reply: Mapping[str, Any]) -> int:
    value = reply.get("ns")
    if isinstance(value, bool) or not isinstance(value, int):
        raise WorkerFailed(Outcome.CHEATED, f"a worker's time is not a number: {value!r:.60}")
    return value


def nothing_to_see() -> str:
    """No evidence."""
    return ""


class RunWorker:
    """A fresh run worker (`opratchet.lab.runner`): loads artefacts and calls them.

    Args:
        runtime: The backend's runtime module.
        cpu: CPU to keep to, or -1.
        memory: Bytes it may take beyond its start.
        limits: What else it may take.
        sandbox: What stands around it.
        shown: Files of the lab that it may read in there.
    """

    def __init__(
        self,
        runtime: str,
        cpu: int,
        memory: int,
        limits: Limits | None = None,
        sandbox: Sandbox = NO_SANDBOX,
        shown: Sequence[Path] = (),
    ) -> None:
        self._limits = limits or Limits()
        self.channel, theirs = Channel.pair()
        self._flags = Flags.made()
        self._tail = Tail(self._limits.log_bytes)
        descriptors = [theirs.fileno(), self._flags.fd]
        arguments = [*map(str, descriptors), runtime, str(cpu), str(memory)]
        command = [sys.executable, "-m", "opratchet.lab.runner", *arguments]
        self.process = start(
            sandbox.wrap(command, self._limits, shown=shown),
            pass_fds=descriptors,
            stdout=self._tail.descriptor,
            stderr=self._tail.descriptor,
            env=sandbox.environment(),
        )
        self._tail.handed_over()
        theirs.close()
        self._boxed = sandbox.active
        self._cpu = cpu
        self._inside: list[int] = []
        self._pid = 0 if self._boxed else self.process.pid
        self._began: Standing | None = None
        self.effort = Effort(self._pid)
        self.progress = Progress()

    @property
    def pid(self) -> int:
        """Process id of the worker as this process sees it; inside of a sandbox it has another one."""
        if not self._pid:
            self._pid = self._seen_from_outside()
        return self._pid

    def _seen_from_outside(self) -> int:
        """The worker is the child of the first process in its sandbox, which is the child of what keeps the sandbox."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            self._inside = children_of(self.process.pid)
            for worker in (child for first in self._inside for child in children_of(first)):
                return worker
            time.sleep(0.001)
        return self.process.pid

    def remember(self) -> None:
        """Remember what the worker is now, while nothing of a candidate is loaded, and limit it from here on."""
        self.ask({"op": "hello"}, START_SECONDS)
        limit_counts(self.pid, self._limits.file_bytes, threads_of_user() + self._limits.processes)
        go_first(self.pid)
        self._began = self._standing()
        self.effort = Effort(self.pid)

    def _standing(self) -> Standing | None:
        """What the worker is now. A process that ends while all of them are listed makes the first look fail."""
        for _ in range(2):
            if found := Standing.of(self.pid, self.process.pid, boxed=self._boxed):
                return found
        return None

    def irregular(self) -> str:
        """Evidence that the worker is not what it was before it loaded a kernel, or an empty text."""
        now = self._standing()
        if self._began is None or now is None:
            return ""
        return self._began.evidence(now) or self.effort.evidence()

    def timed(
        self,
        message: Mapping[str, Any],
        timeout: float,
        look: Callable[[], str] = nothing_to_see,
        witness: Witness | None = None,
    ) -> tuple[int, int]:
        """Have a batch run: nanoseconds by the worker's clock, and by ours.

        Ours runs from giving the start to seeing the end, both in memory that is shared, watched without sleeping: to wake
        a process can take longer than a batch.

        Args:
            message: The command.
            timeout: Seconds that it may take.
            look: Looks for evidence as soon as the end is seen, before the worker has told of it by its answer.
            witness: Shows while the batch runs whether its calls do their work as they are made.

        Raises:
            WorkerFailed: see `ask`; or there is evidence.
        """
        asked = time.perf_counter_ns()
        nonce = self._send(message, ())
        alone = os.sched_getaffinity(0) != {self._cpu}
        start, end = self._flags.start_and_wait(
            timeout, self._is_gone, alone=alone, witness=witness if alone else None
        )
        evidence = look()
        self.progress.saw(witness, start, end)
        self.effort.ended()
        left = timeout - (time.perf_counter_ns() - asked) / 1e9
        inside = _nanoseconds(self._answer(nonce, max(left, LAST_SECONDS)))
        until_answer = time.perf_counter_ns() - asked
        if message["n"]:
            evidence = evidence or impossible_clock([(inside, until_answer)])
        if evidence:
            raise WorkerFailed(Outcome.CHEATED, evidence)
        return inside, end - start

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
        self.effort.command()
        try:
            self.channel.send({**message, "nonce": nonce}, fds)
        except ChannelClosed:
            raise self._died() from None
        return nonce

    def _answer(self, nonce: str, timeout: float) -> dict[str, Any]:
        try:
            reply, unasked = self.channel.receive(timeout)
        except TimeoutError:
            self.close()
            reason = "a call took longer than allowed"
            raise WorkerFailed(Outcome.TIMEOUT, reason, self._tail.text()) from None
        except ChannelClosed:
            raise self._died() from None
        for descriptor in unasked:
            os.close(descriptor)
        if reply.get("nonce") != nonce:
            self.close()
            raise WorkerFailed(Outcome.CHEATED, "an answer was forged: it is not to what was asked")
        if reply.get("ok") is not True:
            reason = str(reply.get("error", "refused"))
            if reply.get("outcome") == Outcome.CHEATED.value:  # the runtime saw what is no result
                raise WorkerFailed(Outcome.CHEATED, reason)
            memory = any(sign in reason for sign in MEMORY_SIGNS)
            raise WorkerFailed(Outcome.OUT_OF_MEMORY if memory else Outcome.CRASHED, reason)
        return reply

    def _died(self) -> WorkerFailed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        self.close()
        return died(as_signal(self.process.returncode), self._tail.text())

    def close(self) -> None:
        """Kill the worker and all that it has started."""
        if self._boxed and self.process.poll() is None:
            self._inside = children_of(self.process.pid) or self._inside
        end(self.process, self._inside)
        self._inside = []
        self._tail.close()
        self.channel.close()
        self._flags.close()
