"""Real TileLang: what a source may look like, a cache that lies, a compiler that hangs or outlives the tool."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from opratchet.cli.operators import load
from opratchet.gates import verify
from opratchet.lab.bench import Lab
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.limits import Limits
from opratchet.ledger.words import Outcome
from opratchet.operator.discover import Overrides
from opratchet.operator.model import Operator
from tests.cli.conftest import MANIFEST
from tests.faults.conftest import ROOT, Command, environment, started, write_operator

pytestmark = pytest.mark.tilelang

RMSNORM = (ROOT / "examples" / "norm" / "rmsnorm" / "rmsnorm.py").read_text(encoding="utf-8")
BOM = b"\xef\xbb\xbf"


def chinese() -> str:
    """The example with Chinese names and comments, a doubtful escape, tabs for indents and the line ends of Windows."""
    text = RMSNORM.replace("sum_sq", "平方和").replace("run_case", "跑一例")
    text = text.replace(
        "            T.copy(W[0], w)\n",
        "            # 权重：只读一次\n            T.copy(W[0], w)\n",
    )
    lines = [_tabbed(line) for line in text.splitlines()]
    return "\r\n".join(lines) + "\r\n"


def _tabbed(line: str) -> str:
    blanks = len(line) - len(line.lstrip(" "))
    return "\t" * (blanks // 4) + line.lstrip(" ") if blanks % 4 == 0 else line


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """An operator like that, with a byte order mark."""
    folder = write_operator(tmp_path, manifest=MANIFEST)
    (folder / "double.py").unlink()
    (folder / "归一 化.py").write_bytes(BOM + chinese().encode())
    return folder


def test_a_strange_looking_source_is_tuned_and_keeps_its_looks(
    command: Command, strange: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "临时 文件"
    temporary.mkdir()
    given = (strange / "归一 化.py").read_bytes()
    done = command(
        "tune",
        strange / "归一 化.py",
        "--max-rounds",
        1,
        "--max-experiments",
        2,
        "--json",
        module="tests.faults.hasty",
        env={"TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    failed = ("compile_failed", "crashed", "cheated", "accuracy_failed", "pruned")
    assert not any(summary["outcomes"][name] for name in failed), summary["outcomes"]
    assert (strange / "归一 化.py").read_bytes() == given
    version = (strange / "perf_opt" / "归一 化_opt_v1.py").read_bytes()
    assert version.count(b"\r\n") == version.count(b"\n")
    assert "平方和".encode() in version or "权重".encode() in version
    assert b"\n\t" in version
    assert list(temporary.glob("opratchet-*/")) == []


def operator_at(folder: Path) -> Operator:
    """The small example."""
    root = write_operator(folder, RMSNORM.replace("rmsnorm(", "double("), MANIFEST)
    return load(root, Overrides())


FILL = """
import os, sys, runpy
import torch
runpy.run_path(sys.argv[1])["double"](64, 512)
"""


def test_a_cache_of_compiled_kernels_that_lies_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operator_at(tmp_path)
    cache = tmp_path / "cache"
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(cache))
    monkeypatch.setenv("HOME", str(tmp_path))
    subprocess.run(
        [sys.executable, "-c", FILL, str(operator.source)], env=environment(), check=True
    )
    kernels = list(cache.rglob("*.so"))
    assert kernels, "TileLang caches here, or this test shows nothing"
    for path in cache.rglob("*"):
        if path.is_file():
            path.write_bytes(b"rubbish")
    trusting = operator.text.replace(
        "import torch\n", "import torch\n\ntilelang.enable_cache()\n", 1
    )
    for text in (operator.text, trusting):
        with Lab(replace(operator, text=text)) as lab:
            build = lab.build(text, operator.checked)
            with lab.open(build) as rig:
                assert all(record.passed for record in verify(lab, rig))
    assert all(path.read_bytes() == b"rubbish" for path in kernels)


def compiler(folder: Path, action: str) -> Path:
    """A compiler that does something else once a file of the name `now` lies beside it."""
    folder.mkdir(exist_ok=True)
    path = folder / "compiler.sh"
    path.write_text(f'#!/bin/sh\n[ -e "$(dirname "$0")/now" ] && {action}\nexec g++ "$@"\n')
    path.chmod(0o755)
    return path


def sleeping(seconds: str) -> list[psutil.Process]:
    """Processes that sleep so long."""
    found = psutil.process_iter(["cmdline"])
    return [p for p in found if (p.info["cmdline"] or [])[:2] == ["sleep", seconds]]


def test_a_compile_that_never_ends_is_ended_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operator_at(tmp_path)
    monkeypatch.setenv("CXX", str(compiler(tmp_path / "bin", "sleep 30071")))
    with Lab(operator, Limits(build_seconds=60.0)) as lab:
        lab.build(operator.text, operator.tuned)
        (tmp_path / "bin" / "now").touch()
        lab.limits = Limits(build_seconds=8.0)
        start = time.monotonic()
        with pytest.raises(WorkerFailed) as caught:
            lab.build(operator.text, operator.tuned)
        assert time.monotonic() - start < 30
        assert caught.value.outcome is Outcome.TIMEOUT
        assert sleeping("30071") == []
        (tmp_path / "bin" / "now").unlink()
        lab.limits = Limits(build_seconds=60.0)
        lab.build(operator.text, operator.tuned)


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_hanging_compiler_does_not_outlive_a_killed_tool(tmp_path: Path, sandbox: str) -> None:
    operator = operator_at(tmp_path)
    seconds = "30072" if sandbox == "auto" else "30073"
    path = compiler(tmp_path / "bin", f"sleep {seconds}")
    (tmp_path / "bin" / "now").touch()
    process = started(
        "tune", operator.root, "--sandbox", sandbox, module="opratchet", env={"CXX": str(path)}
    )
    deadline = time.monotonic() + 100
    while not sleeping(seconds) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    hanging = sleeping(seconds)
    assert hanging, process.communicate(timeout=5)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    while sleeping(seconds) and time.monotonic() < deadline + 10:
        time.sleep(0.05)
    left = sleeping(seconds)
    for one in left:
        one.kill()
    assert left == []
