"""What a process is given when it is started, and may lack: streams to write to, files that it may open."""

from __future__ import annotations

import errno
import os
import resource
import sys

from opratchet.errors import EnvironmentMissing, OpratchetError

FILES = 1024  # wanted, as far as this user may have them
FEWEST_FILES = 64


def prepare() -> None:
    """Streams in UTF-8 that never fail on a character, and room for open files.

    Raises:
        EnvironmentMissing: this process may open so few files that no run can work.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        else:
            stream.reconfigure(encoding="utf-8", errors="replace")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES:
        soft = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < FEWEST_FILES:
            raise _too_few(f"this process may have no more than {soft} files open at a time")


def foreseen(error: OSError) -> OpratchetError:
    """The error for people of a call that the system refused."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return _too_few("too many files are open")
    where = error.filename or "the output"
    return OpratchetError(f"{where} cannot be used: {error.strerror}")


def _too_few(what: str) -> EnvironmentMissing:
    fix = f"Raise the limit, e.g. `ulimit -n {FILES}`; a run that was interrupted goes on with `resume`."
    return EnvironmentMissing(what, fix=fix)


def let_go() -> None:
    """Drop what nobody can be told any more; the interpreter would complain of it on its way out."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
