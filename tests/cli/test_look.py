"""The commands that run nothing of the operator, and what bad input gives: one clear error, exit 2, nothing written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Command, environment


def tree(folder: Path) -> set[str]:
    """All files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_check_says_what_is_understood_and_from_where(opratchet: Command) -> None:
    done = opratchet("check", ROOT / "examples" / "activation" / "softmax")
    assert done.returncode == 0
    assert "golden_softmax" in done.stdout
    assert "opratchet.toml:" in done.stdout
    assert "convention" in done.stdout
    assert "DESIGN.md:" in done.stdout


def test_check_as_json_is_one_object(within: Command, small: Path) -> None:
    data = json.loads(within("check", small, "--json").stdout)
    assert data["kernel"] == "rmsnorm"
    assert [w["id"] for w in data["workloads"]] == ["64x512", "5x100"]


@pytest.mark.parametrize(
    ("change", "arguments", "expected"),
    [
        (("backend = ", "bakend = "), [], ["opratchet.toml:2", "bakend", "backend"]),
        (('"tilelang-c"', '"tilelang-x"'), [], ["tilelang-x", "tilelang-c"]),
        (('id = "5x100"', 'id = "64x512"'), [], ["opratchet.toml:", "64x512"]),
        (("N = 100", "Z = 100"), [], ["opratchet.toml:", "Z"]),
        (("", ""), ["--flow", "nothing"], ["nothing", "tilelang"]),
        (("", ""), ["--target-us", "fast"], ["--target-us", "valid number"]),
        (("", ""), ["--target-us", "nan"], ["target"]),
        (("", ""), ["--lang", "fr"], ["fr", "zh"]),
    ],
)
def test_bad_input_is_one_error_that_says_where_and_what_to_do(
    within: Command,
    small: Path,
    change: tuple[str, str],
    arguments: list[str],
    expected: list[str],
) -> None:
    manifest = small / "opratchet.toml"
    manifest.write_text(manifest.read_text().replace(*change, 1))
    before = tree(small)
    done = within("tune", small, *arguments)
    assert done.returncode == 2
    for text in expected:
        assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert tree(small) == before


@pytest.mark.parametrize("command", ["tune", "check", "measure", "diagnose"])
def test_a_missing_file_is_named(within: Command, tmp_path: Path, command: str) -> None:
    done = within(command, tmp_path / "no such")
    assert done.returncode == 2
    assert "no such" in done.stderr


@pytest.mark.parametrize("command", ["status", "resume", "stop", "report"])
def test_without_a_run_the_commands_say_so(within: Command, small: Path, command: str) -> None:
    done = within(command, small)
    assert done.returncode == 2
    assert "tune" in done.stderr


def test_a_syntax_error_is_given_with_its_line(within: Command, small: Path) -> None:
    source = small / "rmsnorm.py"
    source.write_text(source.read_text() + "\ndef broken(:\n")
    done = within("tune", small)
    assert done.returncode == 2
    assert f"rmsnorm.py:{len(source.read_text().splitlines())}" in done.stderr


def test_doctor_lists_every_backend(opratchet: Command) -> None:
    done = opratchet("doctor", "--json")
    assert json.loads(done.stdout)["tilelang-c"]["metric_kind"] == "measured"
    assert "tilelang-c" in opratchet("doctor").stdout


def test_doctor_names_what_is_missing_and_how_to_install_it(opratchet: Command) -> None:
    done = opratchet("doctor", CXX="no-such-compiler")
    assert "MISSING: apt-get install g++" in done.stdout


def test_a_missing_compiler_stops_a_run_before_it_begins(opratchet: Command, small: Path) -> None:
    done = opratchet("tune", small, CXX="no-such-compiler")
    assert done.returncode == 6
    assert "g++" in done.stderr
    assert not (small / "perf_opt").exists()


def test_the_core_needs_no_dsl() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'tilelang', 'tvm', 'pypto'): sys.modules[name] = None\n"
        "import opratchet.engine, opratchet.session, opratchet.cli.inspect, opratchet.cli.tune\n"
        "from opratchet.backend.registry import BACKENDS, get_backend\n"
        "print(all(get_backend(name).requirements() for name in BACKENDS))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.stdout.strip() == "True", done.stderr


def test_the_command_line_loads_nothing_heavy() -> None:
    code = (
        "import sys, opratchet.cli.main\n"
        "print([n for n in ('numpy', 'pydantic', 'libcst', 'torch', 'rich.live') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("place", [".", "..", "rmsnorm.py", "rmsnorm.py/x", "mine"])
@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_a_run_never_touches_what_is_the_users(
    within: Command, small: Path, place: str, fresh: list[str]
) -> None:
    (small / "mine").mkdir()
    (small / "mine" / "rmsnorm.py").write_text("mine")
    before = {path: path.read_bytes() for path in small.rglob("*") if path.is_file()}
    done = within("tune", small, "--out", small / place, *fresh)
    assert done.returncode == 2
    assert "--out" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in small.rglob("*") if path.is_file()} == before


def test_an_empty_ledger_is_no_run(within: Command, small: Path) -> None:
    (small / "perf_opt").mkdir()
    (small / "perf_opt" / "ledger.jsonl").touch()
    done = within("resume", small)
    assert done.returncode == 2
    assert "tune" in done.stderr


def test_a_workload_that_is_too_large_is_named(scripted: Command, toy: Path) -> None:
    manifest = toy / "opratchet.toml"
    manifest.write_text(manifest.read_text().replace("N = 64", "N = 400000000"))
    done = scripted("measure", toy)
    assert done.returncode == 2
    assert "n64" in done.stderr
    assert "3.0 GiB" in done.stderr
