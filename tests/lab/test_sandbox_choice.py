"""Which sandbox is chosen, what is said where there is none, and what goes on record of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opratchet import session
from opratchet.errors import EnvironmentMissing
from opratchet.flow.model import StopRules
from opratchet.lab import sandbox as sandbox_module
from opratchet.lab.bench import Lab
from opratchet.lab.processes import worker_environment
from opratchet.lab.sandbox import Mode, Sandbox, choose
from opratchet.ledger.events import Line, RunResumed, RunStarted
from opratchet.ledger.state import RunState, apply, fold
from opratchet.report import words
from tests.cli.conftest import environment
from tests.engine.scripted import ROOT
from tests.lab.boxes import NEEDS, WORKS


def test_off_says_so(tmp_path: Path) -> None:
    found = choose(Mode.OFF)
    assert not found.active
    lacking = [one for one in found.protections if not one.active]
    assert len(lacking) >= 6
    assert all("--sandbox off" in one.why_not for one in lacking if "limit of" not in one.name)
    assert found.record().keys() == Sandbox(program="/usr/bin/bwrap").record().keys()


def test_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = choose(Mode.AUTO)
    assert not found.active
    assert "apt-get install bubblewrap" in found.why_not
    with pytest.raises(EnvironmentMissing, match="not installed") as caught:
        choose(Mode.REQUIRE)
    assert caught.value.exit_code == 6


def test_one_that_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    assert "No permissions to create new namespace" in choose(Mode.AUTO).why_not
    with pytest.raises(EnvironmentMissing, match="No permissions"):
        choose(Mode.REQUIRE)


def test_environment_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("TILELANG_API_KEY", "x")
    monkeypatch.setenv("TILELANG_SOMETHING", "y")
    monkeypatch.setenv("ODD", "z")
    assert not {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "TILELANG_API_KEY", "ODD"} & set(
        worker_environment()
    )
    assert worker_environment()["TILELANG_SOMETHING"] == "y"
    assert worker_environment(trusted=True)["ODD"] == "z"
    monkeypatch.setenv("OPRATCHET_PASS_ENV", "OTHER, ODD")
    assert worker_environment()["ODD"] == "z"


def test_bubblewrap_is_a_program_of_this_machine() -> None:
    """Says loudly in the summary of the tests when all of the above was left out."""
    if shutil.which(sandbox_module.PROGRAM) is None:
        pytest.skip(NEEDS)
    assert WORKS.active, WORKS.why_not


def test_a_run_puts_the_protections_on_record(either: Lab) -> None:
    header = session.header(either, session.Options(StopRules()))
    assert header.protections == either.sandbox.record()
    state = RunState()
    apply(state, Line(seq=0, at="", prev="", event=header))
    for lang in ("zh", "en"):
        told = words.protections(state, lang)
        assert ("no network" in told) is not either.sandbox.active
        assert "golden in a process tree" not in told


def test_a_protection_counts_only_if_it_was_active_all_the_time(bare: Lab) -> None:
    header = session.header(bare, session.Options(StopRules()))
    began = header.model_copy(update={"protections": {"a": "", "b": "", "c": "old reason"}})
    again = RunResumed(tool_version="1", protections={"a": "", "b": "not here", "c": ""})
    state = fold(
        [Line(seq=n, at="", prev="", event=event) for n, event in enumerate((began, again))]
    )
    assert state.protections == {"a": "", "b": "not here", "c": "old reason"}
    assert words.protections(state, "en").endswith(
        "1 protections active; not active: b (not here); c (old reason)"
    )


def test_a_ledger_from_before_has_none(bare: Lab) -> None:
    data = session.header(bare, session.Options(StopRules())).model_dump(mode="json")
    del data["protections"]
    state = fold([Line(seq=0, at="", prev="", event=RunStarted.model_validate(data))])
    assert words.protections(state, "zh") == ""


@pytest.mark.parametrize("command", ["measure", "diagnose", "tune", "compare"])
def test_required_and_missing_ends_with_what_to_install(tmp_path: Path, command: str) -> None:
    folder = ROOT / "examples" / "norm" / "rmsnorm"
    paths = [folder, folder] if command == "compare" else [folder]
    done = subprocess.run(
        [sys.executable, "-m", "opratchet", command, *paths, "--sandbox", "require"],
        env=environment(PATH=str(tmp_path)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert "apt-get install bubblewrap" in done.stderr
