"""Polynomials in the place of exp, exp2, erf, tanh and sigmoid: where they go, and what they compute."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opratchet.edit.model import NotApplicable, Situation, Strategy, Target
from opratchet.edit.onechange import check_edit
from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.inline_math import InlineMath
from opratchet.edit.rewrites.lanes import Lanes
from opratchet.edit.rewrites.reduce_inline import ReduceInline
from opratchet.edit.source import KernelSource
from tests.edit.running import assert_matches_golden, load
from tests.edit.sources import changed, edit, example, kernel, outcome, why_not

# As docs/strategies.md says.
RELATIVE_ERROR = {"exp": 6e-6, "sigmoid": 6e-6}
LEAST = 1.7e-38  # results below this may be zero, as docs/strategies.md says
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "erf": np.vectorize(math.erf),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
}
Results = dict[str, np.ndarray]


def inlined(source: KernelSource) -> KernelSource:
    """The source with every call replaced, one edit after the other."""
    while isinstance(found := outcome(InlineMath(), source), list):
        source = KernelSource(found[0].text, source.kernel)
    return source


# Where the macro goes.


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "softmax",
            "y[i, j] = T.exp(x[i, j] - row_max[i])",
            "y[i, j] = inline_exp(x[i, j] - row_max[i])",
        ),
        (
            "gelu",
            "y[i, j] = 0.5 * x[i, j] * (1.0 + T.erf(x[i, j] * SQRT_HALF))",
            "y[i, j] = 0.5 * x[i, j] * (1.0 + inline_erf(x[i, j] * SQRT_HALF))",
        ),
    ],
)
def test_only_the_call_changes_and_a_macro_stands_before_the_kernel(
    name: str, before: str, after: str
) -> None:
    source = example(name)
    text = edit(InlineMath(), source).text
    gone, came = changed(source, text)
    assert gone == [before]
    assert came[-1] == after
    macro = re.search(
        r"    @T\.macro\n    def inline_\w+\(x\):\n(        .+\n)+\n    @T\.prim", text
    )
    assert macro is not None
    assert "T.exp(" not in macro[0] and "T.erf(" not in macro[0]
    check_edit(source.text, text, name, f"golden_{name}")


def test_each_call_is_an_edit_of_its_own_and_the_macro_is_shared() -> None:
    source = example("attention")
    found = outcome(InlineMath(), source)
    assert isinstance(found, list)
    assert [one.key for one in found] == ["exp:p", "exp:rescale"]
    assert found[0].text.count("inline_exp(") == found[1].text.count("inline_exp(") == 2
    both = inlined(source).text
    assert both.count("def inline_exp(") == 1 and both.count("inline_exp(") == 3


def test_a_name_that_is_taken_is_left_alone() -> None:
    text = kernel("for i in T.serial(N):\n    Y[0, i] = T.tanh(X[0, i])").text
    source = KernelSource(f"{text}\n\ninline_tanh = 1\n", "op")
    assert "Y[0, i] = inline_tanh_2(X[0, i])" in edit(InlineMath(), source).text


def test_the_macro_uses_the_name_of_the_module_that_the_call_uses() -> None:
    source = kernel("for i in T.serial(N):\n    Y[0, i] = tilelang.language.exp2(X[0, i])")
    macro = edit(InlineMath(), source).text.partition("@tilelang.language.macro")[2]
    assert "T." not in macro.partition("@T.prim_func")[0]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for i in T.serial(N):\n    Y[0, i] = X[0, i]", "no loop calls"),
        ("Y[0, 0] = T.exp(X[0, 0])", "no loop calls"),
        ("for i in T.serial(N):\n    Y[0, i] = X[0, i] * T.exp(N)", "no loop calls"),
        ("for i in T.Parallel(N):\n    Y[0, i] = T.exp(X[0, i])", "T.Parallel"),
        (
            "for i in T.serial(N):\n    Y[0, i] = T.if_then_else(i < 3, T.exp(X[0, i]), 0.0)",
            "on a condition",
        ),
        (
            'h = T.alloc_local((N,), "float16")\nfor i in T.serial(N):\n    h[i] = T.exp(h[i])',
            "float16",
        ),
    ],
)
def test_refuses(body: str, why: str) -> None:
    assert why in why_not(InlineMath(), kernel(body))


def test_refuses_a_kernel_that_has_no_factory() -> None:
    text = kernel("for i in T.serial(N):\n    Y[0, i] = T.exp(X[0, i])").text
    assert "factory" in why_not(InlineMath(), KernelSource(text, "main"))


def test_refuses_a_target_with_a_vector_unit_of_its_own() -> None:
    npu = Target("tilelang-ascend")
    found = InlineMath().edits(Situation(example("softmax"), npu))
    assert isinstance(found, NotApplicable) and "vector instructions" in found.why


# What it computes, on the real TileLang.


def every_function(flags: str) -> KernelSource:
    """One loop a function, over the same input."""
    outputs = ", ".join(f"{name.upper()}: T.Tensor((N,), dtype)" for name in FUNCTIONS)
    loops = [
        f"            for i in T.serial(N):\n                {name.upper()}[i] = T.{name}(X[i])"
        for name in FUNCTIONS
    ]
    head = f"""import tilelang
import tilelang.language as T


@tilelang.jit(target="c", execution_backend="cython", compile_flags={flags})
def op(N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), {outputs}):
        with T.Kernel(1) as bx:
"""
    return KernelSource(head + "\n".join(loops) + "\n\n    return main\n", "op")


def allowed(name: str) -> float:
    return RELATIVE_ERROR.get(name, 1e-6)


def samples() -> np.ndarray:
    random = np.random.default_rng(0)
    steps = [np.linspace(-130, 130, 60_000), np.linspace(-9, 9, 20_000)]
    sizes = 10.0 ** random.uniform(-30, 2, 10_000)
    limits = [0.0, -0.0, -87.33, 88.72, 88.73, 127.99, 128.0, 1e30, -1e30, 3e38, -3e38]
    special = [math.inf, -math.inf, math.nan, -math.nan]
    return np.concatenate([*steps, sizes, -sizes, limits, special]).astype(np.float32)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, Results, str]:
    """Samples, what the macros give for them, and what g++ says it vectorised."""
    import tilelang
    import torch

    tilelang.disable_cache()
    folder = tmp_path_factory.mktemp("inline_math")
    notes = folder / "notes.txt"
    flags = f'["-march=native", "-O3", "-fopt-info-vec-optimized={notes}"]'
    factory = load(inlined(every_function(flags)), folder).op
    x = samples()
    out = {name: torch.full((len(x),), 0.5) for name in FUNCTIONS}
    factory(len(x))(torch.from_numpy(x), *out.values())
    return x, {name: one.numpy() for name, one in out.items()}, notes.read_text(encoding="utf-8")


@pytest.mark.tilelang
@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error_of_all_results_that_are_not_tiny(
    name: str, computed: tuple[np.ndarray, Results, str]
) -> None:
    x, results, _ = computed
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        expected = FUNCTIONS[name](x.astype(np.float64))
        normal = np.isfinite(expected.astype(np.float32)) & (np.abs(expected) >= LEAST)
    assert normal.sum() > 80_000
    np.testing.assert_allclose(results[name][normal], expected[normal], rtol=allowed(name), atol=0)


@pytest.mark.tilelang
@pytest.mark.parametrize("name", FUNCTIONS)
def test_limits_infinities_and_nan(name: str, computed: tuple[np.ndarray, Results, str]) -> None:
    x, results, _ = computed
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        expected = FUNCTIONS[name](x.astype(np.float64)).astype(np.float32)
    found = results[name]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))
    tiny = np.abs(expected) < LEAST
    assert np.abs(found[tiny]).max() <= LEAST * (1 + allowed(name))
    assert found[np.isneginf(x)] == pytest.approx(expected[np.isneginf(x)], rel=allowed(name))


@pytest.mark.tilelang
def test_the_c_compiler_vectorises_every_function(
    computed: tuple[np.ndarray, Results, str],
) -> None:
    lines = set(re.findall(r":(\d+):\d+: optimized: loop vectorized", computed[2]))
    assert len(lines) == len(FUNCTIONS)


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("softmax", {"M": 33, "N": 1000}),
        ("gelu", {"M": 33, "N": 1000}),
        ("attention", {"S": 100, "D": 48}),
    ],
)
def test_the_examples_match_their_golden(name: str, shape: dict[str, int], tmp_path: Path) -> None:
    source = example(name)
    assert_matches_golden(inlined(source).text, source, tmp_path, **shape)


CHAINS: list[tuple[str, tuple[tuple[Strategy, str], ...]]] = [
    ("gelu", ((DropCopyIn(), ""), (DropCopyOut(), ""), (InlineMath(), ""))),
    ("gelu", ((InlineMath(), ""), (DropCopyIn(), ""), (DropCopyOut(), ""))),
    ("softmax", ((Lanes(), "row_max:16"), (InlineMath(), ""), (Lanes(), "row_sum:8"))),
]


@pytest.mark.tilelang
@pytest.mark.parametrize(("name", "chain"), CHAINS)
def test_chains_with_other_rewrites(
    name: str, chain: tuple[tuple[Strategy, str], ...], tmp_path: Path
) -> None:
    original = source = example(name)
    for strategy, key in chain:
        source = KernelSource(edit(strategy, source, key).text, name)
    assert_matches_golden(source.text, original, tmp_path, M=9, N=300)


def test_a_call_that_a_reduction_took_in_is_found() -> None:
    source = kernel("""
y = T.alloc_local((block_M, N), dtype)
s = T.alloc_local((block_M,), dtype)
for i, j in T.grid(block_M, N):
    y[i, j] = T.exp(X[i, j])
T.reduce_sum(y, s, dim=1)
T.copy(s, Y[0, 0])
""")
    reduced = KernelSource(edit(ReduceInline(), source, "y:8").text, "op")
    _, came = changed(reduced, inlined(reduced).text)
    assert "lanes[lane] += inline_exp(X[i, j * 8 + lane])" in came


def test_a_call_that_was_replaced_is_no_obstacle_to_other_rewrites() -> None:
    source = kernel("""
y = T.alloc_local((block_M, N), dtype)
s = T.alloc_local((block_M,), dtype)
for i, j in T.grid(block_M, N):
    y[i, j] = T.exp(X[i, j])
T.reduce_sum(y, s, dim=1)
T.copy(s, Y[0, 0])
""")
    made = KernelSource(edit(InlineMath(), source).text, "op")
    _, came = changed(made, edit(ReduceInline(), made, "y:8").text)
    assert "lanes[lane] += inline_exp(X[i, j * 8 + lane])" in came
