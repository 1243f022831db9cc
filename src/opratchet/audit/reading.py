"""Reading a file of unknown origin: what stands there, or why it cannot be read, and never more than is sensible."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

LARGEST = 256 << 20
"""Bytes of a file at most; nothing that a run writes besides its ledger comes near."""


class UnreadableError(Exception):
    """A file is not there or is not what a run leaves; its text says why."""


def read(path: Path) -> bytes:
    """All bytes of a plain file, or of one that a link leads to.

    Raises:
        UnreadableError: it is missing, no file, too large, or the system does not give it.
    """
    try:
        if path.is_symlink() and not path.exists():
            raise UnreadableError(f"it is a link that leads nowhere ({path.readlink()})")
        if not path.exists():
            raise UnreadableError("it is missing")
        if not path.is_file():
            raise UnreadableError("it is no file")
        if path.stat().st_size > LARGEST:
            raise UnreadableError(f"it is larger than {LARGEST >> 20} MiB")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UnreadableError(f"it cannot be read: {error}") from None


def line_of(data: bytes, place: int) -> int:
    """Number of the line, from 1, in which a byte lies."""
    return data.count(b"\n", 0, place) + 1


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Index of the first element in which two texts differ; the length of the shorter one when that begins the other."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
