"""Whole runs on a small real operator: what is left behind, interruption, resumption. Real TileLang, real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opratchet.ledger.state import fold
from opratchet.ledger.store import read_lines
from tests.cli.conftest import Command, background, environment

pytestmark = pytest.mark.tilelang

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


def wait_for_trials(folder: Path, count: int) -> None:
    """Wait until some trials are finished in a running run."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        ledger = folder / "ledger.jsonl"
        if ledger.exists() and ledger.read_text().count('"trial_finished"') >= count:
            return
        time.sleep(0.1)
    raise AssertionError("the run made no progress")


@pytest.mark.timing
def test_a_run_leaves_the_tree_of_the_procedure(opratchet: Command, small: Path) -> None:
    source = (small / "rmsnorm.py").read_bytes()
    done = opratchet("tune", small, "--max-rounds", 1, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert list(summary) == KEYS
    assert summary["verdict"] == "TUNING_COMPLETED"
    assert summary["metric_kind"] == "measured"
    assert summary["stop_reason"] == "max_rounds"
    assert summary["speedup"] > 1.2
    assert summary["speedup_ci"][0] > 1.0
    assert {"total", "build", "accuracy", "measure", "own"} == set(summary["seconds"])
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
    assert (small / "rmsnorm.py").read_bytes() == source
    assert (small / "perf_opt" / "baseline.py").resolve() == (small / "rmsnorm.py").resolve()
    log = (small / "perf_opt" / "opt_log.md").read_text(encoding="utf-8")
    assert log.startswith("# rmsnorm 性能调优日志")
    delivered_file_still_passes_its_own_check(small / "perf_opt" / "rmsnorm.py")


def delivered_file_still_passes_its_own_check(path: Path) -> None:
    """The delivered file is a whole operator: its own L0 check runs."""
    done = subprocess.run(
        [sys.executable, str(path), "--level", "L0"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert "[PRECISION_PASS]" in done.stdout, done.stderr


def test_the_completion_report_comes_last(opratchet: Command, small: Path) -> None:
    done = opratchet("tune", small, "--max-rounds", 1, "--lang", "en", "--out", small / "out")
    assert done.returncode == 0
    report = (small / "out" / "stage_result.md").read_text(encoding="utf-8")
    assert done.stdout.rstrip().endswith(report.rstrip())
    lines = [line[2:].split(":")[0] for line in report.splitlines() if line.startswith("- ")]
    assert lines == STAGE_KEYS
    again = opratchet("tune", small, "--out", small / "out")
    assert again.returncode == 2
    assert "--fresh" in again.stderr


def test_ctrl_c_once_delivers_the_best_so_far(small: Path) -> None:
    process = background("tune", small)
    wait_for_trials(small / "perf_opt", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 5, err
    assert "user stop" in out
    assert (small / "perf_opt" / "rmsnorm.py").exists()
    assert fold(read_lines(small / "perf_opt" / "ledger.jsonl")).delivered is not None


def test_stop_does_the_same_from_another_terminal(opratchet: Command, small: Path) -> None:
    process = background("tune", small)
    wait_for_trials(small / "perf_opt", 1)
    assert "running" in opratchet("status", small).stdout
    assert opratchet("stop", small).returncode == 0
    process.communicate(timeout=120)
    assert process.returncode == 5
    assert "not running" in opratchet("status", small).stdout


def test_limits_can_be_changed_when_a_run_goes_on(opratchet: Command, small: Path) -> None:
    ledger = small / "perf_opt" / "ledger.jsonl"
    assert opratchet("tune", small, "--max-rounds", 1, "--max-experiments", 1).returncode == 0
    before = ledger.read_bytes()
    refused = opratchet("resume", small, "--max-experiments", 2)
    assert refused.returncode == 2
    assert "--max-experiments" in refused.stderr
    assert ledger.read_bytes() == before
    done = opratchet("resume", small, "--patience", 1, "--budget", 60, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 1
    assert "resumed   patience 1   budget seconds 60" in done.stderr
    assert fold(read_lines(ledger)).options["patience"] == 1


def test_two_runs_on_one_folder_do_not_mix(opratchet: Command, small: Path) -> None:
    process = background("tune", small)
    wait_for_trials(small / "perf_opt", 1)
    other = opratchet("resume", small)
    assert other.returncode == 2
    assert str(process.pid) in other.stderr
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)


def test_a_changed_source_is_not_resumed(opratchet: Command, small: Path) -> None:
    assert opratchet("tune", small, "--max-rounds", 1).returncode == 0
    source = small / "rmsnorm.py"
    source.write_text(source.read_text() + "\n# changed\n")
    done = opratchet("resume", small)
    assert done.returncode == 2
    assert "--fresh" in done.stderr


def test_reports_are_rebuilt_from_the_ledger_alone(opratchet: Command, small: Path) -> None:
    assert opratchet("tune", small, "--max-rounds", 1).returncode == 0
    folder = small / "perf_opt"
    before = {name: (folder / name).read_bytes() for name in ("opt_log.md", "perf_records.jsonl")}
    for name in before:
        (folder / name).unlink()
    assert opratchet("report", small).returncode == 0
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_an_inaccurate_operator_is_refused(opratchet: Command, small: Path) -> None:
    source = small / "rmsnorm.py"
    source.write_text(source.read_text().replace("* W\n", "* W * 1.01\n", 1))
    done = opratchet("tune", small)
    assert done.returncode == 3, done.stderr
    assert "64x512" in done.stderr
    assert not (small / "perf_opt").exists()


def test_a_shape_that_the_kernel_refuses_is_bad_input(opratchet: Command, small: Path) -> None:
    source = small / "rmsnorm.py"
    guard = '    assert N % 256 == 0, "N must be a multiple of 256"\n\n    @T.prim_func'
    source.write_text(source.read_text().replace("    @T.prim_func", guard, 1))
    done = opratchet("tune", small)
    assert done.returncode == 2
    assert "multiple of 256" in done.stderr
    assert not (small / "perf_opt").exists()


def test_measure_and_diagnose_write_nothing(opratchet: Command, small: Path) -> None:
    before = {path.name for path in small.iterdir()}
    measured = json.loads(opratchet("measure", small, "--json").stdout)
    assert measured["latency"]["64x512"]["kind"] == "measured"
    assert measured["latency"]["64x512"]["us"] > 0
    found = json.loads(opratchet("diagnose", small, "--json").stdout)
    names = {bottleneck["name"] for bottleneck in found["bottlenecks"]}
    assert names == {"memory", "compute_density", "pipeline_depth", "block_size"}
    assert {path.name for path in small.iterdir()} == before


@pytest.mark.parametrize("changes", [{"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_any_locale_will_do(opratchet: Command, small: Path, changes: dict[str, str]) -> None:
    done = opratchet("tune", small, "--max-rounds", 1, **changes)
    assert done.returncode == 0, done.stderr
    assert "基线" in (small / "perf_opt" / "opt_log.md").read_text(encoding="utf-8")
