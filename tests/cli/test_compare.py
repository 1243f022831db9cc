"""`compare`: two commands, and two versions of a real operator, as a user and as a CI job run it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from opratchet.cli.comparison import candidate, reference
from opratchet.ledger.events import RunStarted
from opratchet.ledger.store import Ledger
from opratchet.operator.discover import Overrides
from tests.builders import Story
from tests.cli.conftest import Command, background
from tests.clock import CALIBRATION

KEYS = {
    "verdict",
    "ratio",
    "interval",
    "confidence",
    "pairs",
    "processes",
    "metric_kind",
    "unit",
    "a",
    "b",
    "by_workload",
    "reason",
    "blocked_by",
    "noise",
    "conditions",
    "seconds",
}


def printer(folder: Path, name: str, mean: float, spread: float) -> str:
    """A command that prints a time: drawn from a generator that is seeded by how often it ran before."""
    program = folder / f"{name}.py"
    program.write_text(
        "import json, pathlib, random\n"
        f"count = pathlib.Path({str(folder / name)!r})\n"
        "done = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(done + 1))\n"
        f"random.seed({name!r} + str(done))\n"
        f"time = random.gauss({mean}, {spread})\n"
        "print('warm-up done')\n"
        "print(json.dumps({'result': [{'ms': time}]}))\n"
        "print(f'time: {time} ms')\n",
        encoding="utf-8",
    )
    return f"{shlex.quote(sys.executable)} -S {shlex.quote(str(program))}"


def answer(opratchet: Command, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The JSON of a comparison."""
    done = opratchet("compare", *arguments, "--json")
    assert done.returncode == code, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    assert set(data) == KEYS
    return data


# --- commands -----------------------------------------------------------------------------------------------


def test_wall_times_are_told_apart_and_stdout_begins_with_the_verdict(opratchet: Command) -> None:
    done = opratchet("compare", "--shell", "sleep 0.2", "sleep 0.05")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("B is faster: ")
    assert "measured, 12 pairs of runs" in first
    assert "sleep 0.2" in rest[0]
    assert "24 runs at least" in done.stderr


def test_the_json_of_wall_times_holds_all_that_was_found(opratchet: Command) -> None:
    data = answer(opratchet, "--shell", "sleep 0.05", "sleep 0.2", "--unit", "ms")
    assert data["verdict"] == "slower"
    assert data["interval"][0] <= data["ratio"] <= data["interval"][1] < 1
    assert data["pairs"] == data["processes"] == data["a"]["samples"]
    assert (data["metric_kind"], data["unit"]) == ("measured", "ms")
    assert data["a"]["what"] == "sleep 0.05"
    assert 50 < data["a"]["value"] < data["b"]["value"] < 2000
    assert data["noise"] is None
    assert data["by_workload"] == []


@pytest.mark.parametrize(
    "read", [("--json-key", "result.0.ms"), ("--regex", "^time: (?P<time>.*) ms$")]
)
@pytest.mark.parametrize(("mean", "verdict"), [(9.0, "faster"), (10.0, "tie"), (11.0, "slower")])
def test_printed_times_are_judged(
    within: Command, tmp_path: Path, read: tuple[str, str], mean: float, verdict: str
) -> None:
    commands = printer(tmp_path, "a", 10.0, 0.03), printer(tmp_path, "b", mean, 0.03)
    data = answer(within, "--shell", *commands, *read, "--unit", "ms")
    assert data["verdict"] == verdict
    assert data["a"]["value"] == pytest.approx(10.0, rel=0.01)
    assert data["ratio"] == pytest.approx(10.0 / mean, rel=0.01)


def test_noise_without_an_end_is_inconclusive(within: Command, tmp_path: Path) -> None:
    commands = printer(tmp_path, "a", 10.0, 1.0), printer(tmp_path, "b", 10.0, 1.0)
    data = answer(within, "--shell", *commands, "--json-key", "result.0.ms", "--pairs-max", 24)
    assert data["verdict"] == "inconclusive"
    assert data["pairs"] == 24
    assert "noise" in data["reason"]
    assert data["unit"] is None


@pytest.mark.parametrize(
    ("verdict", "times", "fail_if", "code"),
    [
        ("slower", (2, 3), [], 0),
        ("slower", (2, 3), ["slower"], 1),
        ("faster", (3, 2), ["slower"], 0),
        ("faster", (3, 2), ["slower", "faster"], 1),
        ("tie", (2, 2), ["slower", "inconclusive"], 0),
        ("tie", (2, 2), ["tie"], 1),
    ],
)
def test_the_exit_code_is_what_ci_asks_for(
    within: Command, verdict: str, times: tuple[int, int], fail_if: list[str], code: int
) -> None:
    commands = [f"echo t={time}" for time in times]
    asked = [word for name in fail_if for word in ("--fail-if", name)]
    data = answer(within, "--shell", *commands, "--regex", "t=(.*)", *asked, code=code)
    assert data["verdict"] == verdict


@pytest.mark.parametrize("kind", ["simulated", "estimated"])
def test_a_cost_model_is_compared_exactly(within: Command, tmp_path: Path, kind: str) -> None:
    log = tmp_path / "log"
    commands = [f"echo x >> {shlex.quote(str(log))}; echo cycles {n}" for n in (1000, 900)]
    options = ("--regex", "cycles (.*)", "--metric-kind", kind)
    data = answer(within, "--shell", *commands, *options)
    assert data["verdict"] == "faster"
    assert data["interval"] == [data["ratio"]] * 2 == [pytest.approx(1000 / 900)] * 2
    assert (data["metric_kind"], data["pairs"]) == (kind, 1)
    assert log.read_text().split() == ["x"] * 4


def test_a_cost_model_that_does_not_repeat_is_refused(within: Command, tmp_path: Path) -> None:
    command = printer(tmp_path, "a", 10.0, 1.0)
    options = ("--json-key", "result.0.ms", "--metric-kind", "simulated")
    done = within("compare", "--shell", command, command, *options)
    assert done.returncode == 2
    assert "not reproducible" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["true", "echo why; exit 7"], ["B: `echo why; exit 7`", "exit code 7", "why"]),
        (["sleep 30", "true", "--timeout", "0.3"], ["A: `sleep 30`", "0.3 s", "--timeout"]),
        (["echo 1", "echo x", "--regex", "(.)"], ["B: `echo x`", "'x'", "not a number"]),
        (["true", "true", "--regex", "x"], ["--regex", "no group"]),
        (["true", "true", "--regex", "(.)", "--json-key", "a"], ["--regex", "--json-key"]),
        (["true", "true", "--metric-kind", "simulated"], ["--metric-kind", "--regex"]),
        (["true", "true", "--cpu", "9999"], ["--cpu", "9999"]),
        (["true", "true", "--seconds", "nan"], ["--seconds"]),
        (["true", "true", "--timeout", "inf"], ["--timeout", "inf"]),
        (["true", "true", "--pairs-max", "11"], ["--pairs-max"]),
        (["true", "true", "--fail-if", "blocked"], ["--fail-if", "blocked"]),
        (["true", "true", "--backend", "tilelang-c"], ["--backend", "--shell"]),
        (["sleep 0.3", "true", "--seconds", "2"], ["--seconds", "24", "or more"]),
    ],
)
def test_what_cannot_be_compared_is_one_error(
    within: Command, arguments: list[str], expected: list[str]
) -> None:
    done = within("compare", "--shell", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in expected:
        assert part in done.stderr


def test_seconds_that_end_too_early_are_inconclusive(within: Command) -> None:
    commands = ("sleep 0.15", "sleep 0.1", "--seconds", 1.2, "--warmup", 0)
    data = answer(within, "--shell", *commands)
    assert data["verdict"] == "inconclusive"
    assert "--seconds" in data["reason"]
    assert (data["ratio"], data["interval"], data["a"]["value"]) == (None, None, None)


def test_runs_are_bound_to_the_cpu_that_is_named(opratchet: Command) -> None:
    cpu = min(os.sched_getaffinity(0))
    program = "import os; print('t', 1 + sum(os.sched_getaffinity(0)) + 100 * len(os.sched_getaffinity(0)))"
    command = f"{shlex.quote(sys.executable)} -S -c {shlex.quote(program)}"
    data = answer(opratchet, "--shell", command, command, "--regex", "t (.*)", "--cpu", cpu)
    assert data["a"]["value"] == pytest.approx(101 + cpu)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_comparison_that_is_stopped_leaves_nothing(sent: signal.Signals) -> None:
    token = f"30{int(sent)}.{os.getpid()}"
    process = background("compare", "--shell", f"sleep {token} & sleep {token}", "true")
    family = psutil.Process(process.pid)
    deadline = time.monotonic() + 60
    while len(family.children(recursive=True)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    below = family.children(recursive=True)
    process.send_signal(sent)
    _out, errors = process.communicate(timeout=20)
    assert process.returncode == 5, errors
    assert "Traceback" not in errors
    assert psutil.wait_procs(below, timeout=10)[1] == []


# --- versions of an operator --------------------------------------------------------------------------------


def variant(source: Path, name: str, *change: str) -> Path:
    """Another version of an operator's source: one text replaced by another."""
    text = source.read_text(encoding="utf-8")
    assert not change or change[0] in text
    path = source.with_name(name)
    path.write_text(text.replace(*change) if change else text + "\n# other\n", encoding="utf-8")
    return path


def contents(folder: Path) -> dict[Path, bytes]:
    """All files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_slower_version_is_told(scripted: Command, toy: Path) -> None:
    slow = variant(toy / "double.py", "slow.py", "block_N=8", "block_N=4")
    before = contents(toy)
    data = answer(scripted, toy, slow, "--fail-if", "slower", code=1)
    assert data["verdict"] == "slower"
    assert data["interval"][1] < 1
    assert (data["metric_kind"], data["unit"]) == ("measured", "us")
    [workload] = data["by_workload"]
    assert workload["id"] == "n64"
    assert workload["ratio"] == data["ratio"] == pytest.approx(0.5, rel=0.02)
    assert workload["a"]["value"] < workload["b"]["value"]
    assert data["b"]["value"] == pytest.approx(workload["b"]["value"])
    assert data["noise"]["interval"][0] <= 1.0 <= data["noise"]["interval"][1]
    assert data["noise"]["processes"] == CALIBRATION
    assert data["b"]["what"] == str(slow)
    assert contents(toy) == before


@pytest.mark.tilelang
@pytest.mark.timing
def test_a_kernel_that_is_really_slower_is_told(opratchet: Command, small: Path) -> None:
    slow = variant(small / "rmsnorm.py", "slow.py", '"-O3"', '"-O0"')
    data = answer(opratchet, small, slow)
    assert data["verdict"] == "slower"
    assert data["interval"][1] < 1


def test_the_same_code_is_a_tie_that_is_not_timed(scripted: Command, toy: Path) -> None:
    done = scripted("compare", toy / "double.py", variant(toy / "double.py", "same.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "tie: the generated code is the same"
    assert "measuring" not in done.stderr


def is_no_comparison(done: subprocess.CompletedProcess[str], *expected: str) -> None:
    """Version B cannot be compared, and it is said why."""
    assert done.returncode == 2, done.stderr
    for part in ["B cannot be compared", *expected]:
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert "measuring" not in done.stderr


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ('run = "wrong"', ["accuracy failed", "n64"]),
        ('build = "fail"', ["compile failed", "expected ';' before '}' token"]),
    ],
)
def test_a_version_that_is_wrong_is_no_comparison(
    scripted: Command, toy: Path, directive: str, expected: list[str]
) -> None:
    change = ("    return N\n", f"    {directive}\n    return N\n")
    wrong = variant(toy / "double.py", "wrong.py", *change)
    is_no_comparison(scripted("compare", toy, wrong), str(wrong), *expected)


@pytest.mark.tilelang
def test_a_version_that_takes_other_tensors_is_no_comparison(
    opratchet: Command, small: Path
) -> None:
    change = ("W: T.Tensor((N,), dtype)", "W: T.Tensor((M, N), dtype)")
    wrong = variant(small / "rmsnorm.py", "wrong.py", *change)
    is_no_comparison(opratchet("compare", small, wrong), str(wrong))


def test_an_inaccurate_reference_is_named(scripted: Command, toy: Path) -> None:
    source = toy / "double.py"
    good = variant(source, "good.py")
    source.write_text(source.read_text().replace("    return N\n", '    run = "wrong"\n'))
    done = scripted("compare", toy, good)
    assert done.returncode == 2
    assert "A cannot be compared: accuracy failed" in done.stderr
    assert str(source) in done.stderr


def test_a_version_of_a_run_is_compared_by_the_golden_of_its_operator(small: Path) -> None:
    folder = small / "perf_opt"
    story = Story()
    story.open()
    with Ledger(folder, create=True) as ledger:
        for line in story.lines:
            if isinstance(line.event, RunStarted):
                ledger.append(line.event.model_copy(update={"source": "rmsnorm.py"}))
    version = folder / "rmsnorm_opt_v1.py"
    version.write_bytes((small / "rmsnorm.py").read_bytes())
    operator, path = reference(version, Overrides())
    assert (operator.source, path) == (small / "rmsnorm.py", version)
    assert [workload.id for workload in operator.tuned] == ["64x512"]
    assert candidate(folder, operator) == folder / "rmsnorm.py"
    assert candidate(small, operator) == small / "rmsnorm.py"
    alone, path = reference(small, Overrides())
    assert alone.source == path == small / "rmsnorm.py"


def test_a_version_without_the_kernel_is_named(within: Command, small: Path) -> None:
    other = variant(small / "rmsnorm.py", "other.py", "def rmsnorm(", "def renamed(")
    done = within("compare", small, other)
    assert done.returncode == 2
    for part in (str(other), "`rmsnorm`", "renamed"):
        assert part in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["no such.py"], "no such.py"),
        (["broken.py"], "broken.py:1"),
        (["rmsnorm.py", "--regex", "(.)"], "--regex"),
        (["rmsnorm.py", "--seconds", "5"], "--seconds"),
        (["rmsnorm.py", "--backend", "none"], "--backend"),
    ],
)
def test_bad_files_and_options_are_one_error(
    within: Command, small: Path, arguments: list[str], expected: str
) -> None:
    (small / "broken.py").write_text("def broken(:\n")
    done = within("compare", small, small / arguments[0], *arguments[1:])
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


# --- words --------------------------------------------------------------------------------------------------
