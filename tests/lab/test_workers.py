"""Workers that misbehave: whatever they do, they end within their limits, nothing is left, and the next one is clean.

Each with the sandbox, where there is one, and without: what is tried here has to be held off by what always stands.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from opratchet.backend.base import Artifact, TensorSpec
from opratchet.lab import builders
from opratchet.lab.bench import Lab
from opratchet.lab.builders import Worker
from opratchet.lab.building import crowded, remove, require_untouched, take
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.processes import end, end_strays, kill_tree, start
from opratchet.lab.sandbox import Mode, choose
from opratchet.ledger.words import Outcome
from tests.engine.scripted import LIMITS, ROOT, SOURCE, candidate, make_operator

LIMITS = replace(LIMITS, log_bytes=4096, folder_bytes=4 << 20, file_bytes=64 << 20)
WORKS = choose()
WHY = f"needs bubblewrap (apt-get install bubblewrap): {WORKS.why_not}"
boxed = pytest.param(Mode.REQUIRE, marks=pytest.mark.skipif(not WORKS.active, reason=WHY))

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
STUBBORN = """
    import os, signal, time
    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)
"""


@pytest.fixture(scope="module", params=[boxed, Mode.OFF], ids=["boxed", "off"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    operator = make_operator(tmp_path_factory.mktemp("lab"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with Lab(operator, LIMITS, choose(request.param)) as opened:
            opened.build(SOURCE, operator.checked)
            yield opened


def run(lab: Lab, code: str) -> Worker:
    """A worker that runs code as a candidate's build does."""
    folder = lab.job_folder()
    source = folder / "source.py"
    source.write_text(textwrap.dedent(code))
    job = {"source": str(source), "golden": "none", "memory": 256 << 20}
    return lab._nursery.fork("reference", folder, job)


def below(lab: Lab) -> set[int]:
    """Processes below the nursery of candidates, those that have ended left out."""
    nursery = psutil.Process(lab._nursery.process.pid)
    return {child.pid for child in nursery.children(recursive=True) if alive(child.pid)}


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has collected yet does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def require_clean(lab: Lab, before: set[int]) -> None:
    """Nothing is left, and the next candidate builds."""
    assert below(lab) == before
    assert lab.build(SOURCE, lab.operator.checked).artifacts
    assert not list(lab.jobs.glob("job-*/double.py"))


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
    start = time.monotonic()
    with pytest.raises(WorkerFailed) as caught:
        lab.build(candidate(directive), lab.operator.checked)
    assert caught.value.outcome is outcome
    assert time.monotonic() - start < lab.limits.build_seconds + 15
    require_clean(lab, before)


def test_a_signal_is_told_by_its_name(lab: Lab) -> None:
    for name in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGKILL"):
        worker = run(lab, f"import os, signal\nos.kill(os.getpid(), signal.{name})")
        with pytest.raises(WorkerFailed, match=f"killed by {name}"):
            worker.receive(20.0)


def test_memory_that_is_really_taken_is_limited(lab: Lab) -> None:
    before = below(lab)
    worker = run(lab, "BIG = bytearray(2 << 30)")
    assert "MemoryError" in worker.receive(20.0)["error"]
    worker.close()
    require_clean(lab, before)


@pytest.mark.parametrize("code", [DOUBLE_FORK, STUBBORN], ids=["double fork", "stubborn"])
def test_what_does_not_want_to_end_is_ended(lab: Lab, code: str) -> None:
    before = below(lab)
    worker = run(lab, code)
    with pytest.raises(WorkerFailed) as caught:
        worker.receive(1.0)
    assert caught.value.outcome is Outcome.TIMEOUT
    require_clean(lab, before)


def test_descendants_that_left_the_session_are_seen_before_they_are_killed(lab: Lab) -> None:
    before = below(lab)
    worker = run(lab, DOUBLE_FORK)
    until = time.monotonic() + 20
    while len(below(lab) - before) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(below(lab) - before) >= 2
    worker.close()
    require_clean(lab, before)


def test_a_great_deal_of_output_is_cut_to_its_end(lab: Lab) -> None:
    code = """
        import os
        line = b'\\xff\\xfe' * 512 * 1024
        for _ in range(100):
            os.write(1, line)
        os.write(2, b'the last words')
        os._exit(3)
    """
    worker = run(lab, code)
    with pytest.raises(WorkerFailed, match="exit code 3") as caught:
        worker.receive(60.0)
    assert caught.value.log.endswith("the last words")
    assert len(caught.value.log) < 2 * LIMITS.log_bytes
    assert "are left out" in caught.value.log


def test_a_build_that_fills_its_folder_is_ended(lab: Lab) -> None:
    before = below(lab)
    folder = lab.job_folder()
    source = folder / "source.py"
    source.write_text("import time\nopen('big', 'wb').write(bytes(8 << 20))\ntime.sleep(60)")
    job = {"source": str(source), "golden": "none", "memory": 256 << 20}
    worker = lab._nursery.fork("reference", folder, job)
    with pytest.raises(WorkerFailed, match="filled its folder with more than 4 MiB"):
        worker.receive(30.0, lambda: crowded(folder, LIMITS.folder_bytes))
    require_clean(lab, before)


def test_a_file_beyond_its_size_cannot_be_written(lab: Lab) -> None:
    worker = run(lab, f"open('big', 'wb').truncate({LIMITS.file_bytes + 1})")
    assert "File too large" in worker.receive(20.0)["error"]
    worker.close()


def test_no_core_file_is_left(lab: Lab) -> None:
    worker = run(lab, "import resource\nraise ValueError(resource.getrlimit(resource.RLIMIT_CORE))")
    assert "(0, 0)" in worker.receive(20.0)["error"]
    worker.close()


def test_a_nursery_that_is_killed_or_stopped_is_replaced(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builders, "ANSWER_SECONDS", 2.0)
    if lab.sandbox.active:
        target = psutil.Process(lab._nursery.process.pid).children()[0].pid
    else:
        target = lab._nursery.process.pid
    for number in (signal.SIGKILL, signal.SIGSTOP):
        worker = run(lab, "import time\ntime.sleep(60)")
        os.kill(target, number)
        with pytest.raises(WorkerFailed):
            worker.receive(1.0)
        assert lab.build(SOURCE, lab.operator.checked).artifacts
        family = psutil.Process(lab._nursery.process.pid)
        target = family.children()[0].pid if lab.sandbox.active else family.pid
        assert alive(target)


def test_a_nursery_that_a_passing_thread_started_stays(lab: Lab) -> None:
    kill_tree(lab._nursery.process.pid)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lab.build, SOURCE, lab.operator.checked).result()
    pid = lab._nursery.process.pid
    time.sleep(0.5)
    assert alive(pid)
    assert lab.build(SOURCE, lab.operator.checked).artifacts
    assert lab._nursery.process.pid == pid


def test_the_golden_lives_when_the_nursery_of_candidates_dies(lab: Lab) -> None:
    golden = lab.reference
    kill_tree(lab._nursery.process.pid)
    assert lab.reference is golden
    with lab.open(lab.build(SOURCE, lab.operator.checked)) as rig:
        rig.load(lab.operator.tuned[0])
        assert rig.call(lab.operator.tuned[0]).outputs


def test_nothing_is_left_when_the_lab_closes(tmp_path: Path) -> None:
    for mode in (Mode.AUTO, Mode.OFF):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            operator = make_operator(tmp_path / mode.value)
            before = set(psutil.Process().children(recursive=True))
            with Lab(operator, LIMITS, choose(mode)) as opened:
                assert opened.reference.alive  # it is started on first use
                rig = opened.open(opened.build(SOURCE, operator.checked))
                rig.load(operator.tuned[0])
                family = set(psutil.Process().children(recursive=True)) - before
                folder = opened.folder
        rig.close()
        assert len(family) >= 4
        left = psutil.wait_procs(family, timeout=5)[1]  # the killed may take a moment to be gone
        assert not [process for process in left if alive(process.pid)]
        assert not folder.exists()


def test_a_killed_tool_leaves_no_orphan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for mode in (Mode.AUTO, Mode.OFF):
        pids = tmp_path / f"{mode.value}.pids"
        pid = os.fork()
        if pid == 0:
            _live_until_killed(tmp_path / mode.value, mode, pids)
        deadline = time.monotonic() + 60
        while not pids.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        family = [int(text) for text in pids.read_text().split()]
        assert len(family) >= 4
        while any(map(alive, family)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(alive, family))


def _live_until_killed(folder: Path, mode: Mode, pids: Path) -> None:
    """Have every kind of worker, write down which, and wait."""
    try:
        operator = make_operator(folder)
        with Lab(operator, LIMITS, choose(mode)) as lab:
            lab.reference  # noqa: B018
            with lab.open(lab.build(SOURCE, operator.checked)) as rig:
                rig.load(operator.tuned[0])
                family = psutil.Process().children(recursive=True)
                part = pids.with_suffix(".part")
                part.write_text(" ".join(str(process.pid) for process in family))
                part.rename(pids)
                time.sleep(120)
    finally:
        os._exit(1)


def test_what_an_ended_worker_has_left_is_found(tmp_path: Path) -> None:
    from opratchet.lab.processes import worker_environment

    pids = tmp_path / "pids"
    code = f"(setsid sh -c 'echo $$ > {pids}; exec sleep 60' &) ; exec sleep 60"
    process = start(["/bin/sh", "-c", code], env=worker_environment())
    until = time.monotonic() + 10
    while not (pids.exists() and pids.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.01)
    left = int(pids.read_text())
    process.kill()
    process.wait()
    assert alive(left)
    end(process)
    assert not psutil.pid_exists(left)
    end_strays()


def artifact(path: Path | str) -> Artifact:
    return Artifact(str(path), "call", (TensorSpec("X", (1,), "float32"),), "0" * 64)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs" / "job"
    folder.mkdir(parents=True)
    return folder


def test_a_built_file_is_taken_out_of_reach(job: Path, tmp_path: Path) -> None:
    (job / "lib.so").write_bytes(b"code")
    taken = take(artifact(job / "lib.so"), job, tmp_path / "taken", 1 << 20)
    assert Path(taken.path).read_bytes() == b"code"
    assert Path(taken.path).suffix == ".so"
    assert not Path(taken.path).is_relative_to(job)
    require_untouched(taken)
    again = take(artifact(job / "lib.so"), job, tmp_path / "taken", 1 << 20)
    assert again == taken
    Path(taken.path).chmod(0o755)
    Path(taken.path).write_bytes(b"other")
    with pytest.raises(WorkerFailed, match="changed after") as caught:
        require_untouched(taken)
    assert caught.value.outcome is Outcome.CHEATED


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        ("missing", Outcome.COMPILE_FAILED),
        ("outside", Outcome.CHEATED),
        ("above", Outcome.CHEATED),
        ("relative", Outcome.CHEATED),
        ("nul", Outcome.CHEATED),
        ("link out", Outcome.CHEATED),
        ("link in", Outcome.CHEATED),
        ("folder link", Outcome.CHEATED),
        ("fifo", Outcome.CHEATED),
        ("folder", Outcome.CHEATED),
        ("large", Outcome.COMPILE_FAILED),
    ],
)
def test_what_is_no_built_file(job: Path, tmp_path: Path, made: str, outcome: Outcome) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "lib.so").write_bytes(b"other")
    (job / "real.so").write_bytes(b"code")
    (job / "large.so").write_bytes(bytes(2048))
    (job / "out.so").symlink_to(outside / "lib.so")
    (job / "in.so").symlink_to(job / "real.so")
    (job / "there").symlink_to(outside)
    os.mkfifo(job / "fifo.so")
    (job / "folder.so").mkdir()
    paths: dict[str, Path | str] = {
        "missing": job / "none.so",
        "outside": outside / "lib.so",
        "above": job / ".." / ".." / "outside" / "lib.so",
        "relative": "real.so",
        "nul": f"{job}/a\0b",
        "link out": job / "out.so",
        "link in": job / "in.so",
        "folder link": job / "there" / "lib.so",
        "fifo": job / "fifo.so",
        "folder": job / "folder.so",
        "large": job / "large.so",
    }
    with pytest.raises(WorkerFailed) as caught:
        take(artifact(paths[made]), job, tmp_path / "taken", 1024)
    assert caught.value.outcome is outcome, caught.value.reason


def test_a_folder_is_removed_whatever_was_made_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "closed").chmod(0)
    make = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')"
    subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
    remove(folder)
    assert not folder.exists()
