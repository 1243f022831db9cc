"""A rewrite at every place at once: what its diff shows, that it leaves nothing over, and that the result stays right."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.everywhere import (
    DropCopies,
    Everywhere,
    Reciprocals,
    RegisterTiles,
    SplitReductions,
)
from opratchet.edit.source import KernelSource
from tests.edit.running import assert_matches_golden
from tests.edit.sources import changed, edit, example, kernel, why_not


def test_every_copy_is_dropped_and_nothing_else_is_changed() -> None:
    source = example("layernorm")
    gone, came = changed(source, edit(DropCopies(), source).text)
    assert gone == [
        "w = T.alloc_local((N,), dtype)",
        "b = T.alloc_local((N,), dtype)",
        "T.copy(X[bx * block_M, 0], x)",
        "T.copy(W[0], w)",
        "T.copy(B[0], b)",
        "T.reduce_sum(x, row_sum, dim=1)",
        "x[i, j] = x[i, j] - row_sum[i] / N",
        "y[i, j] = x[i, j] / std[i] * w[j] + b[j]",
        "T.copy(y, Y[bx * block_M, 0])",
    ]
    # The sum over the buffer is written out over the tensor; then the buffer's second life begins.
    assert "lanes[lane] += X[bx * block_M + i, j * 16 + lane]" in came
    assert came[-2:] == [
        "x[i, j] = X[bx * block_M + i, j] - row_sum[i] / N",
        "Y[bx * block_M + i, j] = x[i, j] / std[i] * W[j] + B[j]",
    ]


def test_dropping_every_copy_leaves_none_to_drop() -> None:
    source = example("rmsnorm")
    after = KernelSource(edit(DropCopies(), source).text, "rmsnorm")
    for strategy in (DropCopyIn(), DropCopyOut()):
        assert "`y`" in why_not(strategy, after) or "no local buffer" in why_not(strategy, after)


def test_every_division_becomes_a_multiplication() -> None:
    source = example("rmsnorm")
    _gone, came = changed(source, edit(Reciprocals(), source).text)
    assert "rms[i] = T.sqrt(sum_sq[i] * (1.0 / N) + eps)" in came
    assert "inv_rms = 1.0 / rms[i]" in came


def test_every_reduction_is_split() -> None:
    source = example("softmax")
    gone, _came = changed(source, edit(SplitReductions(), source).text)
    assert gone == ["T.reduce_max(x, row_max, dim=1)", "T.reduce_sum(y, row_sum, dim=1)"]


def test_every_product_is_blocked() -> None:
    source = example("attention")
    gone, _came = changed(source, edit(RegisterTiles(), source).text)
    assert [line for line in gone if "T.gemm" in line] == [
        "T.gemm(q, k, p, transpose_B=True)",
        "T.gemm(p, v, acc)",
    ]


def test_one_place_alone_is_left_to_the_rewrite_itself() -> None:
    body = "x = T.alloc_local((block_M, N), dtype)\nT.copy(X[bx * block_M, 0], x)\nT.copy(x, Y[bx * block_M, 0])"
    assert "two places" in why_not(DropCopies(), kernel(body))


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("strategy", "name", "shape"),
    [
        (DropCopies(), "rmsnorm", {"M": 33, "N": 100}),
        (Reciprocals(), "layernorm", {"M": 33, "N": 100}),
        (SplitReductions(), "softmax", {"M": 33, "N": 100}),
        (RegisterTiles(), "attention", {"S": 50, "D": 48}),
    ],
)
def test_the_result_still_matches_the_golden(
    tmp_path: Path, strategy: Everywhere, name: str, shape: dict[str, int]
) -> None:
    source = example(name)
    assert_matches_golden(edit(strategy, source).text, source, tmp_path, **shape)
