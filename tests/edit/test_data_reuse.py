"""The rewrites that compute or fetch once what is used often."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.edit.model import Strategy
from opratchet.edit.rewrites.common_expression import CommonExpression
from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.hoist_copy import HoistCopy
from opratchet.edit.rewrites.hoist_expression import HoistExpression
from opratchet.edit.rewrites.reciprocal import Reciprocal
from opratchet.edit.source import KernelSource
from tests.edit.running import assert_matches_golden, run
from tests.edit.sources import changed, edit, example, kernel, outcome, why_not

SCALED = """
w = T.alloc_local((N,), dtype)
for i in T.serial(block_M):
    # The weights.
    T.copy(W[0], w)
    for j in T.serial(N):
        Y[bx * block_M + i, j] = X[bx * block_M + i, j] * w[j]
"""
SCALED_PARAMETERS = (
    "X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)"
)


def test_reciprocal_divides_once_a_row() -> None:
    source = example("softmax")
    gone, came = changed(source, edit(Reciprocal(), source).text)
    assert gone == ["for i, j in T.grid(block_M, N):", "y[i, j] = y[i, j] / row_sum[i]"]
    assert came == [
        "for i in T.serial(block_M):",
        "inv_row_sum = 1.0 / row_sum[i]",
        "for j in T.serial(N):",
        "y[i, j] = y[i, j] * inv_row_sum",
    ]


def test_reciprocal_of_a_constant() -> None:
    source = example("rmsnorm")
    gone, came = changed(source, edit(Reciprocal(), source, "sum_sq[i]/N").text)
    assert gone == ["rms[i] = T.sqrt(sum_sq[i] / N + eps)"]
    assert came == ["rms[i] = T.sqrt(sum_sq[i] * (1.0 / N) + eps)"]


def test_reciprocal_takes_all_divisions_by_one_value_together() -> None:
    source = kernel("""
s = T.alloc_local((block_M,), dtype)
for i, j in T.grid(block_M, N):
    Y[i, j] = X[i, j] / (s[i] + 1.0) + (X[i, 0] - X[i, j]) / (s[i] + 1.0)
""")
    _, came = changed(source, edit(Reciprocal(), source).text)
    name, value = came[1].split(" = ")
    assert value == "1.0 / (s[i] + 1.0)"
    assert came[3] == f"Y[i, j] = X[i, j] * {name} + (X[i, 0] - X[i, j]) * {name}"


@pytest.mark.parametrize(
    "line", ["Y[i, j] = X[i, j] / X[i, j]", "Y[i, j] = X[i, j] // 2", "Y[i, j] = 1.0 / N"]
)
def test_reciprocal_refuses(line: str) -> None:
    source = kernel(f"for i, j in T.grid(block_M, N):\n    {line}\n")
    assert "nothing is divided" in why_not(Reciprocal(), source)


def test_reciprocal_refuses_a_divisor_that_the_loop_changes() -> None:
    source = kernel("""
s = T.alloc_local((block_M,), dtype)
for i, j in T.grid(block_M, N):
    Y[i, j] = X[i, j] / s[i]
    s[i] = s[i] + 1.0
""")
    assert "nothing is divided" in why_not(Reciprocal(), source)


def test_reciprocal_refuses_integers() -> None:
    source = kernel(
        "s = T.alloc_local((block_M,), 'int32')\nfor i in T.serial(4):\n    s[i] = s[i] / N\n"
    )
    assert "integers" in why_not(Reciprocal(), source)


def test_hoist_expression_splits_the_nest() -> None:
    source = example("layernorm")
    gone, came = changed(source, edit(HoistExpression(), source).text)
    assert gone == ["for i, j in T.grid(block_M, N):", "x[i, j] = x[i, j] - row_sum[i] / N"]
    assert came == [
        "for i in T.serial(block_M):",
        "row_sum_over_N = row_sum[i] / N",
        "for j in T.serial(N):",
        "x[i, j] = x[i, j] - row_sum_over_N",
    ]


def test_hoist_expression_goes_in_front_of_a_loop_that_it_does_not_need_at_all() -> None:
    source = kernel("""
s = T.alloc_local((1,), dtype)
# All elements.
for i, j in T.grid(block_M, N):
    Y[i, j] = X[i, j] * T.exp(s[0])
""")
    text = edit(HoistExpression(), source).text
    assert (
        """
            exp_s = T.exp(s[0])
            # All elements.
            for i, j in T.grid(block_M, N):
                Y[i, j] = X[i, j] * exp_s
"""
        in text
    )


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.grid(block_M, N):\n    Y[i, j] = X[i, j] * T.exp(s[j])",
        "for i, j in T.grid(block_M, N):\n    Y[i, j] = T.exp(s[i])\n    s[i] = 0.0",
        "for i, j in T.grid(block_M, N):\n    Y[i, j] = helper(s[i])",
        "for i, j in T.Parallel(block_M, N):\n    Y[i, j] = T.exp(s[i])",
        "for i, j in T.grid(block_M, N):\n    Y[i, j] = X[i, bx * block_M]",
    ],
)
def test_hoist_expression_refuses(body: str) -> None:
    source = kernel(f"s = T.alloc_local((block_M,), dtype)\n{body}\n")
    assert "no loop computes" in why_not(HoistExpression(), source)


def test_hoist_copy_fetches_before_the_loop() -> None:
    source = kernel(SCALED, SCALED_PARAMETERS)
    text = edit(HoistCopy(), source).text
    assert (
        """
            T.copy(W[0], w)
            for i in T.serial(block_M):
                # The weights.
                for j in T.serial(N):
"""
        in text
    )


@pytest.mark.parametrize(
    ("copy", "why"),
    [
        ("T.copy(W[i], w)", "depends on the loop"),
        ("T.copy(W[0], w)\n    T.clear(w)", "written elsewhere"),
        ("T.copy(W[0], w[0])", "only a part"),
    ],
)
def test_hoist_copy_refuses(copy: str, why: str) -> None:
    body = SCALED.replace("# The weights.\n    T.copy(W[0], w)", copy)
    assert why in why_not(HoistCopy(), kernel(body, SCALED_PARAMETERS))


def test_common_expression_names_a_repeated_global_read() -> None:
    gelu = example("gelu")
    source = KernelSource(edit(DropCopyIn(), gelu).text, "gelu")
    gone, came = changed(source, edit(CommonExpression(), source).text)
    read = "X[by * block_M + i, bx * block_N + j]"
    assert gone == [f"y[i, j] = 0.5 * {read} * (1.0 + T.erf({read} * SQRT_HALF))"]
    assert came == [f"x = {read}", "y[i, j] = 0.5 * x * (1.0 + T.erf(x * SQRT_HALF))"]


def test_common_expression_spans_statements_until_something_is_written() -> None:
    source = kernel("""
s = T.alloc_local((block_M,), dtype)
t = T.alloc_local((block_M,), dtype)
for i in T.serial(block_M):
    t[i] = T.exp(s[i])
    # Once more.
    Y[i, 0] = T.exp(s[i]) * 2.0
    s[i] = T.exp(s[i])
    Y[i, 1] = T.exp(s[i])
""")
    _, came = changed(source, edit(CommonExpression(), source).text)
    assert came == ["exp_s = T.exp(s[i])", "t[i] = exp_s", "Y[i, 0] = exp_s * 2.0", "s[i] = exp_s"]


def test_common_expression_takes_the_largest() -> None:
    source = kernel("""
for i, j in T.grid(block_M, N):
    Y[i, j] = (X[i, j] - T.exp(X[i, j] / N)) * (X[i, j] - T.exp(X[i, j] / N))
""")
    _, came = changed(source, edit(CommonExpression(), source, "X[i,j]-").text)
    name = came[0].split(" = ")[0]
    assert came == [f"{name} = X[i, j] - T.exp(X[i, j] / N)", f"Y[i, j] = {name} * {name}"]
    found = outcome(CommonExpression(), source)
    assert isinstance(found, list)
    assert not any(one.key.startswith("T.exp") for one in found)


def test_common_expression_leaves_cheap_ones() -> None:
    assert "no costly" in why_not(CommonExpression(), example("rmsnorm"))


@pytest.mark.parametrize(
    ("name", "strategy"),
    [("gemm", Reciprocal()), ("gemm", HoistExpression()), ("gelu", HoistCopy())],
)
def test_reasons_are_given_where_there_is_nothing_to_do(name: str, strategy: Strategy) -> None:
    assert len(why_not(strategy, example(name)).split()) > 4


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("name", "strategy", "key"),
    [
        ("softmax", Reciprocal(), ""),
        ("layernorm", HoistExpression(), ""),
        ("rmsnorm", Reciprocal(), "sum"),
    ],
)
def test_the_result_matches_the_golden(
    name: str, strategy: Strategy, key: str, tmp_path: Path
) -> None:
    source = example(name)
    assert_matches_golden(edit(strategy, source, key).text, source, tmp_path, M=33, N=100)


@pytest.mark.tilelang
def test_edits_one_after_another_match_the_golden(tmp_path: Path) -> None:
    source = example("gelu")
    text = source.text
    for strategy in (DropCopyIn(), CommonExpression(), DropCopyOut()):
        text = edit(strategy, KernelSource(text, "gelu")).text
    assert "alloc_local" not in text
    assert_matches_golden(text, source, tmp_path, M=33, N=300)


@pytest.mark.tilelang
def test_a_hoisted_copy_gives_the_same_result(tmp_path: Path) -> None:
    import torch

    source = kernel(SCALED, SCALED_PARAMETERS)
    edited = KernelSource(edit(HoistCopy(), source).text, "op")
    (x, w), y = run(edited, tmp_path, M=33, N=100)
    torch.testing.assert_close(y, x * w)


def test_every_edit_of_every_example_has_a_key_of_its_own() -> None:
    strategies = (
        Reciprocal(),
        HoistExpression(),
        HoistCopy(),
        CommonExpression(),
        DropCopyIn(),
        DropCopyOut(),
    )
    for name in ("softmax", "rmsnorm", "layernorm", "gelu", "gemm", "attention"):
        found = [outcome(strategy, example(name)) for strategy in strategies]
        ids = [one.id for edits in found if isinstance(edits, list) for one in edits]
        assert len(ids) == len(set(ids))
