"""A disk that gets full, and a folder that is made read-only, moved, removed or replaced while a run writes to it."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opratchet import session
from opratchet.errors import LedgerError
from opratchet.ledger.files import atomic_write
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from opratchet.run import Clock
from tests.engine.scripted import PATIENT, lab_for
from tests.faults.conftest import ROOT, environment
from tests.faults.scene import RULES, decisions, operator_in, play

_PR_CAPBSET_DROP = 24
_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def as_ordinary_user() -> None:
    """Take from the program that is started next what lets root write to read-only folders."""
    for capability in _CAPABILITIES:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def python(*arguments: object, before: Callable[[], None] | None = None) -> str:
    """Run a program of the tests; gives what it printed."""
    done = subprocess.run(
        [*map(str, arguments)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        preexec_fn=before,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hindered(folder: Path, how: str, events: int = 9) -> str:
    """A run that is hindered after so many events; gives its error."""
    command = [sys.executable, "-m", "tests.faults.hindered", folder, how, events]
    return python(*command, before=as_ordinary_user)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a run decides that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    play(folder)
    return decisions(folder / "out")


def in_own_mounts() -> list[str]:
    """What goes before a command that mounts something for itself; nothing of it is left when it ends."""
    for command in (["unshare", "-m"], ["unshare", "-Urm"]):
        trial = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if shutil.which("unshare") and not subprocess.run(trial, capture_output=True).returncode:
            return command
    pytest.skip("NOT TESTED: a full disk; this user may mount nothing, not even in a namespace")


@pytest.mark.timeout(900)
def test_a_full_disk_ends_a_run_with_its_ledger_whole_and_it_goes_on(tmp_path: Path) -> None:
    points = [0, 8, 17]
    command = [*in_own_mounts(), sys.executable, "-m", "tests.faults.full_disk", tmp_path, *points]
    found = [json.loads(line) for line in python(*command).splitlines()]
    assert len(found) == len(points)
    for events, point in zip(points, found, strict=True):
        assert "No space left" in point["error"], point
        assert "Make room" in point["error"]
        assert point["code"] == 0
        assert point["recorded"] >= events
        assert point["whole"]
        assert point["same"], point
        assert point["left"] == []


def test_a_folder_that_becomes_read_only(tmp_path: Path, wanted: dict[str, object]) -> None:
    said = hindered(tmp_path, "read_only")
    assert "cannot be written" in said
    assert "resume" in said
    out = tmp_path / "out"
    before = read_lines(out / LEDGER)
    assert len(before) >= 9
    assert "cannot be written" in hindered(tmp_path, "moved"), "as long as it is, nothing goes on"
    assert read_lines(out / LEDGER) == before
    for folder in (out, out / "objects"):
        folder.chmod(0o755)
    play(tmp_path)
    assert read_lines(out / LEDGER)[: len(before)] == before
    assert decisions(out) == wanted


def test_a_folder_that_is_moved_is_found_and_the_run_goes_on_when_it_is_back(
    tmp_path: Path, wanted: dict[str, object]
) -> None:
    said = hindered(tmp_path, "moved")
    elsewhere = tmp_path / "elsewhere"
    assert f"It is now {elsewhere / LEDGER}." in said
    assert not (tmp_path / "out").exists()
    assert len(read_lines(elsewhere / LEDGER)) == 9
    elsewhere.rename(tmp_path / "out")
    play(tmp_path)
    assert decisions(tmp_path / "out") == wanted


@pytest.mark.parametrize("how", ["removed", "without_ledger"])
def test_what_is_removed_is_not_made_anew_in_pieces(tmp_path: Path, how: str) -> None:
    said = hindered(tmp_path, how)
    assert "moved, removed or replaced" in said
    assert "It is gone." in said
    assert not (tmp_path / "out" / LEDGER).exists()
    assert (tmp_path / "out").exists() == (how == "without_ledger")


def test_another_runs_folder_in_its_place_is_left_alone(tmp_path: Path) -> None:
    said = hindered(tmp_path, "replaced")
    assert "moved, removed or replaced" in said
    theirs, ours = tmp_path / "out", tmp_path / "elsewhere"
    same = {path.relative_to(theirs): path.read_bytes() for path in theirs.rglob("*.*")}
    assert same == {path.relative_to(ours): path.read_bytes() for path in ours.rglob("*.*")}


def test_a_ledger_that_something_else_wrote_to_is_not_gone_on_with(tmp_path: Path) -> None:
    assert "something else wrote to the ledger" in hindered(tmp_path, "written_to")
    with pytest.raises(LedgerError, match="damaged") as caught:
        read_lines(tmp_path / "out" / LEDGER)
    assert caught.value.where.endswith(":10")


def test_a_version_file_that_was_removed_is_written_again(
    tmp_path: Path, wanted: dict[str, object]
) -> None:
    def remove(ledger: Ledger) -> None:
        if ledger.lines[-1].event.type == "stopped":
            (ledger.folder / "double_opt_v1.py").unlink()

    play(tmp_path, after=remove)
    assert decisions(tmp_path / "out") == wanted


def test_what_a_killed_write_left_is_removed_and_nothing_else_is(tmp_path: Path) -> None:
    Ledger(tmp_path, create=True).close()
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = tmp_path / f".opt_log.md.{dead.pid}-{'0' * 12}.tmp"
    kept = [tmp_path / f".opt_log.md.{os.getpid()}-{'0' * 12}.tmp", tmp_path / ".mine.tmp"]
    for path in (left, *kept):
        path.write_text("half")
    Ledger(tmp_path, create=False).close()
    assert not left.exists()
    assert all(path.exists() for path in kept)


def test_what_a_killed_write_leaves_is_what_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def stop(handle: int) -> None:
        names.extend(path.name for path in tmp_path.iterdir())

    monkeypatch.setattr(os, "fsync", stop)
    atomic_write(tmp_path / "view.md", "x")
    assert names[0].startswith(f".view.md.{os.getpid()}-")


def test_a_run_that_began_in_the_folder_meanwhile_is_not_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, points=[])
    out = tmp_path / "out"
    measured = next(line.event for line in read_lines(out / LEDGER) if line.seq == 2)
    others: list[Ledger] = []

    def meanwhile(*_arguments: object) -> object:
        others.append(Ledger(out, create=False))
        return measured

    monkeypatch.setattr(session, "measure_baseline", meanwhile)
    with (
        lab_for(operator_in(tmp_path), PATIENT) as lab,
        pytest.raises(LedgerError, match=f"process {os.getpid()}"),
    ):
        options = session.Options(RULES)
        session.begin(lab, out, options, Clock(), lambda _text: None, fresh=True)
    others[0].append(session.RunResumed(tool_version="0"))
    others[0].close()
    assert not (tmp_path / "out.1").exists()
