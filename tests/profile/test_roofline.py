"""The roofline: where a kernel stands, and what no kernel can beat."""

from __future__ import annotations

import json
import time
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.profile.peaks import Peaks
from opratchet.profile.roofline import Work, physical_floor_us, position, work_of

FLAT = Peaks("f", flops=100.0, copy=((1, 50.0),))  # 50 GB/s at any size: ridge at 2 flop/byte

BYTES = st.integers(1, 10**12)
OPERATIONS = st.integers(0, 10**14)
LATENCIES = st.floats(1e-3, 1e9)
WORKS = st.builds(Work, BYTES, OPERATIONS, OPERATIONS)
PEAKS = st.builds(
    lambda flops, table: Peaks("f", flops, tuple(sorted(table.items()))),
    st.floats(0.1, 1e6),
    st.dictionaries(BYTES, st.floats(0.1, 1e5), min_size=1, max_size=6),
)


def test_a_worked_example() -> None:
    """1 MB and 1 MFLOP: 20 us at 50 GB/s, 10 us at 100 GFLOP/s; measured 40 us."""
    here = position(Work(bytes=10**6, flops=6 * 10**5, transcendentals=4 * 10**5), 40.0, FLAT)
    assert here.intensity == pytest.approx(1.0)
    assert here.ridge == pytest.approx(2.0)
    assert here.memory_us == pytest.approx(20.0)
    assert here.compute_us == pytest.approx(10.0)
    assert here.bound_us == pytest.approx(20.0)
    assert here.memory_fraction == pytest.approx(0.5)
    assert here.compute_fraction == pytest.approx(0.25)
    assert here.gflops == pytest.approx(25.0)
    assert here.bandwidth == pytest.approx(25.0)
    assert here.roof == "memory"
    assert str(here) == "25% of multiply-add peak, 50% of copy bandwidth"


def test_the_working_set_chooses_the_bandwidth() -> None:
    peaks = Peaks("f", 100.0, ((1000, 200.0), (10**6, 10.0)))
    assert position(Work(1000), 1.0, peaks).bandwidth_peak == pytest.approx(200.0)
    assert position(Work(10**6), 1.0, peaks).bandwidth_peak == pytest.approx(10.0)


@given(work=WORKS, latency=LATENCIES, peaks=PEAKS)
def test_every_figure_is_a_number_of_at_least_zero(
    work: Work, latency: float, peaks: Peaks
) -> None:
    record = position(work, latency, peaks).record()
    figures = [value for value in record.values() if not isinstance(value, str)]
    assert all(0 <= value < inf for value in figures)
    assert json.loads(json.dumps(record)) == record


@given(work=WORKS, latency=LATENCIES, peaks=PEAKS, factor=st.floats(0.01, 100))
def test_a_kernel_twice_as_slow_reaches_half_as_much(
    work: Work, latency: float, peaks: Peaks, factor: float
) -> None:
    fast, slow = position(work, latency, peaks), position(work, latency * factor, peaks)
    assert slow.compute_fraction * factor == pytest.approx(fast.compute_fraction)
    assert slow.memory_fraction * factor == pytest.approx(fast.memory_fraction)
    assert slow.bound_us == fast.bound_us


@given(work=WORKS, latency=LATENCIES, factor=st.integers(1, 1000))
def test_more_of_the_same_work_in_as_much_more_time_stands_in_the_same_place(
    work: Work, latency: float, factor: int
) -> None:
    more = Work(work.bytes * factor, work.flops * factor, work.transcendentals * factor)
    one, many = position(work, latency, FLAT), position(more, latency * factor, FLAT)
    assert many.intensity == pytest.approx(one.intensity)
    assert many.compute_fraction == pytest.approx(one.compute_fraction)
    assert many.memory_fraction == pytest.approx(one.memory_fraction)


@given(work=WORKS, latency=LATENCIES, peaks=PEAKS)
def test_at_its_bound_a_kernel_touches_the_lower_roof(
    work: Work, latency: float, peaks: Peaks
) -> None:
    bound = position(work, latency, peaks).bound_us
    at_best = position(work, bound, peaks)
    attainable = min(at_best.gflops_peak, at_best.bandwidth_peak * at_best.intensity)
    assert at_best.gflops == pytest.approx(attainable)
    assert max(at_best.compute_fraction, at_best.memory_fraction) == pytest.approx(1.0)
    if at_best.intensity > at_best.ridge * (1 + 1e-9):
        assert at_best.roof == "compute"
    if at_best.intensity < at_best.ridge * (1 - 1e-9):
        assert at_best.roof == "memory"


@pytest.mark.parametrize("latency", [0.0, -1.0, nan])
def test_a_latency_is_over_zero(latency: float) -> None:
    with pytest.raises(ValueError, match="over 0"):
        position(Work(1), latency, FLAT)


# The floor


@given(work=WORKS, peaks=PEAKS)
def test_the_floor_is_far_below_what_the_roofline_asks_for(work: Work, peaks: Peaks) -> None:
    floor = physical_floor_us(work, peaks)
    assert 0 <= floor.us <= position(work, 1.0, peaks).bound_us / 2


def test_the_floor_shows_its_arithmetic() -> None:
    floor = physical_floor_us(Work(bytes=4_000_000), FLAT)
    assert floor.us == pytest.approx(20.0)  # 4 MB at 4 x 50 GB/s
    assert floor.arithmetic == "4000000 B / (4 x 50 GB/s) = 20 us"


def test_counted_operations_are_no_limit_but_declared_ones_are() -> None:
    counted = Work(bytes=1000, flops=2 * 10**6)
    declared = Work(bytes=1000, flops=2 * 10**6, declared=True)
    assert physical_floor_us(counted, FLAT).us == pytest.approx(0.005)
    assert physical_floor_us(declared, FLAT).us == pytest.approx(10.0)  # at 2 x 100 GFLOP/s
    assert "FLOP" in physical_floor_us(declared, FLAT).arithmetic


@pytest.mark.timing
@pytest.mark.parametrize("elements", [1 << 10, 1 << 14, 1 << 20])
def test_the_fastest_copies_and_sums_of_this_machine_are_honest(
    peaks: Peaks, elements: int
) -> None:
    a, b, out = (np.ones(elements, np.float32) for _ in range(3))
    work = Work(bytes=3 * a.nbytes)

    def once() -> float:
        start = time.perf_counter_ns()
        np.add(a, b, out=out)
        return (time.perf_counter_ns() - start) / 1e3

    assert min(once() for _ in range(200)) > physical_floor_us(work, peaks).us


# Work from a count


OPERATIONS_COUNTED = {"flops": 10, "transcendentals": 2, "bytes": 400, "traffic": 800}


def test_counted_work() -> None:
    work = work_of(OPERATIONS_COUNTED)
    assert (work.bytes, work.operations, work.traffic, work.declared) == (400, 12, 800, False)


def test_a_declared_figure_replaces_the_counted_operations() -> None:
    work = work_of(OPERATIONS_COUNTED, "2 * M * N", {"M": 3, "N": 5})
    assert (work.bytes, work.operations, work.traffic, work.declared) == (400, 30, 800, True)


@pytest.mark.parametrize("declared", ["2 * P", "M - 4"])
def test_a_declared_figure_that_makes_no_sense_is_bad_input(declared: str) -> None:
    with pytest.raises(BadInput) as error:
        work_of(OPERATIONS_COUNTED, declared, {"M": 3})
    assert error.value.where == "flops"
