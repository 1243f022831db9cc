"""What a candidate can reach, from the inside: real processes that try, with the sandbox and without it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from opratchet.lab import sandbox as sandbox_module
from opratchet.lab.bench import Lab
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.sandbox import Mode, choose
from opratchet.lab.supervisor import RunWorker
from tests.engine.scripted import ROOT, SOURCE, make_operator
from tests.lab.boxes import LIMITS, apart, boxed


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers can import the tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def in_build(lab: Lab, code: str) -> Any:
    """Run code where a candidate is built; gives what it leaves in `told`."""
    worker = started(lab, code)
    worker.receive(20.0)
    return json.loads(worker.output().splitlines()[-1])


def started(lab: Lab, code: str) -> Any:
    """A worker that runs code where a candidate is built."""
    folder = lab.job_folder()
    source = folder / "source.py"
    tail = "\nimport json as _json\nprint('\\n' + _json.dumps(told), flush=True)\n"
    source.write_text("told = None\n" + textwrap.dedent(code) + tail)
    job = {"source": str(source), "golden": "none", "memory": 1 << 30}
    return lab._nursery.fork("reference", folder, job)


@contextmanager
def probe(lab: Lab, code: str) -> Iterator[tuple[RunWorker, str]]:
    """A worker that has run code where a candidate is called, and what that left in `told`."""
    path = lab.folder / "probe.py"
    path.write_text(textwrap.dedent(code))
    worker = RunWorker("tests.lab.probing_runtime", -1, 1 << 30, LIMITS, lab.sandbox, shown=[path])
    memory = os.memfd_create("tensors")
    os.ftruncate(memory, 4096)
    size = {"bytes": 4096, "stride": 4096, "offsets": [0]}
    message = {"op": "load", "workload": "w", "artifact": {"path": str(path)}, **size}
    try:
        worker.remember()
        with pytest.raises(WorkerFailed) as caught:
            worker.ask(message, 20.0, [memory])
        yield worker, caught.value.reason.partition("told: ")[2] or str(caught.value)
    finally:
        worker.close()
        os.close(memory)


def in_run(lab: Lab, code: str) -> str:
    """Run code where a candidate is called; gives what it leaves in `told`."""
    with probe(lab, code) as (_worker, said):
        return said


def attempt(action: str) -> str:
    """Code that tries something and tells how it went."""
    body = textwrap.indent(textwrap.dedent(action), "    ")
    return f"import os, socket\ntry:\n{body}\n    told = 'done'\nexcept OSError as error:\n    told = 'refused'\n"


@pytest.fixture
def server() -> Iterator[int]:
    """A port that listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_network(either: Lab, server: int, where: Any) -> None:
    said = where(either, attempt(f"socket.create_connection(('127.0.0.1', {server}), 2)"))
    assert said == ("refused" if either.sandbox.active else "done")


@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_files_of_the_user_cannot_be_written(either: Lab, tmp_path: Path, where: Any) -> None:
    (tmp_path / "precious").write_text("as it was")
    said = where(either, attempt(f"open({str(tmp_path / 'precious')!r}, 'w').write('gone')"))
    assert said == ("refused" if either.sandbox.active else "done")
    assert (tmp_path / "precious").read_text() == ("as it was" if either.sandbox.active else "gone")


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
@pytest.mark.parametrize("place", ["/usr", "/etc", "/", "/dev", str(ROOT), sys.prefix])
def test_the_system_is_read_only(lab: Lab, where: Any, place: str) -> None:
    file = Path(place) / "written-by-a-candidate"
    assert where(lab, attempt(f"open({str(file)!r}, 'w')")) == "refused"
    assert not file.exists()


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_home_is_not_the_users(lab: Lab, where: Any) -> None:
    code = "import os\ntold = ' '.join(sorted(os.listdir(os.path.expanduser('~'))))"
    assert not set(where(lab, code).split()) & {entry.name for entry in Path.home().iterdir()} - {
        "exp"
    }
    file = Path.home() / "written-by-a-candidate"
    where(lab, attempt(f"open({str(file)!r}, 'w')"))
    assert not file.exists()


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_golden_and_ledger_are_out_of_sight(lab: Lab, where: Any) -> None:
    for path in (lab.operator.source, lab.operator.root / "perf_opt" / "ledger.jsonl"):
        assert path.exists()
        assert where(lab, attempt(f"open({str(path)!r}).read()")) == "refused"


@boxed
def test_what_is_hidden_stays_hidden_inside_of_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = make_operator(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))
    (tmp_path / "shown.txt").write_text("seen")
    late = tmp_path / "late"
    with Lab(operator, LIMITS, choose(Mode.REQUIRE).hiding([late])) as lab:
        code = "import os\ntold = [os.path.exists(p) for p in {!r}]"
        paths = [str(tmp_path / "shown.txt"), str(operator.source), str(late / "ledger.jsonl")]
        assert in_build(lab, code.format(paths)) == [True, False, False]
        late.mkdir()
        (late / "ledger.jsonl").write_text("{}")
        assert in_build(lab, code.format(paths)) == [True, False, False]
        assert in_run(lab, code.format(paths)) == "[True, False, False]"


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_other_processes_are_out_of_sight_and_reach(lab: Lab, where: Any) -> None:
    code = f"""
        import os
        told = str(sum(name.isdigit() for name in os.listdir('/proc')) < 5)
        try:
            os.kill({os.getpid()}, 0)
            told += ' reached'
        except ProcessLookupError:
            pass
    """
    assert where(lab, code) == "True"


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_the_sandbox_itself_cannot_be_killed_from_inside(lab: Lab, where: Any) -> None:
    code = """
        import os, signal
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            os.kill(1, number)
        told = 'still here'
    """
    assert where(lab, code) == "still here"
    assert lab.build(SOURCE, lab.operator.checked).artifacts


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_scratch_space_is_small_and_private(lab: Lab, where: Any, place: str) -> None:
    code = f"""
        import os
        written = 0
        try:
            for number in range(16):
                with open(f'{place}/fill{{number}}', 'wb') as file:
                    file.write(bytes(1 << 20))
                    file.flush()
                written += 1
        except OSError:
            pass
        told = str(written)
    """
    assert 1 <= int(where(lab, code)) <= 4
    assert not list(Path(place).glob("fill*"))
    assert 1 <= int(where(lab, code)) <= 4, "what the one before has left is not there"


@boxed
@pytest.mark.parametrize("where", [in_build, in_run], ids=["build", "run"])
def test_no_privilege_is_left(lab: Lab, where: Any) -> None:
    code = "told = [line.split()[1] for line in open('/proc/self/status') if line[:4] in ('CapE', 'CapB', 'NoNe')]"
    said = where(lab, code)
    assert str(said).count("0000000000000000") == 2
    assert "1" in str(said)


@apart
def test_builds_side_by_side_do_not_see_each_other(lab: Lab) -> None:
    waiting = started(lab, "import time\ntime.sleep(60)")
    code = f"""
        import os, signal
        told = [sorted(os.listdir({str(lab.jobs)!r})) == [os.path.basename(os.getcwd())]]
        told.append(sum(name.isdigit() for name in os.listdir('/proc')) < 6)
        for pid in range(2, 400):
            if pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                    told.append(pid)
                except OSError:
                    pass
    """
    assert in_build(lab, code)[0] is True
    with pytest.raises(WorkerFailed) as caught:
        waiting.receive(0.5)
    assert caught.value.outcome.value == "timeout", "it was still alive"


@apart
def test_a_build_writes_into_its_own_folder_only(lab: Lab) -> None:
    code = f"""
        told = []
        for path in ('own.txt', {str(lab.jobs / "x")!r}, {str(lab.folder / "x")!r}, '../x'):
            try:
                open(path, 'w')
                told.append('done')
            except OSError:
                told.append('refused')
    """
    assert in_build(lab, code) == ["done", "refused", "refused", "refused"]


@boxed
def test_a_run_worker_sees_only_the_artefact_it_loads(lab: Lab) -> None:
    build = lab.build(SOURCE, lab.operator.checked)
    other = next(iter(build.artifacts.values())).path
    code = f"""
        import os
        told = str([sorted(os.listdir({str(lab.folder)!r})), os.path.exists({other!r})])
    """
    assert in_run(lab, code) == "[['probe.py'], False]"


@boxed
def test_the_worker_is_the_one_seen_from_outside(lab: Lab) -> None:
    rig = lab.open(lab.build(SOURCE, lab.operator.checked))
    with rig:
        rig.load(lab.operator.tuned[0])
        line = psutil.Process(rig.worker.pid).cmdline()
        assert "opratchet.lab.runner" in line
        assert PROGRAM_NAME not in Path(line[0]).name
        assert rig.worker.irregular() == ""
        assert os.sched_getaffinity(rig.worker.pid) == {lab.cpu}
        family = psutil.Process(rig.worker.process.pid).children(recursive=True)
    assert not any(process.is_running() for process in family)


PROGRAM_NAME = sandbox_module.PROGRAM


DAEMON = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
    told = 'done'
"""


def test_a_process_left_behind_is_noticed_and_killed(either: Lab) -> None:
    with probe(either, DAEMON) as (worker, said):
        assert said == "done"
        if either.sandbox.active:
            assert "1 other processes" in worker.irregular()
        family = psutil.Process().children(recursive=True)
    assert not any(map(runs, [process.pid for process in family if is_runner(process)]))
    assert not [
        process for process in psutil.Process().children(recursive=True) if is_runner(process)
    ]


def is_runner(process: psutil.Process) -> bool:
    """Whether it is a run worker, or was forked from one."""
    with contextlib.suppress(psutil.Error):
        return "opratchet.lab.runner" in process.cmdline()
    return False


def test_workers_know_nothing_secret(either: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os\ntold = str([k for k in os.environ if 'TOKEN' in k])"
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    assert in_run(either, code) == "[]"
    assert in_build(either, code) == "[]"


def test_a_run_worker_does_not_write_much(either: Lab) -> None:
    folder = "/tmp" if either.sandbox.active else str(either.folder)
    code = attempt(f"open('{folder}/x', 'wb').truncate({LIMITS.file_bytes + 1})")
    assert in_run(either, code) == "refused"


def test_a_killed_supervisor_leaves_nothing(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            with (
                Lab(make_operator(tmp_path), LIMITS) as lab,
                lab.open(lab.build(SOURCE, lab.operator.checked)) as rig,
            ):
                lab.reference  # noqa: B018
                rig.load(lab.operator.tuned[0])
                family = psutil.Process().children(recursive=True)
                (tmp_path / "pids.tmp").write_text(" ".join(str(p.pid) for p in family))
                (tmp_path / "pids.tmp").rename(tmp_path / "pids")
                time.sleep(60)
        finally:
            os._exit(1)
    until = time.monotonic() + 60
    while not (tmp_path / "pids").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    family = [int(text) for text in (tmp_path / "pids").read_text().split()]
    assert len(family) >= 4
    while any(map(runs, family)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(runs, family))


def runs(pid: int) -> bool:
    """Whether a process runs; one that nobody has collected yet does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
