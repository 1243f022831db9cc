"""Writing files whole or not at all.

A view or a source that is half written is worse than none, so the content goes to a temporary file in the same
folder, is flushed to disk, and takes its final name in one step. The encoding is UTF-8 under every locale.
"""

from __future__ import annotations

import os
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
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_flushed(temporary, data)
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        raise OpratchetError(
            f"the file cannot be written: {error.strerror}",
            where=str(path),
            fix="Make room on the disk, or make the folder writable.",
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


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
