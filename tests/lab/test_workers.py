"""Workers that misbehave: whatever they do, they end within their limits, nothing is left, and the next one is clean."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from opratchet.lab.bench import Lab
from opratchet.lab.supervisor import WorkerFailed
from opratchet.ledger.words import Outcome
from tests.engine.scripted import SOURCE, candidate, lab_for, make_operator

pytestmark = pytest.mark.timing

DOUBLE_FORK = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        while True:
            time.sleep(1)
    os._exit(0)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_for(make_operator(tmp_path_factory.mktemp("lab"))) as opened:
        yield opened


def build(lab: Lab, text: str) -> float:
    """Build all workloads; gives the seconds it took."""
    start = time.monotonic()
    lab.build(text, lab.operator.checked)
    return time.monotonic() - start


def below(lab: Lab) -> set[int]:
    """Processes below the nursery, the reference worker left out."""
    lab.reference  # noqa: B018  (it is started on first use)
    nursery = psutil.Process(lab._nursery.process.pid)
    return {child.pid for child in nursery.children(recursive=True)}


@pytest.mark.parametrize(
    ("directive", "outcome"),
    [
        ("build: hang", Outcome.TIMEOUT),
        ("build: crash", Outcome.CRASHED),
        ("build: exit", Outcome.CRASHED),
        ("build: fail", Outcome.COMPILE_FAILED),
        ("build: memory", Outcome.OUT_OF_MEMORY),
    ],
)
def test_the_next_candidate_starts_clean(lab: Lab, directive: str, outcome: Outcome) -> None:
    before = below(lab)
    with pytest.raises(WorkerFailed) as caught:
        build(lab, candidate(directive))
    assert caught.value.outcome is outcome
    assert below(lab) == before
    assert build(lab, SOURCE) < 2.0


def test_a_hang_ends_within_its_limit(lab: Lab) -> None:
    start = time.monotonic()
    with pytest.raises(WorkerFailed):
        build(lab, candidate("build: hang"))
    assert time.monotonic() - start < lab.limits.build_seconds + 2


def test_memory_that_is_really_taken_is_limited(tmp_path: Path) -> None:
    with lab_for(make_operator(tmp_path)) as opened:
        source = tmp_path / "greedy.py"
        source.write_text("BIG = bytearray(2 << 30)")
        job = {"source": str(source), "golden": "none", "memory": 256 << 20}
        worker = opened._nursery.fork("reference", opened.folder, job)
        assert "MemoryError" in worker.receive(10.0)["error"]
        worker.close()
        assert build(opened, SOURCE) < 2.0


def test_descendants_that_left_the_session_are_killed_too(tmp_path: Path) -> None:
    with lab_for(make_operator(tmp_path)) as opened:
        folder = opened.folder
        source = tmp_path / "reference.py"
        source.write_text(DOUBLE_FORK)
        before = below(opened)
        job = {"source": str(source), "golden": "none", "memory": 1 << 30}
        worker = opened._nursery.fork("reference", folder, job)
        time.sleep(1.0)
        assert len(below(opened) - before) >= 2
        worker.close()
        assert below(opened) == before


def test_nothing_is_left_when_the_lab_closes(tmp_path: Path) -> None:
    with lab_for(make_operator(tmp_path)) as opened:
        below(opened)
        rig = opened.open(opened.build(SOURCE, opened.operator.checked))
        rig.load(opened.operator.tuned[0])
        runner, folder = rig.worker.process.pid, opened.folder
        nursery = opened._nursery.process.pid
    rig.close()
    assert not any(psutil.pid_exists(pid) for pid in (runner, nursery))
    assert not folder.exists()


def test_a_killed_tool_leaves_no_orphan(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        with lab_for(make_operator(tmp_path)) as opened:
            opened.reference  # noqa: B018
            family = [str(opened._nursery.process.pid), *map(str, below(opened))]
            (tmp_path / "pids.tmp").write_text(" ".join(family))
            (tmp_path / "pids.tmp").rename(tmp_path / "pids")
            time.sleep(60)
        os._exit(1)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pids").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    family = [int(text) for text in (tmp_path / "pids").read_text().split()]
    while any(map(alive, family)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, family))


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has collected yet does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
