"""Lanes and inlined reductions: what they write, that nothing is lost at the end, and when they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.edit.rewrites.lanes import Lanes
from opratchet.edit.rewrites.reduce_inline import ReduceInline
from opratchet.edit.source import KernelSource
from tests.edit.evaluating import evaluate
from tests.edit.running import assert_matches_golden
from tests.edit.sources import changed, edit, example, kernel, outcome, why_not

ROW = "x = T.alloc_local((block_M, N), dtype)\nr = T.alloc_local((block_M,), dtype)\n"
WRITE = "for i in T.serial(block_M):\n    R[bx * block_M + i, 0] = r[i]"
COPY = "T.copy(X[bx * block_M, 0], x)\n"
RESULT = "X: T.Tensor((M, N), dtype), R: T.Tensor((M, 1), dtype)"


def reducing(line: str, allocations: str = ROW) -> KernelSource:
    """A kernel that reduces the rows of X into r, and copies r out."""
    return kernel(f"{allocations}{COPY}T.fill(r, 2.0)\n{line}\n{WRITE}", RESULT)


def test_lanes_write_out_a_reduce_call() -> None:
    source = example("softmax")
    gone, came = changed(source, edit(Lanes(), source, "row_max:16").text)
    assert gone == ["T.reduce_max(x, row_max, dim=1)"]
    assert came == [
        "lanes = T.alloc_local((16,), dtype)",
        "for i in T.serial(block_M):",
        "T.fill(lanes, -T.infinity(dtype))",
        "for j in T.serial(N // 16):",
        "for lane in T.serial(16):",
        "lanes[lane] = T.max(lanes[lane], x[i, j * 16 + lane])",
        "row_max[i] = -T.infinity(dtype)",
        "for lane in T.serial(16):",
        "row_max[i] = T.max(row_max[i], lanes[lane])",
        "for j in T.serial(N % 16):",
        "row_max[i] = T.max(row_max[i], x[i, N // 16 * 16 + j])",
    ]


def test_lanes_keep_what_the_result_held_when_it_is_not_cleared() -> None:
    source = example("attention")
    gone, came = changed(source, edit(Lanes(), source, "row_max:8").text)
    assert gone == ["T.reduce_max(p, row_max, dim=1, clear=False)"]
    assert "row_max[i] = -T.infinity(dtype)" not in came


def test_lanes_split_a_loop_and_leave_its_neighbours_alone() -> None:
    source = kernel("""
total = T.alloc_local((1,), dtype)
# Start from nothing.
total[0] = 0.0
# The whole tensor.
for i, j in T.grid(M, N):
    total[0] += X[i, j] * (X[i, j] + 1.0)
Y[0, 0] = total[0]
""")
    gone, came = changed(source, edit(Lanes(), source, "total:8").text)
    assert gone == ["for i, j in T.grid(M, N):", "total[0] += X[i, j] * (X[i, j] + 1.0)"]
    assert came == [
        "lanes = T.alloc_local((8,), dtype)",
        "for i in T.serial(M):",
        "T.clear(lanes)",
        "for j in T.serial(N // 8):",
        "for lane in T.serial(8):",
        "lanes[lane] += X[i, j * 8 + lane] * (X[i, j * 8 + lane] + 1.0)",
        "for lane in T.serial(8):",
        "total[0] += lanes[lane]",
        "for j in T.serial(N % 8):",
        "total[0] += X[i, N // 8 * 8 + j] * (X[i, N // 8 * 8 + j] + 1.0)",
    ]


def test_lanes_do_not_split_what_they_have_split() -> None:
    source = example("rmsnorm")
    split = KernelSource(edit(Lanes(), source, "sum_sq:16").text, "rmsnorm")
    assert "too short to split" in why_not(Lanes(), split)


def test_lanes_offer_the_best_guess_first() -> None:
    found = outcome(Lanes(), example("rmsnorm"))
    assert isinstance(found, list)
    assert [one.key for one in found] == ["sum_sq:16", "sum_sq:32", "sum_sq:8"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("T.reduce_sum(x, r, dim=0)", "does not reduce the innermost axis"),
        ("T.reduce_absmax(x, r, dim=1)", "no sum, maximum or minimum"),
        ("T.reduce_sum(x[0, 0], r, dim=1)", "one whole local buffer to another"),
        ("for i, j in T.grid(4, N):\n    # why\n    r[i] += x[i, j]", "comment in the reduction"),
        ("for i, j in T.grid(4, N):\n    R[i, 0] += x[i, j]", "`R` is no local buffer"),
        ("for i, j in T.grid(4, 12):\n    r[i] += x[i, j]", "over 12 elements is too short"),
        ("for i, j in T.grid(4, N):\n    r[i] += x[i, j] + r[i]", "no reduction"),
        ("for i, j in T.grid(4, N):\n    r[j] += x[i, j]", "no reduction"),
    ],
)
def test_lanes_say_why_they_do_not_apply(line: str, why: str) -> None:
    assert why in why_not(Lanes(), reducing(line))


def test_lanes_refuse_a_maximum_of_integers() -> None:
    allocations = ROW.replace(
        "r = T.alloc_local((block_M,), dtype)", 'r = T.alloc_local((4,), "int32")'
    )
    source = reducing("for i, j in T.grid(4, N):\n    r[i] = T.max(r[i], x[i, j])", allocations)
    assert "dtype without infinities" in why_not(Lanes(), source)


CALLS = st.builds(
    "T.reduce_{}(x, r, dim={}, clear={})".format,
    st.sampled_from(["sum", "max", "min"]),
    st.sampled_from(["1", "-1"]),
    st.booleans(),
)
UPDATES = ["r[i] += x[i, j] * 2.0", "r[i] = r[i] + x[i, j]", "r[i] = T.max(x[i, j], r[i])"]
LOOPS = st.sampled_from(UPDATES).map(lambda line: f"for i, j in T.grid(block_M, N):\n    {line}")


@settings(deadline=None, max_examples=40)
@given(line=CALLS | LOOPS, width=st.integers(1, 70), lanes=st.sampled_from([8, 16, 32]))
def test_lanes_reduce_every_element_once(line: str, width: int, lanes: int) -> None:
    source = reducing(line)
    after = KernelSource(edit(Lanes(), source, f"r:{lanes}").text, "op")
    x = np.random.default_rng(width).normal(size=(4, width))
    expected, found = np.zeros((4, 1)), np.zeros((4, 1))
    evaluate(source, {"M": 4, "N": width}, x, expected)
    evaluate(after, {"M": 4, "N": width}, x, found)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_inlining_computes_where_it_reduces() -> None:
    source = example("rmsnorm")
    gone, came = changed(source, edit(ReduceInline(), source, "y:16").text)
    assert gone == [
        "for i, j in T.grid(block_M, N):",
        "y[i, j] = x[i, j] * x[i, j]",
        "T.reduce_sum(y, sum_sq, dim=1)",
    ]
    assert "lanes[lane] += x[i, j * 16 + lane] * x[i, j * 16 + lane]" in came
    assert "sum_sq[i] += x[i, N // 16 * 16 + j] * x[i, N // 16 * 16 + j]" in came


def test_inlining_drops_a_buffer_that_nothing_else_uses() -> None:
    source = reducing(
        "y = T.alloc_local((block_M, N), dtype)\n"
        "for i, j in T.grid(block_M, N):\n    y[i, j] = x[i, j] * 0.5\n"
        "T.reduce_max(y, r, dim=1)"
    )
    text = edit(ReduceInline(), source, "y:8").text
    assert "y = T.alloc_local" not in text and "y[" not in text
    x = np.random.default_rng(1).normal(size=(4, 21))
    found = np.zeros((4, 1))
    evaluate(KernelSource(text, "op"), {"M": 4, "N": 21}, x, found)
    np.testing.assert_allclose(found[:, 0], 0.5 * x.max(axis=1))


@pytest.mark.parametrize(
    ("between", "after", "why"),
    [
        ("x[0, 0] = 1.0", "", "changes before it is reduced"),
        ("", "r[0] = y[0, 0]", "needed again after it is reduced"),
        ("", "T.copy(y, X[0, 0])", "needed again after it is reduced"),
    ],
)
def test_inlining_refuses_where_the_value_is_not_the_same(
    between: str, after: str, why: str
) -> None:
    source = reducing(
        "y = T.alloc_local((block_M, N), dtype)\n"
        "for i, j in T.grid(block_M, N):\n    y[i, j] = x[i, j] * 0.5\n"
        f"{between}\nT.reduce_max(y, r, dim=1)\n{after}"
    )
    assert why in why_not(ReduceInline(), source)


def test_inlining_needs_the_softmax_numerators() -> None:
    assert "needed again" in why_not(ReduceInline(), example("softmax"))


@pytest.mark.tilelang
@pytest.mark.parametrize("keys", [("row_max:16", "row_sum:32"), ("row_sum:8",)])
def test_lanes_match_the_golden(keys: tuple[str, ...], tmp_path: Path) -> None:
    source = original = example("softmax")
    for key in keys:
        source = KernelSource(edit(Lanes(), source, key).text, "softmax")
    assert_matches_golden(source.text, original, tmp_path, M=33, N=1000)


@pytest.mark.tilelang
def test_lanes_that_keep_the_result_match_the_golden(tmp_path: Path) -> None:
    source = example("attention")
    text = edit(Lanes(), source, "row_max:16").text
    assert "# Keys beyond the end of the sequence get no weight." in text
    assert_matches_golden(text, source, tmp_path, S=100, D=48)


@pytest.mark.tilelang
def test_inlined_reductions_match_the_golden(tmp_path: Path) -> None:
    source = example("layernorm")
    text = edit(ReduceInline(), source, "y:32").text
    assert_matches_golden(text, source, tmp_path, M=33, N=1001)
