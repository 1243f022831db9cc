"""The work of the self-test: exactly as much as was planted, in bytes."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from statistics import median
from time import perf_counter_ns
from typing import Any

import pytest

from opratchet.lab.selftest_runtime import ABSENT, UNIT, load, size
from opratchet.selftest import EFFECTS, GRAIN, planted

BLOCK = 64


def buffer(count: int) -> Any:
    """Zeroed memory."""
    return (ctypes.c_ubyte * count)()


def compressions(count: int) -> int:
    """How often SHA-256 runs over a block for a message: with a bit, zeros and 64 bits of length behind it (FIPS 180-4)."""
    return -(-(count + 1 + 8) // BLOCK)


@pytest.mark.parametrize("units", [2, 100, 1010, 6600])
def test_compute_hashes_just_as_many_bytes_as_take_that_many_blocks(units: int) -> None:
    count = size("compute", units)
    assert compressions(count) == units
    memory = buffer(count + 1)
    memory[count] = 7
    call = load({"kind": "compute", "units": units}, [ctypes.addressof(memory)])
    assert call().digest() == hashlib.sha256(bytes(count)).digest()  # type: ignore[attr-defined]
    memory[count - 1] = 7
    assert call().digest() == hashlib.sha256(bytes(count - 1) + b"\x07").digest()  # type: ignore[attr-defined]


@pytest.mark.parametrize("units", [2, 100, 1010, 6600])
def test_memory_reads_just_as_many_cache_lines(units: int) -> None:
    count = size("memory", units)
    assert count == UNIT * units
    memory = buffer(count + 1)
    call = load({"kind": "memory", "units": units}, [ctypes.addressof(memory)])
    memory[count] = ABSENT
    assert call() is None
    memory[count - 1] = ABSENT
    assert call() == ctypes.addressof(memory) + count - 1


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("units", [GRAIN, 6000, 65500])
def test_the_work_of_both_sides_is_apart_by_what_was_planted(units: int, effect: float) -> None:
    incumbent, candidate = planted(units, effect)
    assert min(incumbent, candidate) == units
    slower, faster = (incumbent, candidate) if effect >= 0 else (candidate, incumbent)
    assert slower / faster == pytest.approx(1 + abs(effect), abs=5e-4 * abs(effect))


@pytest.mark.parametrize("kind", ["compute", "memory"])
def test_ten_times_the_work_takes_far_longer(kind: str) -> None:
    memory = buffer(size(kind, 60000))
    few, many = (
        load({"kind": kind, "units": units}, [ctypes.addressof(memory)]) for units in (6000, 60000)
    )
    ratios: Sequence[float] = [taken(many) / taken(few) for _ in range(30)]
    assert median(ratios) > 3


def taken(call: Any) -> int:
    """Nanoseconds of a call."""
    start = perf_counter_ns()
    call()
    return perf_counter_ns() - start


@pytest.mark.parametrize(("kind", "units"), [("disk", 100), ("compute", 1), ("memory", 0)])
def test_what_is_no_work_is_refused(kind: str, units: int) -> None:
    with pytest.raises(ValueError, match=kind):
        size(kind, units)
