"""What a candidate can reach, from the inside: real processes that try, with the sandbox and without it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from opratchet import session
from opratchet.errors import EnvironmentMissing
from opratchet.flow.model import StopRules
from opratchet.lab import sandbox as sandbox_module
from opratchet.lab.bench import Lab
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.limits import Limits
from opratchet.lab.processes import worker_environment
from opratchet.lab.sandbox import Mode, Sandbox, choose
from opratchet.lab.supervisor import RunWorker
from opratchet.ledger.events import Line, RunResumed, RunStarted
from opratchet.ledger.state import RunState, apply, fold
from opratchet.report import words
from tests.cli.conftest import environment
from tests.engine.scripted import ROOT, SOURCE, make_operator

WORKS = choose()
NEEDS = "these tests of the sandbox need bubblewrap: apt-get install bubblewrap"
boxed = pytest.mark.skipif(not WORKS.active, reason=f"{NEEDS} ({WORKS.why_not})")
apart = pytest.mark.skipif(
    not WORKS.sets_apart, reason=f"{NEEDS} ({WORKS.why_not or WORKS.shared})"
)
LIMITS = Limits(build_seconds=20.0, call_seconds=20.0, scratch_bytes=4 << 20, file_bytes=8 << 20)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers can import the tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@contextmanager
def opened(folder: Path, mode: Mode) -> Iterator[Lab]:
    """A lab, and a run's folder in its operator's."""
    operator = make_operator(folder)
    run = operator.root / "perf_opt"
    run.mkdir()
    (run / "ledger.jsonl").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with Lab(operator, LIMITS, choose(mode).hiding([run])) as lab:
            yield lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with the sandbox."""
    with opened(tmp_path_factory.mktemp("boxed"), Mode.REQUIRE) as lab:
        yield lab


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab without."""
    with opened(tmp_path_factory.mktemp("off"), Mode.OFF) as lab:
        yield lab


@pytest.fixture(params=[pytest.param("lab", marks=boxed), "bare"], ids=["boxed", "off"])
def either(request: pytest.FixtureRequest) -> Lab:
    """Both, one after the other."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Lab)
    return found


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


def test_off_says_so(tmp_path: Path) -> None:
    found = choose(Mode.OFF)
    assert not found.active
    lacking = [one for one in found.protections if not one.active]
    assert len(lacking) >= 6
    assert all("--sandbox off" in one.why_not for one in lacking if "limit of" not in one.name)
    assert found.record().keys() == Sandbox(program="/usr/bin/bwrap").record().keys()


def test_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = choose(Mode.AUTO)
    assert not found.active
    assert "apt-get install bubblewrap" in found.why_not
    with pytest.raises(EnvironmentMissing, match="not installed") as caught:
        choose(Mode.REQUIRE)
    assert caught.value.exit_code == 6


def test_one_that_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    assert "No permissions to create new namespace" in choose(Mode.AUTO).why_not
    with pytest.raises(EnvironmentMissing, match="No permissions"):
        choose(Mode.REQUIRE)


def test_environment_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("TILELANG_API_KEY", "x")
    monkeypatch.setenv("TILELANG_SOMETHING", "y")
    monkeypatch.setenv("ODD", "z")
    assert not {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "TILELANG_API_KEY", "ODD"} & set(
        worker_environment()
    )
    assert worker_environment()["TILELANG_SOMETHING"] == "y"
    assert worker_environment(trusted=True)["ODD"] == "z"
    monkeypatch.setenv("OPRATCHET_PASS_ENV", "OTHER, ODD")
    assert worker_environment()["ODD"] == "z"


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


def test_bubblewrap_is_a_program_of_this_machine() -> None:
    """Says loudly in the summary of the tests when all of the above was left out."""
    if shutil.which(sandbox_module.PROGRAM) is None:
        pytest.skip(NEEDS)
    assert WORKS.active, WORKS.why_not


def test_a_run_puts_the_protections_on_record(either: Lab) -> None:
    header = session.header(either, session.Options(StopRules()))
    assert header.protections == either.sandbox.record()
    state = RunState()
    apply(state, Line(seq=0, at="", prev="", event=header))
    for lang in ("zh", "en"):
        told = words.protections(state, lang)
        assert ("no network" in told) is not either.sandbox.active
        assert "golden in a process tree" not in told


def test_a_protection_counts_only_if_it_was_active_all_the_time(bare: Lab) -> None:
    header = session.header(bare, session.Options(StopRules()))
    began = header.model_copy(update={"protections": {"a": "", "b": "", "c": "old reason"}})
    again = RunResumed(tool_version="1", protections={"a": "", "b": "not here", "c": ""})
    state = fold(
        [Line(seq=n, at="", prev="", event=event) for n, event in enumerate((began, again))]
    )
    assert state.protections == {"a": "", "b": "not here", "c": "old reason"}
    assert words.protections(state, "en").endswith(
        "1 protections active; not active: b (not here); c (old reason)"
    )


def test_a_ledger_from_before_has_none(bare: Lab) -> None:
    data = session.header(bare, session.Options(StopRules())).model_dump(mode="json")
    del data["protections"]
    state = fold([Line(seq=0, at="", prev="", event=RunStarted.model_validate(data))])
    assert words.protections(state, "zh") == ""


@pytest.mark.parametrize("command", ["measure", "diagnose", "tune", "compare"])
def test_required_and_missing_ends_with_what_to_install(tmp_path: Path, command: str) -> None:
    folder = ROOT / "examples" / "norm" / "rmsnorm"
    paths = [folder, folder] if command == "compare" else [folder]
    done = subprocess.run(
        [sys.executable, "-m", "opratchet", command, *paths, "--sandbox", "require"],
        env=environment(PATH=str(tmp_path)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert "apt-get install bubblewrap" in done.stderr
