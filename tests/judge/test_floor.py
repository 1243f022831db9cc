"""Figures that no run can have given are named with the arithmetic, whatever is sent in their place."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.judge.floor import below_floor, impossible
from opratchet.profile.peaks import Peaks
from opratchet.profile.roofline import Floor, Work, physical_floor_us

WHERE = "n64: a batch of 12 calls"
SCALARS = [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.int64, np.uint64]
NUMBERS = (
    st.floats()
    | st.integers()
    | st.decimals(allow_nan=True, allow_infinity=True)
    | st.fractions()
    | st.builds(lambda kind, n: kind(n), st.sampled_from(SCALARS), st.integers(0, 100))
    | st.builds(lambda kind, x: kind(x), st.sampled_from(SCALARS[:4]), st.floats(width=16))
)
OTHERS = (
    st.none()
    | st.booleans()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.lists(st.floats(), max_size=3)
    | st.dictionaries(st.text(), st.floats(), max_size=2)
    | st.booleans().map(np.bool_)
    | st.floats().map(np.asarray)
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "took 0 ns: nothing is done in no time"),
        (-0.0, "took -0 ns: nothing is done in no time"),
        (-12.5, "took -12.5 ns: it would have ended before it began"),
        (-math.inf, "took -inf ns: it would have ended before it began"),
        (math.nan, "took nan ns, which is not a number"),
        (math.inf, "took inf ns: it would not have ended yet"),
        (10**400, "took inf ns: it would not have ended yet"),
        (-(10**400), "took -inf ns: it would have ended before it began"),
        (Decimal("sNaN"), "which is not a number of ns"),
        (Decimal("1e-400"), "nothing is done in no time"),
        (np.float32("nan"), "which is not a number"),
        (True, "took True (bool), which is not a number of ns"),
        (np.True_, "which is not a number of ns"),
        ("12.5", "took '12.5' (str), which is not a number of ns"),
        (None, "took None (NoneType), which is not a number of ns"),
        ([10**5000], "took a list, which is not a number of ns"),
        (3 + 0j, "(complex), which is not a number of ns"),
    ],
)
def test_what_is_wrong_is_told_with_place_and_unit(value: object, words: str) -> None:
    found = impossible(value, "ns", WHERE)
    assert found.startswith(f"{WHERE} took ")
    assert words in found


@pytest.mark.parametrize(
    "value", [1, 5e-324, 1.7e308, np.float32(3), np.uint8(1), Fraction(1, 3), Decimal("0.1")]
)
def test_a_positive_finite_number_can_be_a_time(value: object) -> None:
    assert impossible(value, "ns", WHERE) == ""


@given(NUMBERS)
def test_a_number_passes_exactly_when_it_is_positive_and_finite(value: object) -> None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (OverflowError, ValueError):
        number = math.nan
    assert (impossible(value, "ns", WHERE) == "") == (0 < number < math.inf)


@given(OTHERS)
def test_what_is_no_number_never_passes(value: object) -> None:
    found = impossible(value, "us", WHERE)
    assert "which is not a number of us" in found
    assert len(found) < 200


class Unshowable:
    """Something whose `repr` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_something_that_cannot_be_shown_is_named_by_its_type() -> None:
    assert "a Unshowable" in impossible(Unshowable(), "ns", WHERE)


PEAKS = Peaks(fingerprint="test", flops=100.0, copy=((1 << 20, 12.3),))


def test_the_arithmetic_of_the_floor_is_shown() -> None:
    floor = physical_floor_us(Work(bytes=1048576), PEAKS)
    found = below_floor(3.0, floor)
    assert found.startswith("3 us is less than physics allows: ")
    assert "1048576 B / (4 x 12.3 GB/s) = 21.3 us" in found
    declared = Work(bytes=8, flops=10**9, declared=True)
    assert "1000000000 FLOP / (2 x 100 GFLOP/s) = 5e+03 us" in below_floor(
        3.0, physical_floor_us(declared, PEAKS)
    )


@given(st.floats(1e-6, 1e9), st.floats(0, 1e9))
def test_only_a_latency_below_the_floor_is_refused(measured: float, limit: float) -> None:
    found = below_floor(measured, Floor(limit, "1 B / 1 GB/s"))
    assert bool(found) == (measured < limit)
    assert ("1 B / 1 GB/s" in found) == bool(found)


@given(st.sampled_from([0.0, -1.0, math.nan, math.inf]))
def test_an_impossible_latency_never_passes_the_floor(measured: float) -> None:
    assert below_floor(measured, None)
    assert below_floor(measured, Floor(0.0, "0 B"))


def test_without_a_floor_a_latency_passes() -> None:
    assert below_floor(1e-9, None) == ""
