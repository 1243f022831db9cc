"""What a worker does to itself before anything of the candidate runs. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, so that a killed tool leaves no orphan."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended, so that they can be found and killed."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def limit_memory(extra_bytes: int) -> None:
    """Allow this process and its children `extra_bytes` of address space beyond what it has mapped now."""
    pages = int(open("/proc/self/statm", encoding="ascii").read().split()[0])  # noqa: SIM115, PTH123
    limit = pages * os.sysconf("SC_PAGE_SIZE") + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


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
