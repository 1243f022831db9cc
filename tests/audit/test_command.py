"""The command: exit codes, what is printed, what is written (nothing)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


def test_a_clean_folder_gives_zero(opratchet: Command, run: Path) -> None:
    for path in (run, run.parent):
        done = opratchet("audit", path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1].startswith("result    clean")


def test_findings_give_one_and_are_told_with_both_values(opratchet: Command, run: Path) -> None:
    log = run / "opt_log.md"
    log.write_text(log.read_text().replace("100.00", "90.00", 1))
    done = opratchet("audit", run)
    assert done.returncode == 1
    assert "opt_log.md:" in done.stdout
    assert "90.00" in done.stdout
    assert "100.00" in done.stdout
    assert done.stdout.splitlines()[-1] == "result    1 finding"


def test_json_is_one_object(opratchet: Command, run: Path) -> None:
    (run / "rmsnorm.py").unlink()
    done = opratchet("audit", run, "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert data["clean"] is False
    [finding] = data["findings"]
    assert finding["file"] == "rmsnorm.py"
    assert set(finding) == {"check", "file", "what", "line", "key", "found", "expected"}
    assert data["running"] is False


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_no_run_is_bad_input(opratchet: Command, tmp_path: Path, place: str) -> None:
    done = opratchet("audit", tmp_path / place)
    assert done.returncode == 2
    assert "no run is recorded here" in done.stderr


def test_what_cannot_be_measured_again_is_told(opratchet: Command, run: Path) -> None:
    source = run.parent / "rmsnorm.py"
    source.write_text(source.read_text() + "\n")
    done = opratchet("audit", run, "--remeasure")
    assert done.returncode == 2
    assert "the source has changed" in done.stderr
    assert "baseline.py" in done.stdout
