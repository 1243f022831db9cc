"""The lab's own folder for temporary files, and what killed labs have left of theirs.

A lab holds a lock in its folder for as long as it lives; the system lets go of it however the process ends. So a folder whose
lock can be had was left behind, whoever else can see its processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

from opratchet.lab.building import remove

PREFIX = "opratchet-"
LOCK = ".alive"


class LabFolder:
    """A folder that lives as long as this process, or until it is removed.

    Attributes:
        path: Where it lies.
    """

    def __init__(self) -> None:
        clear_abandoned(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        self._lock: IO[str] = (self.path / LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        remove(self.path)
        self._lock.close()


def clear_abandoned(folder: Path) -> None:
    """Remove what labs of this user have left that do not live any more; what cannot be removed stays."""
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink() and path.lstat().st_uid == os.getuid():
                _clear(path)


def _clear(path: Path) -> None:
    with (path / LOCK).open("r") as lock:  # none yet: it is being made
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(path)
