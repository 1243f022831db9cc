"""Folders that killed labs left are removed by the next one; those of living labs and of anybody else are not."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from opratchet.lab.folder import LOCK, PREFIX, LabFolder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_by_a_killed_lab() -> Path:
    """A folder whose owner was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        folder = LabFolder()
        (folder.path / "jobs").mkdir()
        os.write(write, str(folder.path).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        return Path(told.read().decode())


def test_what_a_killed_lab_left_is_removed_by_the_next(temporary: Path) -> None:
    left = left_by_a_killed_lab()
    assert (left / "jobs").is_dir()
    folder = LabFolder()
    assert not left.exists()
    assert list(temporary.iterdir()) == [folder.path]
    folder.remove()
    assert list(temporary.iterdir()) == []


def test_a_living_lab_keeps_its_folder() -> None:
    one, other = LabFolder(), LabFolder()
    assert one.path.is_dir()
    assert (other.path / LOCK).is_file()
    one.remove()
    other.remove()


def test_what_is_no_lab_stays(temporary: Path) -> None:
    strange = [temporary / f"{PREFIX}mine", temporary / "other"]
    for folder in strange:
        folder.mkdir()
        (folder / "notes").write_text("mine")
    lock = temporary / f"{PREFIX}cpu0.lock"
    lock.write_text("")
    link = temporary / f"{PREFIX}link"
    left = left_by_a_killed_lab()
    elsewhere = temporary / "elsewhere"
    left.rename(elsewhere)
    link.symlink_to(elsewhere)
    LabFolder().remove()
    assert all((folder / "notes").is_file() for folder in strange)
    assert lock.is_file()
    assert link.is_symlink()
    assert (elsewhere / LOCK).is_file()
