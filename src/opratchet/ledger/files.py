"""Writing files whole or not at all.

A view or a source that is half written is worse than none, so the content goes to a temporary file in the same
folder, is flushed to disk, and takes its final name in one step. The encoding is UTF-8 under every locale.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path

from opratchet.errors import OpratchetError


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all. What stood under that name before stays until the new content is on disk.

    Args:
        path: The file; its folder exists. A symbolic link is replaced, its target is left alone.
        content: Text (written as UTF-8, line ends as they are) or bytes.

    Raises:
        OpratchetError: the folder is missing, full or read-only.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(6)}.tmp")
    try:
        _write_flushed(temporary, data)
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        raise cannot_be_written(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def cannot_be_written(path: Path, error: OSError) -> OpratchetError:
    """The error for a file that the system does not let us write, and what to do about it."""
    fix = "Make room on the disk, or make the folder writable."
    if error.errno == errno.ENOENT:
        fix = "The folder is gone: put it back, or name another one."
    return OpratchetError(
        f"the file cannot be written: {error.strerror}",
        where=str(path),
        fix=f"{fix} A run that ended because of this goes on with `resume`.",
    )


_TEMPORARY = re.compile(r"\..+\.(\d+)-[0-9a-f]{12}\.tmp")


def clear_temporaries(*folders: Path) -> None:
    """Remove what processes that were killed in mid-write have left; what cannot be removed stays."""
    for folder in folders:
        for path in folder.glob(".*.tmp"):
            named = _TEMPORARY.fullmatch(path.name)
            if named and not _runs(int(named[1])):
                with contextlib.suppress(OSError):
                    path.unlink()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _write_flushed(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the new name itself durable, not only the content behind it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
