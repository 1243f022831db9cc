"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from opratchet.errors import OpratchetError
from opratchet.ledger.files import atomic_write


def test_text_is_utf8_with_its_line_ends(tmp_path: Path) -> None:
    atomic_write(tmp_path / "日志.md", "性能\r\n调优\n")
    assert (tmp_path / "日志.md").read_bytes() == "性能\r\n调优\n".encode()


def test_chinese_text_under_the_c_locale(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from opratchet.ledger.files import atomic_write;"
        "atomic_write(Path(sys.argv[1]), '\\u6027\\u80fd')"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], env=environment, check=True)
    assert (tmp_path / "f").read_bytes() == "性能".encode()


def test_replaces_what_was_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "view"
    path.write_bytes(b"old and longer")
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "inside").write_text("old")
    with pytest.raises(OpratchetError, match="cannot be written") as caught:
        atomic_write(folder, "new")
    assert caught.value.where == str(folder)
    assert caught.value.fix
    assert (folder / "inside").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_missing_folder_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(OpratchetError, match="cannot be written"):
        atomic_write(tmp_path / "missing" / "view", "new")


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text("given")
    (tmp_path / "link.py").symlink_to(tmp_path / "source.py")
    atomic_write(tmp_path / "link.py", "new")
    assert (tmp_path / "source.py").read_text() == "given"
    assert not (tmp_path / "link.py").is_symlink()


def test_the_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_text("")
    atomic_write(tmp_path / "view", "new")
    modes = {stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("ordinary", "view")}
    assert len(modes) == 1
