"""Whole commands whose output goes nowhere, whose locale speaks no UTF-8, or who may open few files."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, read_lines
from tests.faults.conftest import Command, started

TUNE = ("--max-rounds", 1, "--max-experiments", 2)
NOISE = ("Traceback", "Exception ignored")


def goes_on(command: Command, operator: Path) -> None:
    """A run that its output has ended, or not even begun, reaches its end."""
    again = "resume" if (operator / "perf_opt" / LEDGER).exists() else "tune"
    done = command(again, operator, *TUNE)
    assert done.returncode == 0, done.stderr
    state = fold(read_lines(operator / "perf_opt" / LEDGER))
    assert state.delivered is not None
    assert all(not trial.is_open for trial in state.trials.values())


def test_a_reader_that_goes_away(command: Command, operator: Path) -> None:
    process = started("tune", operator, *TUNE)
    assert process.stdout.readline().startswith("double")
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(200) != 0
    assert not any(word in errors for word in NOISE), errors
    goes_on(command, operator)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: there is no /dev/full here")
def test_output_to_a_full_disk(command: Command, operator: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = command("tune", operator, *TUNE, stdout=full)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert not any(word in done.stderr for word in NOISE), done.stderr
    goes_on(command, operator)


@pytest.mark.parametrize("closed", [(1,), (1, 2)])
def test_closed_streams_keep_no_run_from_its_end(
    command: Command, operator: Path, closed: tuple[int, ...]
) -> None:
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    done = command("tune", operator, *TUNE, preexec_fn=close)
    assert done.returncode == 0, done.stderr
    assert fold(read_lines(operator / "perf_opt" / LEDGER)).delivered is not None


def test_a_pipe_that_is_not_read_holds_a_run_up_and_loses_nothing(operator: Path) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    filled = os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    process = started("tune", operator, *TUNE, stdout=writer)
    os.close(writer)
    ledger = operator / "perf_opt" / LEDGER
    deadline = time.monotonic() + 100
    while not (ledger.exists() and ledger.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    assert len(read_lines(ledger)) == 3, "it waits with its first line"
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()[filled:].decode()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(200) == 0, errors
    assert text.startswith("double ")
    assert "Stage Result" in text


def limited(files: int) -> Callable[[], None]:
    """So many open files at most, soft and hard."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def test_few_files_are_enough(command: Command, operator: Path) -> None:
    done = command("tune", operator, *TUNE, preexec_fn=limited(64))
    assert done.returncode == 0, done.stderr


def test_too_few_files_are_told_before_anything_is_begun(command: Command, operator: Path) -> None:
    done = command("tune", operator, *TUNE, preexec_fn=limited(32))
    assert done.returncode == 6
    assert "no more than 32 files" in done.stderr
    assert "ulimit -n" in done.stderr
    assert not (operator / "perf_opt").exists()


def test_a_low_soft_limit_is_raised(command: Command, operator: Path) -> None:
    def soft() -> None:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (24, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )

    assert command("check", operator, preexec_fn=soft).returncode == 0


def open_files(pid: int) -> int:
    """How many files a process has open; 0 when it is gone."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def test_no_file_is_left_open_by_a_trial(operator: Path) -> None:
    process = started("tune", operator, "--max-rounds", 3, stdout=subprocess.DEVNULL)
    ledger, counts = operator / "perf_opt" / LEDGER, {}
    while process.poll() is None:
        done = ledger.read_text().count('"trial_finished"') if ledger.exists() else 0
        opened = open_files(process.pid)
        counts[done] = min(opened, counts.get(done, opened))
        time.sleep(0.05)
    process.stderr.close()
    late = [count for done, count in counts.items() if done >= 4 and count]
    assert late, counts
    assert min(late) <= counts[min(k for k in counts if k >= 1)] + 2, counts


def gbk(folder: Path) -> dict[str, str]:
    """A GBK locale made for this test alone."""
    if shutil.which("localedef") is None:
        pytest.skip("NOT TESTED: a GBK locale; localedef is missing")
    made = folder / "zh_CN.GBK"
    subprocess.run(["localedef", "-i", "zh_CN", "-f", "GBK", str(made)], capture_output=True)
    if not made.exists():
        pytest.skip("NOT TESTED: a GBK locale; its sources (package locales) are missing")
    return {"LOCPATH": str(folder), "LC_ALL": "zh_CN.GBK", "PYTHONUTF8": "0"}


def c_locale(_folder: Path) -> dict[str, str]:
    """The C locale, without Python's help."""
    return {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("locale", [gbk, c_locale])
def test_any_locale_shows_and_reports_a_run(
    command: Command, operator: Path, tmp_path: Path, locale: Callable[[Path], dict[str, str]]
) -> None:
    changes = locale(tmp_path)
    assert command("tune", operator, *TUNE).returncode == 0
    for name in ("status", "report"):
        done = command(name, operator, module="opratchet", env=changes)
        assert done.returncode == 0, done.stderr
        assert not any(word in done.stderr for word in NOISE), done.stderr
    assert "算子" in done.stdout
    assert "基线" in (operator / "perf_opt" / "opt_log.md").read_text(encoding="utf-8")
    wrong = command("status", operator.parent / "没有", module="opratchet", env=changes)
    assert wrong.returncode == 2
    assert "没有" in wrong.stderr


def test_an_interpreter_that_ignores_its_environment_does_not_start_itself_for_ever(
    tmp_path: Path,
) -> None:
    changes = {**os.environ, **gbk(tmp_path)}
    root = Path(__file__).resolve().parents[2] / "src"
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from opratchet.cli.main import _speak_utf8; _speak_utf8()"
    process = subprocess.Popen(
        [sys.executable, "-E", "-c", code],
        env=changes,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(30)
    finally:
        process.send_signal(signal.SIGKILL)
