"""Whole runs: what is left behind, interruption, resumption. Once with real TileLang, else with an operator that needs none."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opratchet.ledger.state import fold
from opratchet.ledger.store import read_lines
from tests.cli.conftest import (
    SCRIPTED,
    Command,
    background,
    completed,
    environment,
    write_small,
)
from tests.cli.toy import write_toy

KEYS = [
    "verdict",
    "stop_reason",
    "metric_kind",
    "baseline_us",
    "final_us",
    "speedup",
    "speedup_ci",
    "rounds",
    "experiments",
    "outcomes",
    "by_workload",
    "output",
    "ledger",
    "seconds",
]
STAGE_KEYS = [
    "stage",
    "project",
    "operator",
    "output",
    "verdict",
    "iterations",
    "baseline_latency",
    "final_latency",
    "improvement",
    "stop_reason",
    "skills_consulted",
    "summary",
    "issues",
]


Completed = subprocess.CompletedProcess[str]


# --- one run with real TileLang -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Completed]:
    """The operator's folder after a run of one round in a locale without any UTF-8, and how the command ended."""
    small = write_small(tmp_path_factory.mktemp("real"))
    changes = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    return small, completed("tune", small, "--max-rounds", 1, "--json", **changes)


@pytest.mark.tilelang
@pytest.mark.timing
def test_a_run_leaves_the_tree_of_the_procedure(real: tuple[Path, Completed]) -> None:
    small, done = real
    assert done.returncode == 0, done.stderr
    left = {path.name for path in (small / "perf_opt").iterdir()}
    assert left == {
        "rmsnorm.py",
        "rmsnorm_opt_v1.py",
        "baseline.py",
        "opt_log.md",
        "stage_result.md",
        "perf_records.jsonl",
        "workload_inventory.json",
        "ledger.jsonl",
        "objects",
    }
    source = write_small(small.parent / "again") / "rmsnorm.py"
    assert (small / "rmsnorm.py").read_bytes() == source.read_bytes()
    assert (small / "perf_opt" / "baseline.py").resolve() == (small / "rmsnorm.py").resolve()


@pytest.mark.tilelang
@pytest.mark.timing
def test_the_summary_of_a_run_says_what_was_won(real: tuple[Path, Completed]) -> None:
    summary = json.loads(real[1].stdout)
    assert list(summary) == KEYS
    assert summary["verdict"] == "TUNING_COMPLETED"
    assert summary["metric_kind"] == "measured"
    assert summary["stop_reason"] == "max_rounds"
    assert summary["speedup"] > 1.2
    assert summary["speedup_ci"][0] > 1.0
    assert {"total", "build", "accuracy", "measure", "own"} == set(summary["seconds"])


@pytest.mark.tilelang
@pytest.mark.timing
def test_any_locale_will_do(real: tuple[Path, Completed]) -> None:
    log = (real[0] / "perf_opt" / "opt_log.md").read_text(encoding="utf-8")
    assert log.startswith("# rmsnorm 性能调优日志")
    assert "基线" in log


@pytest.mark.tilelang
@pytest.mark.timing
def test_the_delivered_file_is_a_whole_operator_whose_own_check_passes(
    real: tuple[Path, Completed],
) -> None:
    done = subprocess.run(
        [sys.executable, str(real[0] / "perf_opt" / "rmsnorm.py"), "--level", "L0"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert "[PRECISION_PASS]" in done.stdout, done.stderr


# --- a finished run -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Completed]:
    """The operator's folder after a run of one round, and how the command ended."""
    toy = write_toy(tmp_path_factory.mktemp("finished"))
    limits = ("--max-rounds", 1, "--max-experiments", 2)
    done = completed("tune", toy, *limits, "--lang", "en", module=SCRIPTED)
    assert done.returncode == 0, done.stderr
    return toy, done


@pytest.fixture
def again(finished: tuple[Path, Completed], tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(finished[0], tmp_path / "double", symlinks=True)


def test_the_completion_report_comes_last(finished: tuple[Path, Completed]) -> None:
    toy, done = finished
    report = (toy / "perf_opt" / "stage_result.md").read_text(encoding="utf-8")
    assert done.stdout.rstrip().endswith(report.rstrip())
    lines = [line[2:].split(":")[0] for line in report.splitlines() if line.startswith("- ")]
    assert lines == STAGE_KEYS


def test_a_folder_that_holds_a_run_is_not_written_to_again(scripted: Command, again: Path) -> None:
    ledger = again / "perf_opt" / "ledger.jsonl"
    before = ledger.read_bytes()
    done = scripted("tune", again)
    assert done.returncode == 2
    assert "--fresh" in done.stderr
    assert ledger.read_bytes() == before


def test_the_files_go_where_they_are_wanted(scripted: Command, toy: Path, tmp_path: Path) -> None:
    done = scripted("tune", toy, "--max-rounds", 1, "--max-experiments", 1, "--out", tmp_path / "o")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "double.py").exists()
    assert not (toy / "perf_opt").exists()


def test_limits_can_be_changed_when_a_run_goes_on(scripted: Command, again: Path) -> None:
    ledger = again / "perf_opt" / "ledger.jsonl"
    before = ledger.read_bytes()
    refused = scripted("resume", again, "--max-experiments", 3)
    assert refused.returncode == 2
    assert "--max-experiments" in refused.stderr
    assert ledger.read_bytes() == before
    done = scripted("resume", again, "--patience", 1, "--budget", 60, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 1
    assert "resumed   patience 1   budget seconds 60" in done.stderr
    assert fold(read_lines(ledger)).options["patience"] == 1


def test_a_changed_source_is_not_resumed(scripted: Command, again: Path) -> None:
    source = again / "double.py"
    source.write_text(source.read_text() + "\n# changed\n")
    done = scripted("resume", again)
    assert done.returncode == 2
    assert "--fresh" in done.stderr


def test_reports_are_rebuilt_from_the_ledger_alone(opratchet: Command, again: Path) -> None:
    folder = again / "perf_opt"
    before = {name: (folder / name).read_bytes() for name in ("opt_log.md", "perf_records.jsonl")}
    for name in before:
        (folder / name).unlink()
    assert opratchet("report", again, "--lang", "en").returncode == 0
    assert {name: (folder / name).read_bytes() for name in before} == before


# --- a run that goes on -------------------------------------------------------------------------------------


@contextmanager
def going_on(toy: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that stands at its second candidate inside, and goes on from there after."""
    temporary = toy.parents[1] / "temporary"
    temporary.mkdir()
    hold = temporary / "hold-3"
    hold.touch()
    process = background("tune", toy, module=SCRIPTED, TMPDIR=str(temporary))
    try:
        wait_for_trials(toy / "perf_opt", process)
        yield process
    finally:
        hold.unlink()


def wait_for_trials(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a trial is on record."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        ledger = folder / "ledger.jsonl"
        if ledger.exists() and '"trial_finished"' in ledger.read_text():
            return
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"the run made no progress: {process.communicate()}")


def test_ctrl_c_once_delivers_the_best_so_far(toy: Path) -> None:
    with going_on(toy) as process:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 5, err
    assert "user stop" in out
    assert (toy / "perf_opt" / "double.py").exists()
    assert fold(read_lines(toy / "perf_opt" / "ledger.jsonl")).delivered is not None


def test_from_another_terminal_a_run_is_seen_and_stopped_but_not_run_again(
    opratchet: Command, scripted: Command, toy: Path
) -> None:
    with going_on(toy) as process:
        other = scripted("resume", toy)
        assert other.returncode == 2
        assert str(process.pid) in other.stderr
        assert "running" in opratchet("status", toy).stdout
        assert opratchet("stop", toy).returncode == 0
    process.communicate(timeout=120)
    assert process.returncode == 5
    assert "not running" in opratchet("status", toy).stdout


# --- no run -------------------------------------------------------------------------------------------------


def test_an_inaccurate_operator_is_refused(scripted: Command, toy: Path) -> None:
    source = toy / "double.py"
    source.write_text(source.read_text().replace("X * 2", "X * 2.1"))
    done = scripted("tune", toy)
    assert done.returncode == 3, done.stderr
    assert "n64" in done.stderr
    assert not (toy / "perf_opt").exists()


@pytest.mark.tilelang
def test_a_shape_that_the_kernel_refuses_is_bad_input(opratchet: Command, small: Path) -> None:
    source = small / "rmsnorm.py"
    guard = '    assert N % 256 == 0, "N must be a multiple of 256"\n\n    @T.prim_func'
    source.write_text(source.read_text().replace("    @T.prim_func", guard, 1))
    done = opratchet("tune", small)
    assert done.returncode == 2
    assert "multiple of 256" in done.stderr
    assert not (small / "perf_opt").exists()


def test_measure_writes_nothing(scripted: Command, toy: Path) -> None:
    before = {path.name for path in toy.iterdir()}
    measured = json.loads(scripted("measure", toy, "--json").stdout)
    assert measured["latency"]["n64"]["kind"] == "measured"
    assert measured["latency"]["n64"]["us"] == pytest.approx(400, rel=0.02)
    assert {path.name for path in toy.iterdir()} == before


@pytest.mark.tilelang
@pytest.mark.timing
def test_diagnose_names_the_bottlenecks_and_writes_nothing(opratchet: Command, small: Path) -> None:
    before = {path.name for path in small.iterdir()}
    found = json.loads(opratchet("diagnose", small, "--json").stdout)
    names = {bottleneck["name"] for bottleneck in found["bottlenecks"]}
    assert names == {"memory", "compute_density", "pipeline_depth", "block_size"}
    assert {path.name for path in small.iterdir()} == before
