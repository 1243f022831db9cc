"""Arithmetic over shape names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.profile.arithmetic import evaluate

SHAPE = {"M": 33, "N": 1000, "K": 7, "block_N": 256}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 * M * N * K", 2 * 33 * 1000 * 7),
        ("T.ceildiv(N, block_N)", 4),
        ("ceildiv(-M, 2)", -16),
        ("max(M, N) // K % 5", 1000 // 7 % 5),
        ("-(M + 2) ** 2", -(35**2)),
        ("N / 8", 125.0),
        ("floor(log2(N)) + sqrt(4)", 11),
    ],
)
def test_values(expression: str, value: float) -> None:
    assert evaluate(expression, SHAPE) == value


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "2 *",
        "M * P",
        "M.real",
        "'M'",
        "True",
        "M if N else K",
        "__import__('os')",
        "open(M)",
        "min()",
        "1 / 0",
        "(0 - 8) ** 0.5",
        "1e308 * 10",
        "M(2)",
        "max(M, key=N)",
        "9**9**9**9",
        "((9**99)**99)**99",
        "+".join(["M"] * 2000),
        "(" * 300 + "M" + ")" * 300,
    ],
)
def test_what_has_no_value_is_bad_input_and_says_where(expression: str) -> None:
    with pytest.raises(BadInput) as error:
        evaluate(expression, SHAPE, where="flops")
    assert error.value.where == "flops"
    assert "block_N" in error.value.fix


@given(st.text(alphabet="MNK0123456789+-*/%()., '\"[]e_=", max_size=30))
def test_any_text_is_a_number_or_bad_input(text: str) -> None:
    try:
        value = evaluate(text, SHAPE)
    except BadInput:
        return
    assert isinstance(value, (int, float))


@given(
    st.recursive(
        st.sampled_from(["M", "N", "K", "3"]),
        lambda part: st.tuples(part, st.sampled_from("+-*"), part).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        max_leaves=12,
    )
)
def test_it_computes_what_python_computes(expression: str) -> None:
    assert evaluate(expression, SHAPE) == eval(expression, {}, SHAPE)
