"""The views of TileLang statements: what is recognised, and what is rightly left alone."""

from __future__ import annotations

import libcst as cst
import pytest

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.source import code
from tests.edit.sources import example


def line(text: str) -> cst.CSTNode:
    return cst.parse_statement(text)


def test_an_allocation_tells_name_dims_dtype_and_scope() -> None:
    view = tl.alloc(line("x = T.alloc_shared((block_M, N // 2), 'float16')"))
    assert view is not None
    assert (view.name, view.dims, view.dtype, view.scope) == (
        "x",
        ("block_M", "N // 2"),
        "'float16'",
        "shared",
    )


@pytest.mark.parametrize("text", ["x = T.alloc_local(shape, dtype)", "x = y", "x = T.exp(1.0)"])
def test_what_is_no_plain_allocation_is_none(text: str) -> None:
    assert tl.alloc(line(text)) is None


@pytest.mark.parametrize(
    ("head", "kind", "targets", "extents"),
    [
        ("for i, j in T.grid(block_M, N)", "grid", ("i", "j"), ["block_M", "N"]),
        ("for i in T.serial(4)", "serial", ("i",), ["4"]),
        ("for i in T.serial(2, 4)", "serial", ("i",), ["4"]),
        ("for i, j in T.Parallel(M, 8)", "Parallel", ("i", "j"), ["M", "8"]),
        ("for l in T.vectorized(16)", "vectorized", ("l",), ["16"]),
        ("for l in T.unroll(16)", "unroll", ("l",), ["16"]),
        (
            "for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2)",
            "Pipelined",
            ("k",),
            ["T.ceildiv(K, 32)"],
        ),
        ("for i in range(3)", "range", ("i",), ["3"]),
    ],
)
def test_a_loop_tells_its_kind_variables_and_extents(
    head: str, kind: str, targets: tuple[str, ...], extents: list[str]
) -> None:
    view = tl.loop(line(f"{head}:\n    pass\n"))
    assert view is not None
    assert (view.kind, view.targets, [code(e) for e in view.extents]) == (kind, targets, extents)
    assert set(view.keywords) == ({"num_stages"} if kind == "Pipelined" else set())
    assert (view.start is not None) == ("2, 4" in head)


@pytest.mark.parametrize(
    "head",
    ["for i in items", "for i in T.grid(2, 3)", "for i, (j, k) in T.grid(2, 3)", "while True"],
)
def test_other_loops_are_none(head: str) -> None:
    assert tl.loop(line(f"{head}:\n    pass\n")) is None


def test_a_copy_tells_both_regions() -> None:
    view = tl.copy(line("T.copy(X[by * block_M, 0], x)"))
    assert view is not None and view.source.index is not None
    assert (view.source.base, [code(part) for part in view.source.index]) == (
        "X",
        ["by * block_M", "0"],
    )
    assert view.target.base == "x" and view.target.whole


def test_a_sliced_region_has_no_plain_index() -> None:
    view = tl.copy(line("T.copy(X[0:4, k], x)"))
    assert view is not None
    assert view.source.index is None and not view.source.whole


@pytest.mark.parametrize(
    ("text", "op", "dim", "clear"),
    [
        ("T.reduce_sum(x, s, dim=1)", "sum", 1, True),
        ("T.reduce_max(x, s, 0, False)", "max", 0, False),
        ("T.reduce_absmax(x, s)", "absmax", -1, True),
        ("T.reduce_min(x, s, dim=-1, clear=False)", "min", -1, False),
    ],
)
def test_a_reduction_tells_operation_axis_and_clear(
    text: str, op: str, dim: int, clear: bool
) -> None:
    view = tl.reduce(line(text))
    assert view is not None
    assert (view.op, view.dim, view.clear, view.source.base, view.target.base) == (
        op,
        dim,
        clear,
        "x",
        "s",
    )


def test_a_reduction_over_an_unknown_axis_is_none() -> None:
    assert tl.reduce(line("T.reduce_sum(x, s, dim=axis)")) is None


def test_a_product_tells_its_transpositions() -> None:
    view = tl.gemm(line("T.gemm(q, k, p, transpose_B=True)"))
    assert view is not None
    assert (view.a.base, view.b.base, view.c.base) == ("q", "k", "p")
    assert (view.transpose_a, view.transpose_b, view.clear) == (False, True, False)


def test_clear_and_fill() -> None:
    cleared, filled = tl.fill(line("T.clear(acc)")), tl.fill(line("T.fill(m, -1.0)"))
    assert cleared is not None and cleared.value is None
    assert filled is not None and filled.value is not None and code(filled.value) == "-1.0"


def test_an_update_tells_its_operator() -> None:
    view = tl.assign(line("acc[i] += a * b"))
    assert view is not None
    assert (view.target.base, view.operator, code(view.value)) == ("acc", "+", "a * b")


def test_the_kernel_of_an_example_is_understood() -> None:
    kernel = tl.Kernel(example("attention"))
    assert list(kernel.parameters) == ["Q", "K", "V", "Out"]
    assert kernel.parameters["Q"].dims == ("S", "D")
    assert kernel.allocs["p"].dims == ("block_M", "block_N")
    assert [loop.targets for loop in kernel.loops_around(kernel.find(tl.gemm)[0].node)] == [("kb",)]
    assert {"bx", "kb", "d", "acc"} <= kernel.values
    assert not {"S", "block_M", "scale", "math"} & kernel.values
