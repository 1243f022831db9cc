"""What a run shares with others: the device, the folder, the clock of the machine."""

from __future__ import annotations

import fcntl
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from opratchet.lab import pairs
from opratchet.lab.pairs import device_lock, lock_folder
from opratchet.ledger import store
from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, Ledger, holder, read_lines
from opratchet.report.views import rebuild
from tests.faults.conftest import Command, started
from tests.faults.scene import decisions, play

TUNE = ("--max-rounds", 1, "--max-experiments", 1, "--json")


def test_two_runs_on_one_device_take_turns(tmp_path: Path) -> None:
    from tests.faults.killing import ended
    from tests.faults.killing import started as forked

    def run(folder: Path) -> None:
        @contextmanager
        def noted(device: str) -> Iterator[None]:
            with device_lock(device):
                begin = time.monotonic()
                yield
                with (folder / "turns").open("a") as file:
                    file.write(json.dumps([begin, time.monotonic()]) + "\n")

        pairs.device_lock = noted
        play(folder, points=[])

    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    children = [forked(lambda folder=folder: run(folder)) for folder in folders]
    assert [ended(child) for child in children] == [0, 0]
    turns = [json.loads(line) for f in folders for line in (f / "turns").read_text().splitlines()]
    assert len(turns) >= 6
    ordered = sorted(turns)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ordered))


def test_a_run_waits_for_the_device_as_long_as_another_has_it(
    operator: Path, tmp_path: Path
) -> None:
    from opratchet.lab.bench import Lab
    from tests.faults.scene import operator_in

    with Lab(operator_in(tmp_path)) as lab:
        lock = lock_folder() / f"opratchet-{lab.backend.device()}{lab.cpu}.lock"
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = started("tune", operator, *TUNE)
        with pytest.raises(Exception, match="timed out"):
            process.wait(15)
        assert not (operator / "perf_opt").exists()
    _out, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors


def test_a_second_run_on_a_folder_is_refused_and_names_the_first(
    command: Command, operator: Path
) -> None:
    process = started("tune", operator, "--max-rounds", 3, "--json")
    deadline = time.monotonic() + 100
    while holder(operator / "perf_opt") is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGSTOP)  # or it might be done before the others have asked
    for arguments in (("resume",), ("tune",), ("tune", "--fresh")):
        refused = command(arguments[0], operator, *arguments[1:])
        assert refused.returncode == 2
        assert f"process {process.pid}" in refused.stderr
    process.send_signal(signal.SIGCONT)
    process.terminate()
    _out, errors = process.communicate(timeout=200)
    assert process.returncode == 5, errors
    assert not operator.with_name("perf_opt.1").exists()


def test_who_only_looks_keeps_no_run_from_its_folder(tmp_path: Path) -> None:
    Ledger(tmp_path, create=True).close()
    with (tmp_path / LEDGER).open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.3, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        Ledger(tmp_path, create=False).close()


class Backwards(datetime):
    """A clock that goes back by an hour each time that it is read."""

    reads = 0

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        cls.reads += 1
        return datetime(2026, 1, 10, tzinfo=timezone.utc) - timedelta(hours=cls.reads)


def test_a_clock_that_is_set_back_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    play(tmp_path / "plain")
    monkeypatch.setattr(store, "datetime", Backwards)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    state = play(tmp_path)
    monkeypatch.undo()
    assert decisions(tmp_path / "out") == decisions(tmp_path / "plain" / "out")
    times = [line.at for line in read_lines(tmp_path / "out" / LEDGER)]
    assert times == sorted(times, reverse=True)
    assert state.delivered is not None
    assert all(seconds >= 0 for seconds in state.delivered.seconds.values())
    assert all(s >= 0 for trial in state.trials.values() for s in trial.seconds.values())
    rebuild(tmp_path / "out", fold(read_lines(tmp_path / "out" / LEDGER)))
