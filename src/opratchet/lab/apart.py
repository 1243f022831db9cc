"""Setting one build apart from all others: namespaces of its own, entered by a process that was just forked.

Inside a sandbox, every build sees the folders of the builds beside it, and their processes. So the forked child enters a
user, process, mount and ipc namespace of its own, in which the folder that holds all jobs shows its own job only, and
/tmp and /dev/shm are new and empty. Three processes stand in a row:

- the nursery's child, which waits for the next one and ends as it ended;
- the first process of the new namespace, which does the same: when it ends, the system kills all that is left in there;
- the worker. It has no privilege left in the new namespace, so what is hidden from it stays hidden.

Run as a program inside a sandbox, this module tries whether that works there, and whether anything works at all. Standard
library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from opratchet.lab.bounds import die_with_parent

SIGNALLED = (
    128  # exit code of a process that waits for another one, plus the signal that this one died of
)

_CLONE_NEWNS, _CLONE_NEWIPC = 0x20000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
_NEW = _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNS | _CLONE_NEWIPC
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC = 32, 4096, 16384
_PLAIN = _MS_NOSUID | _MS_NODEV
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38
_CAPABILITY_VERSION = 0x20080522
_SCRATCH = ("/tmp", "/dev/shm")

_libc = ctypes.CDLL(None, use_errno=True)


def live_apart(folder: str, jobs: str, scratch_bytes: int, fds: Sequence[int]) -> None:
    """Go on in namespaces of its own. Only the worker returns from this, as a new process.

    Args:
        folder: The folder of its job.
        jobs: The folder that holds all jobs.
        scratch_bytes: Size of its /tmp, and of its /dev/shm.
        fds: What only the worker is to hold open.

    Raises:
        OSError: the system does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    for place in _SCRATCH:
        _renew(place, scratch_bytes)
    _show_only(folder, jobs)
    _wait_for_child(fds)
    die_with_parent()
    _see_own_processes()
    _wait_for_child(fds)
    die_with_parent()
    _give_up_privileges()


def _wait_for_child(fds: Sequence[int]) -> None:
    """Fork; the child returns, the parent stays only to end as the child does."""
    pid = os.fork()
    if pid == 0:
        return
    for descriptor in fds:
        os.close(descriptor)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(SIGNALLED - code if code < 0 else code)


def as_signal(status: int) -> int:
    """An exit code by which a process tells that the one it waited for died of a signal, as that signal, negative."""
    return SIGNALLED - status if SIGNALLED < status <= SIGNALLED + 64 else status


def _renew(place: str, size: int) -> None:
    """Cover a folder with a new, empty one, in which only what is mounted below it is still there, read-only."""
    kept = {name: os.open(Path(place) / name, os.O_PATH) for name in sorted(_mounted_below(place))}
    _mount("tmpfs", place, "tmpfs", _PLAIN, f"size={size},mode=1777")
    for name, descriptor in kept.items():
        _bind(descriptor, Path(place) / name)
        _remount_read_only(str(Path(place) / name))


def _mounted_below(place: str) -> set[str]:
    """Names directly in a folder at or below which something is mounted."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    points = [line.split(" ")[4] for line in lines.splitlines()]
    plain = (point.encode("latin-1", "replace").decode("unicode_escape") for point in points)
    below = (point.removeprefix(f"{place}/") for point in plain if point.startswith(f"{place}/"))
    return {name.split("/")[0] for name in below}


def _bind(descriptor: int, target: Path) -> None:
    """Show an open folder or file at another place."""
    source = f"/proc/self/fd/{descriptor}"
    if Path(source).is_dir():
        target.mkdir()
    else:
        target.touch()
    _mount(source, str(target), "", _MS_BIND | _MS_REC)
    os.close(descriptor)


def _show_only(folder: str, jobs: str) -> None:
    """Cover the folder of all jobs, so that only this one is left."""
    own = os.open(folder, os.O_PATH)
    _mount("tmpfs", jobs, "tmpfs", _PLAIN, "size=64k,mode=0755")
    _bind(own, Path(folder))
    _remount_read_only(jobs)
    os.chdir(folder)


def _remount_read_only(place: str) -> None:
    _mount("", place, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _PLAIN)


def _see_own_processes() -> None:
    """Have /proc show the new namespace only. Where the system refuses, it shows the others, which are out of reach."""
    _libc.mount(b"proc", b"/proc", b"proc", _PLAIN | _MS_NOEXEC, None)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _give_up_privileges() -> None:
    """Whoever makes a namespace is its administrator, and could take away what was mounted here."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    capability = 0
    while _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), nothing), "capset")
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    arguments = [os.fsencode(text) for text in (source, target, kind)]
    done = _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _check(done, f"mount {target}")


def _check(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def trial(folder: str, jobs: str) -> str:
    """Try to set a process apart; why that does not work, or an empty text."""
    answer, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        _try(folder, jobs, theirs)
    os.close(theirs)
    os.waitpid(pid, 0)
    with os.fdopen(answer, encoding="utf-8", errors="replace") as file:
        said = file.read()
    return said.removeprefix("done") if said else "the process that tried ended without a word"


def _try(folder: str, jobs: str, answer: int) -> None:
    said = "done"
    try:
        live_apart(folder, jobs, 1 << 20, [])
        seen = [entry.name for entry in Path(jobs).iterdir()]
        if seen != [Path(folder).name]:
            said = f"the folder of all jobs shows {seen}"
    except OSError as error:
        said = str(error)
    finally:
        os.write(answer, said.encode("utf-8", "replace"))
        os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(json.dumps({"apart": trial(*sys.argv[1:])}), flush=True)
