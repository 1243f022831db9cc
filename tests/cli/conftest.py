"""A small real operator, and the command line as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with the shipped rmsnorm and small workloads; its path holds a blank and Chinese."""
    folder = tmp_path / "算子 库" / "rmsnorm"
    folder.mkdir(parents=True)
    source = ROOT / "examples" / "norm" / "rmsnorm" / "rmsnorm.py"
    (folder / "rmsnorm.py").write_bytes(source.read_bytes())
    (folder / "opratchet.toml").write_text(MANIFEST, encoding="utf-8")
    return folder


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command; the package is found also where it is not installed."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", **changes}


def background(*arguments: object, **changes: str) -> subprocess.Popen[str]:
    """Start the command line without waiting for it, as from a terminal: in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "opratchet", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(**changes),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # type: ignore[arg-type,return-value]
    )


@pytest.fixture
def opratchet() -> Command:
    """Runs the command line; gives the completed process."""

    def run(*arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "opratchet", *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            timeout=240,
            env=environment(**changes),
            check=False,
        )

    return run
