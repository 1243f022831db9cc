"""Reading what a person wrote: UTF-8 text with or without a byte order mark, line ends kept."""

from __future__ import annotations

from pathlib import Path

from opratchet.errors import BadInput
from opratchet.operator.problems import advice


def read_text(path: Path) -> str:
    """Text of a file, without byte order mark, with its own line ends.

    Raises:
        BadInput: the file is missing, cannot be read, or is not UTF-8 (with the line of the first bad byte).
    """
    return read_exact(path).removeprefix("\ufeff")


def read_exact(path: Path) -> str:
    """Text of a file as it is, byte order mark included, so that it can be written back.

    Raises:
        BadInput: as `read_text` does.
    """
    raw = _read_bytes(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"the file is not UTF-8 (byte {error.start})",
            where=f"{path}:{line}",
            fix="Save it as UTF-8, then run again.",
        ) from None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise missing(path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(
            f"the file cannot be read: {reason}",
            where=str(path),
            fix="Check the path and its rights.",
        ) from None


def missing(path: Path) -> BadInput:
    """The error for a path that is not there, naming the nearest name beside it."""
    try:
        beside = sorted(entry.name for entry in path.parent.iterdir())
    except (OSError, ValueError):
        return BadInput(
            "there is no such file or folder",
            where=str(path),
            fix="Check the spelling of the path.",
        )
    return BadInput(
        "there is no such file or folder", where=str(path), fix=advice(path.name, beside[:50])
    )
