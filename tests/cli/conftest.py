"""A small real operator, and the command line as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from opratchet.cli.main import run
from tests.cli.toy import write_toy

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = """\
[operator]
backend = "tilelang-c"

[[workloads]]
id = "64x512"
shape = { M = 64, N = 512 }
kind = "tune"

[[workloads]]
id = "5x100"
shape = { M = 5, N = 100 }
kind = "smoke"
"""
SCRIPTED = "tests.cli.scripted"
_started: list[subprocess.Popen[str]] = []
Command = Callable[..., subprocess.CompletedProcess[str]]


def write_small(folder: Path) -> Path:
    """The shipped rmsnorm with small workloads, in a folder whose path holds a blank and Chinese."""
    root = folder / "算子 库" / "rmsnorm"
    root.mkdir(parents=True)
    source = ROOT / "examples" / "norm" / "rmsnorm" / "rmsnorm.py"
    (root / "rmsnorm.py").write_bytes(source.read_bytes())
    (root / "opratchet.toml").write_text(MANIFEST, encoding="utf-8")
    return root


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small real operator."""
    return write_small(tmp_path)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """An operator that needs no compiler."""
    return write_toy(tmp_path)


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command; the package is found also where it is not installed."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", **changes}


def background(
    *arguments: object, module: str = "opratchet", **changes: str
) -> subprocess.Popen[str]:
    """Start the command line without waiting for it, as from a terminal: in a session of its own, and it hears Ctrl-C.

    What runs these tests in the background may have it ignored.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(**changes),
        start_new_session=True,
        preexec_fn=_as_in_a_terminal,
    )
    _started.append(process)
    return process


def _as_in_a_terminal() -> None:
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """A command that a failed test leaves behind would keep the device from all that come after it."""
    yield
    while _started:
        process = _started.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def completed(
    *arguments: object, module: str = "opratchet", **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        env=environment(**changes),
        check=False,
    )


@pytest.fixture
def opratchet() -> Command:
    """Runs the command line; gives the completed process."""
    return completed


@pytest.fixture
def scripted() -> Command:
    """Runs the command line with the toy's backend and a scripted clock."""
    return partial(completed, module=SCRIPTED)


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command line in this process, which takes no second: for what ends before an operator is built or run."""

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(sys, "argv", ["opratchet", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            run()
        out, errors = capsys.readouterr()
        return subprocess.CompletedProcess(words, int(left.value.code or 0), out, errors)

    return command
