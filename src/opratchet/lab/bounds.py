"""What a worker does to itself before anything of the candidate runs. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
FIRST_TO_GO = 1000  # of `oom_score_adj`: what the system ends first when memory runs out


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, so that a killed tool leaves no orphan."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def outlive_parent() -> None:
    """Take that back."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended, so that they can be found and killed."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def limit_memory(extra_bytes: int) -> None:
    """Allow this process and its children `extra_bytes` of address space each beyond what it has mapped now.

    A core file is as large as that memory, so there are none. Where all of the machine's memory runs out, e.g. because of
    many children, the system ends this process before others.
    """
    pages = int(open("/proc/self/statm", encoding="ascii").read().split()[0])  # noqa: SIM115, PTH123
    limit = pages * os.sysconf("SC_PAGE_SIZE") + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    go_first(os.getpid())


def go_first(pid: int) -> None:
    """Have the system end this process, and what it starts, first when memory runs out."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(FIRST_TO_GO))


def limit_counts(pid: int, file_bytes: int, processes: int) -> None:
    """Limit the size of each file that a process writes, and how many processes its user may have.

    The system does not hold the administrator to the second.
    """
    for kind, most in ((resource.RLIMIT_FSIZE, file_bytes), (resource.RLIMIT_NPROC, processes)):
        _soft, hard = resource.prlimit(pid, kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError):
            resource.prlimit(pid, kind, (least, least))


def limit_stack(stack_bytes: int) -> None:
    """Raise the soft stack limit as far as allowed; local buffers of a kernel live there."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if hard != resource.RLIM_INFINITY:
        stack_bytes = min(stack_bytes, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_STACK, (stack_bytes, hard))


def pin(cpu: int) -> bool:
    """Keep this process on one CPU; False where the system does not allow it."""
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:
        return False
    return True


def children_of(pid: int) -> list[int]:
    """The processes whose parent this is, ended ones that nobody has collected among them; empty when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (it is called often)
            found += _children_of_task(pid, task)
    return found


def _children_of_task(pid: int, task: str) -> Iterator[int]:
    try:
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123
            yield from map(int, file.read().split())
    except FileNotFoundError:
        # A kernel without these lists: look at every process, for the main thread only, which stands for all.
        if task == str(pid) and os.path.exists(f"/proc/{pid}"):  # noqa: PTH110
            yield from (other for other in _processes() if _parent_of(other) == pid)
    except OSError:
        return


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def collect(pid: int, seconds: float) -> int | None:
    """Wait for a child that was killed: its exit code, negative for a signal; None when it does not end in time."""

    until = time.monotonic() + seconds
    while True:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            return None
        time.sleep(0.001)
