"""What the readers share: text, and the errors for a file that is not what its name says."""

from __future__ import annotations

from pathlib import Path

from opratchet.errors import BadInput

COLLECT_AGAIN = "Collect the profile again, or name the folder of another run."


def damaged(path: Path, what: str, line: int | None = None) -> BadInput:
    """The error for a file that is torn, empty, or of another tool."""
    where = str(path) if line is None else f"{path}:{line}"
    return BadInput(what, where=where, fix=COLLECT_AGAIN)


def unreadable(path: Path, error: OSError) -> BadInput:
    """The error for a file that the system does not give out."""
    reason = error.strerror or str(error)
    return BadInput(
        f"the file cannot be read: {reason}", where=str(path), fix="Check the path and its rights."
    )


def read_lines(path: Path) -> list[str]:
    """The lines of a text file. Bytes that are not UTF-8 become marks, which no format here accepts.

    Raises:
        BadInput: it cannot be read, or is empty.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise unreadable(path, error) from None
    if not any(line.strip() for line in lines):
        raise damaged(path, "the file is empty")
    return lines
