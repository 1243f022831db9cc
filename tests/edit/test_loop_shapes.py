"""Matrix products and loop nests: what the rewrites write, that it means the same, and when they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.edit.model import NotApplicable, Situation, Strategy, Target
from opratchet.edit.rewrites.block_order import BlockOrder
from opratchet.edit.rewrites.expand_gemm import ExpandGemm
from opratchet.edit.rewrites.interchange import Interchange
from opratchet.edit.rewrites.local_accumulator import LocalAccumulator
from opratchet.edit.rewrites.register_tile import TILES, RegisterTile
from opratchet.edit.source import KernelSource
from tests.edit.evaluating import evaluate
from tests.edit.running import assert_matches_golden
from tests.edit.sources import changed, edit, example, kernel, outcome, why_not

MATRICES = "A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype), C: T.Tensor((M, M), dtype)"
PRODUCT = "for {} in T.grid({}):\n    C[i, j] += A[i, k] * B[k, j]"
EXTENT = {"i": "M", "k": "N", "j": "M"}


def product(order: str) -> KernelSource:
    """C += A @ B as a nest in an order of its loops, straight on the tensors."""
    extents = ", ".join(EXTENT[name] for name in order)
    return kernel(PRODUCT.format(", ".join(order), extents), MATRICES)


def results(source: KernelSource, text: str, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """C before and after an edit, from the same A, B and C."""
    random = np.random.default_rng(m * 100 + n)
    a, b, c = random.normal(size=(m, n)), random.normal(size=(n, m)), random.normal(size=(m, m))
    before, after = c.copy(), c.copy()
    evaluate(source, {"M": m, "N": n}, a, b, before)
    evaluate(KernelSource(text, "op"), {"M": m, "N": n}, a, b, after)
    return before, after


def test_expand_gemm_writes_the_loops_out() -> None:
    source = example("gemm")
    gone, came = changed(source, edit(ExpandGemm(), source, "c:kij").text)
    assert gone == ["T.gemm(a, b, c)"]
    assert came == [
        "for k, i, j in T.grid(block_K, block_M, block_N):",
        "c[i, j] += a[i, k] * b[k, j]",
    ]


def test_expand_gemm_turns_a_transposed_operand_round() -> None:
    source = example("attention")
    gone, came = changed(source, edit(ExpandGemm(), source, "p:ikj").text)
    assert gone == ["T.gemm(q, k, p, transpose_B=True)"]
    assert came == [
        "k_t = T.alloc_local((D, block_N), dtype)",
        "for k_2, j in T.grid(D, block_N):",
        "k_t[k_2, j] = k[j, k_2]",
        "for i, k_2, j in T.grid(block_M, D, block_N):",
        "p[i, j] += q[i, k_2] * k_t[k_2, j]",
    ]


def test_register_tile_of_a_call() -> None:
    source = example("gemm")
    gone, came = changed(source, edit(RegisterTile(), source, "c:2x8").text)
    assert gone == ["T.gemm(a, b, c)"]
    assert came == [
        "for i, k in T.grid(block_M // 2, block_K // 8):",
        "for j in T.serial(block_N):",
        "for r in T.unroll(2):",
        "for s in T.unroll(8):",
        "c[i * 2 + r, j] += a[i * 2 + r, k * 8 + s] * b[k * 8 + s, j]",
    ]


def test_register_tile_offers_only_tiles_that_divide_known_blocks() -> None:
    source = example("gemm")
    text = source.text.replace("block_M=64", "block_M=6").replace("block_K=32", "block_K=12")
    found = outcome(RegisterTile(), KernelSource(text, "gemm"))
    assert isinstance(found, list)
    assert [one.key for one in found] == ["c:2x4"]


@settings(deadline=None, max_examples=25)
@given(
    order=st.permutations("ikj").map("".join),
    tile=st.sampled_from(list(TILES)),
    m=st.integers(1, 9),
    n=st.integers(1, 17),
)
def test_register_tiles_compute_what_is_left_over(
    order: str, tile: tuple[int, int], m: int, n: int
) -> None:
    source = product(order)
    text = edit(RegisterTile(), source, f"C:{tile[0]}x{tile[1]}").text
    before, after = results(source, text, m, n)
    # Each element is summed in the same order, so nothing may differ at all.
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("call", ["a, a, c", "a, a, c, transpose_A=True", "a, a, c, False, True"])
@pytest.mark.parametrize("strategy", [ExpandGemm(), RegisterTile()])
def test_products_of_every_transposition(strategy: Strategy, call: str) -> None:
    source = kernel(
        "a = T.alloc_local((8, 8), dtype)\nc = T.alloc_local((8, 8), dtype)\n"
        f"T.copy(A[0, 0], a)\nT.clear(c)\nT.gemm({call})\nT.copy(c, C[0, 0])",
        MATRICES,
    )
    found = outcome(strategy, source)
    assert isinstance(found, list)
    for one in found:
        before, after = results(source, one.text, 8, 8)
        np.testing.assert_allclose(after, before, rtol=1e-12, err_msg=one.key)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("T.gemm(A, B, C)", "does not work on whole local buffers"),
        (PRODUCT.format("i, k, j", "M, N, M").replace("B[k, j]", "B[j, k]"), "no axis along which"),
        (
            PRODUCT.format("i, k, j", "M, N, M").replace("C[i, j] +=", "C[i, i] +="),
            "no matrix product",
        ),
        (
            PRODUCT.format("i, k, j", "M, N, M").replace("C[i, j] +=", "C[i, j] ="),
            "no matrix product",
        ),
        (PRODUCT.format("i, k, j", "M, N, M") + "  # here", "a comment in the product"),
    ],
)
def test_register_tile_says_why_it_does_not_apply(body: str, why: str) -> None:
    assert why in why_not(RegisterTile(), kernel(body, MATRICES))


def test_interchange_moves_the_strided_loop_out() -> None:
    source = kernel("""
for j, i in T.grid(N, M):
    # Copy.
    Y[i, j] = X[i, j]
""")
    gone, came = changed(source, edit(Interchange(), source).text)
    assert gone == ["for j, i in T.grid(N, M):"]
    assert came == ["for i, j in T.grid(M, N):"]


def test_interchange_of_nested_loops_keeps_each_head() -> None:
    source = product("ikj")
    body = (
        "for i in T.serial(M):\n    for k, j in T.grid(N, M):\n        C[i, j] += A[i, k] * B[k, j]"
    )
    nested = kernel(body, MATRICES)
    text = edit(Interchange(), nested, "kij").text
    assert changed(nested, text)[1] == ["for k in T.serial(N):", "for i, j in T.grid(M, M):"]
    before, after = results(source, text, 5, 7)
    np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for i, j in T.grid(M, N):\n    Y[i, j] = X[i, j]", "would not run along memory"),
        ("for j, i in T.grid(N, M):\n    Y[i, j] = Y[i, j - 1]", "read other elements of `Y`"),
        ("for j, i in T.grid(N, M):\n    Y[i, 0] = X[i, j]", "an element of `Y` twice"),
        ("for j in T.serial(N):\n    for i in T.serial(j):\n        Y[i, j] = X[i, j]", "extent"),
        ("for j, i in T.grid(N, M):\n    T.copy(X[i, j], Y[i, j])", "more than set one element"),
    ],
)
def test_interchange_says_why_it_does_not_apply(body: str, why: str) -> None:
    assert why in why_not(Interchange(), kernel(body))


def test_local_accumulator_stores_once() -> None:
    source = product("ijk")
    gone, came = changed(source, edit(LocalAccumulator(), source).text)
    assert gone == ["for i, j, k in T.grid(M, M, N):", "C[i, j] += A[i, k] * B[k, j]"]
    assert came == [
        "C_acc = T.alloc_local((1,), dtype)",
        "for i, j in T.grid(M, M):",
        "C_acc[0] = C[i, j]",
        "for k in T.serial(N):",
        "C_acc[0] += A[i, k] * B[k, j]",
        "C[i, j] = C_acc[0]",
    ]


def test_local_accumulator_beside_another_statement_computes_the_same() -> None:
    source = kernel(
        "total = T.alloc_local((2,), dtype)\n"
        "total[1] = 0.0\n"
        "for j in T.serial(M):\n"
        "    C[0, j] = A[j, 0]\n"
        "    total[1] = total[1] + C[0, j]\n"
        "C[0, 0] = total[1]",
        MATRICES,
    )
    text = edit(LocalAccumulator(), source).text
    assert "total[1] = total_acc[0]" in text
    before, after = results(source, text, 6, 2)
    np.testing.assert_array_equal(after, before)


def test_the_same_change_in_two_places_has_two_titles() -> None:
    body = "for i, j in T.grid(M, M):\n    C[0, i] += A[j, i]\n"
    source = kernel(body + "T.clear(C)\n" + body, MATRICES)
    for strategy in (LocalAccumulator(), Interchange()):
        found = outcome(strategy, source)
        assert isinstance(found, list), found
        lines = [int(one.title.split(", line ")[1]) for one in found]
        assert len(lines) == 2
        begun = [source.text.splitlines()[line - 1].split()[0] for line in lines]
        assert begun == ["C[0," if strategy.id == "local-accumulator" else "for"] * 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "for i, j in T.grid(M, M):\n    C[i, 0] += A[i, j]\n    C[i, j] = 1.0",
            "uses it otherwise",
        ),
        ("for i, j in T.grid(M, M):\n    C[i, j] += A[i, j]", "no inner loop accumulates"),
        ("for i, j in T.grid(M, M):\n    # why\n    C[i, 0] += A[i, j]", "a comment in the loop"),
    ],
)
def test_local_accumulator_says_why_it_does_not_apply(body: str, why: str) -> None:
    assert why in why_not(LocalAccumulator(), kernel(body, MATRICES))


@pytest.mark.tilelang
@pytest.mark.parametrize(
    "chain",
    [
        [(RegisterTile(), "c:4x4")],
        [(ExpandGemm(), "c:ikj"), (Interchange(), "kij"), (RegisterTile(), "c:8x4")],
    ],
)
def test_products_match_the_golden(chain: list[tuple[Strategy, str]], tmp_path: Path) -> None:
    source = original = example("gemm")
    for strategy, key in chain:
        source = KernelSource(edit(strategy, source, key).text, "gemm")
    assert_matches_golden(source.text, original, tmp_path, M=100, N=75, K=50)


@pytest.mark.tilelang
def test_both_products_of_attention_match_the_golden(tmp_path: Path) -> None:
    original = example("attention")
    source = KernelSource(edit(RegisterTile(), original, "p:4x4").text, "attention")
    text = edit(RegisterTile(), source, "acc:2x4").text
    assert "# Keys beyond the end of the sequence get no weight." in text
    # 50 is no multiple of four: the sum over D has a remainder.
    assert_matches_golden(text, original, tmp_path, S=100, D=50)


@pytest.mark.tilelang
def test_local_accumulators_match_the_golden(tmp_path: Path) -> None:
    original = example("rmsnorm")
    text = original.text.replace(
        "T.reduce_sum(y, sum_sq, dim=1)",
        "T.clear(sum_sq)\n            for i, j in T.grid(block_M, N):\n"
        "                sum_sq[i] += y[i, j]",
    )
    edited = edit(LocalAccumulator(), KernelSource(text, "rmsnorm")).text
    assert_matches_golden(edited, original, tmp_path, M=33, N=1000)


def test_block_order_swaps_extents_and_names_of_the_grid() -> None:
    source = example("gelu")
    one = edit(BlockOrder(), source)
    gone, came = changed(source, one.text)
    assert gone == ["with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):"]
    assert came == ["with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N)) as (by, bx):"]
    back = edit(BlockOrder(), KernelSource(one.text, "gelu"))
    assert back.text == source.text
    assert one.prior > 1.1 > back.prior


@pytest.mark.tilelang
@pytest.mark.parametrize("name", ["gelu", "gemm"])
def test_blocks_in_another_order_match_the_golden(tmp_path: Path, name: str) -> None:
    source = example(name)
    shape = {"gelu": {"M": 33, "N": 1000}, "gemm": {"M": 65, "N": 72, "K": 40}}[name]
    assert_matches_golden(edit(BlockOrder(), source).text, source, tmp_path, **shape)


def test_block_order_needs_two_axes_and_blocks_that_wait_for_each_other() -> None:
    assert "two axes" in why_not(BlockOrder(), example("softmax"))
    found = BlockOrder().edits(Situation(example("gelu"), Target("tilelang-npuir")))
    assert isinstance(found, NotApplicable)
    assert "side by side" in found.why
