"""What names stand for on a workload, found by reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.edit.names import Names, known, number
from opratchet.edit.source import KernelSource

SOURCE = KernelSource(
    '''WIDTH = 8
SCALE = compute()


def op(M, N, block_M=4, *, block_N=2 * WIDTH, dtype="float32", flag=True):
    """A factory."""
    blocks = ceildiv(N, block_N)
    unknown = something(N)
    return blocks
''',
    "op",
)


def test_names_on_a_workload() -> None:
    found = Names(SOURCE).on({"M": 3, "N": 40})
    assert found["blocks"] == 3 and found["block_N"] == 16 and found["dtype"] == "float32"
    assert "SCALE" not in found and "unknown" not in found


def test_another_value_of_a_knob_reaches_what_depends_on_it() -> None:
    names = Names(SOURCE)
    assert names.on({"N": 40}, {"block_N": 8})["blocks"] == 5
    assert names.on({"N": 40}, {"WIDTH": 4})["blocks"] == 5


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("T.ceildiv(n, 4)", 3),
        ("(n + 3) // 4 * 4", 12),
        ("max(n, 3) % 4", 1),
        ("n / 2", 4.5),
        ("-n if n > 10 else n - 1", 8),
        ("int(T.sqrt(n))", 3),
    ],
)
def test_arithmetic(expression: str, value: float) -> None:
    assert number(expression, {"n": 9}) == value


@pytest.mark.parametrize(
    "expression",
    [
        "m",
        "n // 0",
        "n.real",
        "__import__('os').getpid()",
        "open('x')",
        "n **",
        "'a' * 9",
        "[1] * 9",
        "n" + " * n" * 5000,
        "(" * 500 + "n" + ")" * 500,
        "n << 4",
        "True",
        "",
    ],
)
def test_what_cannot_be_told_is_none(expression: str) -> None:
    assert number(expression, {"n": 9}) is None


def test_dtypes() -> None:
    assert known("T.float16", {}) == "float16"
    assert known("dtype", {"dtype": "int8"}) == "int8"


@given(st.text(alphabet="n0123456789+-*/%() ,.abctlmx<>=ifes'[]", max_size=40))
def test_any_text_has_a_number_or_none(expression: str) -> None:
    found = number(expression, {"n": 9})
    assert found is None or isinstance(found, (int, float))
