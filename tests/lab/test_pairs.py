"""How batches are sized, warmed up and ordered, on a rig whose clock is a script; and the lock of the device that they run on."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

from opratchet.lab.pairs import (
    BATCH_NS,
    LOCKS,
    OVERHEAD,
    Timer,
    device_lock,
    lock_folder,
    pairs,
)
from opratchet.operator.model import Workload

W = Workload("w", {"N": 8})


class ScriptedRig:
    """Answers every batch with `overhead + n * call(number of calls before)` nanoseconds, and keeps a diary."""

    def __init__(
        self, name: str, diary: list[tuple[str, int]], call: Callable[[int], float], overhead: int
    ) -> None:
        self.name, self.diary, self.call, self.overhead = name, diary, call, overhead
        self.calls = self.reserved = 0

    def batch(self, _workload: Workload, count: int) -> tuple[int, int]:
        self.diary.append((self.name, count))
        took = self.overhead + sum(self.call(self.calls + k) for k in range(count))
        self.calls += count
        return round(took), round(took)

    def reserve(self, _workload: Workload, count: int) -> None:
        self.reserved = count


def rig(
    name: str = "a",
    diary: list[tuple[str, int]] | None = None,
    call: Callable[[int], float] = lambda _n: 50_000.0,
    overhead: int = 100,
) -> Any:
    return ScriptedRig(name, diary if diary is not None else [], call, overhead)


@pytest.mark.parametrize("overhead", [10, 1_000, 50_000])
@pytest.mark.parametrize("call", [90.0, 3_000.0, 70_000.0])
def test_what_stands_around_the_calls_is_a_small_part_of_a_batch(
    overhead: int, call: float
) -> None:
    timer = Timer(rig(call=lambda _n: call, overhead=overhead), W)
    lasting = timer.size() * call + overhead
    assert overhead <= 1.1 * OVERHEAD * lasting
    assert lasting >= 0.7 * BATCH_NS


def test_one_slow_call_is_a_batch() -> None:
    assert Timer(rig(call=lambda _n: 5e7), W).size() == 1


def test_warming_up_goes_on_until_the_times_are_steady() -> None:
    cooling = rig(call=lambda n: 1e6 * (1 + 4 * 0.5**n))
    timer = Timer(cooling, W)
    timer.warm_up()
    assert timer.sample().ns == pytest.approx(1e6, rel=0.05)


def test_pairs_come_in_the_order_abba_with_as_many_calls_on_both_sides() -> None:
    diary: list[tuple[str, int]] = []
    slow = rig("slow", diary, lambda _n: 40_000.0)
    fast = rig("fast", diary, lambda _n: 20_000.0)
    stream = pairs(Timer(slow, W), Timer(fast, W))
    first = next(stream)
    del diary[:]
    taken = [first, *islice(stream, 5)]
    counted = [(name, count) for name, count in diary if count > 1]
    # The first of these finishes the pair that was given before the diary was emptied.
    order = "fast slow  slow fast fast slow  slow fast fast"
    assert [name for name, _c in counted][:9] == order.split()
    assert len({count for _n, count in counted}) == 1
    assert all(pair.incumbent.count == pair.candidate.count for pair in taken)


def test_a_steady_drift_cancels_in_every_turn() -> None:
    clock = {"calls": 0}

    def drifting(_n: int) -> float:
        clock["calls"] += 1
        return 50_000.0 * (1 + 1e-5 * clock["calls"])

    stream = pairs(Timer(rig("a", call=drifting), W), Timer(rig("b", call=drifting), W))
    taken = list(islice(stream, 40))
    differences = [pair.incumbent.ns - pair.candidate.ns for pair in taken]
    turns = [a + b for a, b in zip(differences[::2], differences[1::2], strict=True)]
    assert max(map(abs, turns)) < 0.01 * max(map(abs, differences))


def test_the_first_call_of_a_process_is_never_in_a_pair() -> None:
    seen: list[int] = []

    def first_slow(n: int) -> float:
        seen.append(n)
        return 5e6 if n == 0 else 50_000.0

    stream = pairs(Timer(rig("a", call=first_slow), W), Timer(rig("b", call=first_slow), W))
    taken = list(islice(stream, 4))
    assert seen.count(0) == 2
    assert max(cast(float, pair.incumbent.ns) for pair in taken) < 60_000


def test_runs_meet_at_one_lock_whatever_their_folders_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPRATCHET_LOCKS")
    found = []
    for name in ("one", "other"):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        found.append(lock_folder())
    assert found[0] == found[1] == Path(next(p for p in LOCKS if os.access(p, os.W_OK)))
    monkeypatch.setenv("OPRATCHET_LOCKS", str(tmp_path))
    assert lock_folder() == tmp_path


def test_a_lock_that_may_only_be_read_is_a_lock_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPRATCHET_LOCKS", str(tmp_path))
    with device_lock("cpu9"):
        path = tmp_path / "opratchet-cpu9.lock"
        assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o444)
    with device_lock("cpu9"), path.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
