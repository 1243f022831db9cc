"""Processes of workers: how they are started, what they may know, and how all that they have started is ended.

A worker is ended by killing its whole process tree with SIGKILL. It is stopped first, from the top down, so that nothing
in it can start anything meanwhile. What left the tree, because its parent ended, is adopted by the nursery it came from,
by the first process of its sandbox, or by this process, and is killed too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import site
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from opratchet.lab.bounds import adopt_orphans, children_of, collect

END_SECONDS = 10.0
PACKAGES = Path(__file__).resolve().parents[2]
EXTRA = "OPRATCHET_PASS_ENV"
"""Environment variable with the names of further ones that workers may see, separated by commas."""

_MARK = "OPRATCHET_WORKER"
_MARKED = f"{_MARK}={secrets.token_hex(8)}"
_NAMES = frozenset(
    [
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "LD_LIBRARY_PATH",
        "CPATH",
        "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH",
        "LIBRARY_PATH",
        "CC",
        "CXX",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONHOME",
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
        "TERM",
        "HOME",
        "USER",
        "TMPDIR",
    ]
)
_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "TILELANG_", "TVM_", "TL_", "ASCEND_", "PYPTO_")
_SECRETS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "APIKEY")

_guard = threading.Lock()  # between the start of a worker and its entry in `_ours`
_ours: set[int] = set()  # what this process has started as workers
_halts = 0


def halt() -> None:
    """Kill every process below this one, each with its session. No nursery is started anew where one is killed by this."""
    global _halts
    _halts += 1
    for pid in children_of(os.getpid()):
        kill_tree(pid)


def halts() -> int:
    """How often that happened so far."""
    return _halts


def worker_environment(*, trusted: bool = False) -> dict[str, str]:
    """The environment of workers: one thread a library, the same text encoding everywhere, ours to import.

    Args:
        trusted: For the golden, which may know all that its user does. Others get what a build needs, and nothing that is
            named like a secret.
    """
    known: Mapping[str, str] = os.environ if trusted else _harmless(os.environ)
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH", "")]))
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    mark = _MARKED.partition("=")[2]
    ours = {
        "PYTHONPATH": path,
        "PYTHONUTF8": "1",
        "PYTHONUSERBASE": site.getuserbase(),
        _MARK: mark,
    }
    return {**known, **single, **ours}


def _harmless(environment: Mapping[str, str]) -> dict[str, str]:
    extra = {name.strip() for name in environment.get(EXTRA, "").split(",")}
    return {
        name: value
        for name, value in environment.items()
        if name in extra or (_is_needed(name) and not _is_secret(name))
    }


def _is_needed(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def _is_secret(name: str) -> bool:
    return any(sign in name.upper() for sign in _SECRETS)


@cache
def threads_of_user() -> int:
    """Processes and threads that this user has, the first time this is asked: what a limit of them counts."""
    user, count = os.getuid(), 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            count += process.num_threads() if process.uids().real == user else 0
    return count


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a worker in a session of its own, without input. From then on this process adopts what workers leave.

    Workers die with their parent, and to the system that is the thread that started them: so only threads that last do.
    """
    if threading.current_thread() is threading.main_thread():
        return _start(command, options)
    return _starter().submit(_start, command, options).result()


@cache
def _starter() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "starts workers")


def _start(command: Sequence[str], options: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    adopt_orphans()
    with _guard:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
        _ours.add(process.pid)
    return process


def end(process: subprocess.Popen[bytes], inside: Sequence[int] = ()) -> None:
    """End a worker and all that it has started; it is gone, and collected, when this returns.

    Args:
        process: The worker, or the program that keeps the sandbox around it.
        inside: The first process of that sandbox, if there is one. It is killed, and the system ends all others in it; the
            program outside collects it and ends by itself.
    """
    for pid in inside:
        _kill(os.kill, pid)
    try:
        process.wait(END_SECONDS if inside else 0)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()
    for pid in inside:  # ours to collect where the program outside ended first
        collect(pid, END_SECONDS)
    with _guard:
        _ours.discard(process.pid)
    end_strays()


def kill_tree(pid: int) -> None:
    """Kill a process, its session and all its descendants. Never raises for what is gone already."""
    seen: set[int] = set()
    while new := _tree(pid) - seen:
        for victim in new:
            _kill(os.kill, victim, signal.SIGSTOP)
        seen |= new
    _kill(os.killpg, pid)
    for victim in seen:
        _kill(os.kill, victim)


def _tree(pid: int) -> set[int]:
    found, waiting = {pid}, [pid]
    while waiting:
        new = set(children_of(waiting.pop())) - found
        found |= new
        waiting += new
    return found


def _kill(how: Callable[[int, int], None], pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(OSError):
        how(pid, number)


def end_strays() -> None:
    """Kill what workers have left and this process has adopted."""
    with _guard:
        while strays := [pid for pid in children_of(os.getpid()) if _is_stray(pid)]:
            for pid in strays:
                kill_tree(pid)
            if any(collect(pid, END_SECONDS) is None for pid in strays):
                return


def _is_stray(pid: int) -> bool:
    """Whether a child of this process was a worker's: it carries the mark of our workers.

    One that has none left to show, e.g. because it has ended, is a stray where this process cannot have started it: it lives
    in a session that neither we nor it began.
    """
    try:
        session = os.getsid(pid)
        if pid in _ours or session == os.getsid(0):
            return False
        shown = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return _MARKED.encode() in shown if shown else session != pid
