"""Whole commands on the backend for faults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.backend import NAME

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""Doubles a vector."""


def jit(**_options):
    return lambda function: function


def golden_double(X):
    return X * 2


@jit(compile_flags=["-O3"])
def double(N, dtype="float32"):
    time = "400"
    return N
'''
MANIFEST = f"""\
[operator]
backend = "{NAME}"

[[workloads]]
id = "n64"
shape = {{ N = 64 }}
kind = "tune"

[[workloads]]
id = "n7"
shape = {{ N = 7 }}
kind = "smoke"
"""


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command; the package and its tests are found also where it is not installed."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", **changes}


def started(*arguments: object, module: str = "tests.faults.command", **options: Any) -> Any:
    """Start a command; `options` are those of `Popen`, of which `env` holds changes only."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **options}
    given["env"] = environment(**given.get("env", {}))
    return subprocess.Popen([sys.executable, "-m", module, *map(str, arguments)], cwd=ROOT, **given)


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command() -> Command:
    """Runs a command to its end."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        process = started(*arguments, **options)
        try:
            out, errors = process.communicate(timeout=200)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)

    return run


def write_operator(folder: Path, text: str = SOURCE, manifest: str = MANIFEST) -> Path:
    """An operator that needs no compiler; its path holds a blank and Chinese."""
    root = folder / "算子 库" / "double"
    root.mkdir(parents=True)
    (root / "double.py").write_text(text, encoding="utf-8")
    (root / "opratchet.toml").write_text(manifest, encoding="utf-8")
    return root


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """The folder of such an operator."""
    return write_operator(tmp_path)
