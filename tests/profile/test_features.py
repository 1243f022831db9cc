"""What is read from a kernel's source: the shipped examples, and small kernels that show one thing each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opratchet.errors import BadInput
from opratchet.profile.features import Features, read_features

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(path: str, **arguments: object) -> Features:
    source = EXAMPLES / f"{path}.py"
    return read_features(source.read_text(encoding="utf-8"), source.stem, arguments)


def kernel(body: str, arguments: str = "M=64, N=128, block=4, dtype='float32'") -> Features:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    text = f"""\
import tilelang.language as T
LANES = 16
def factory({arguments}):
    half = N // 2
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block)) as bx:
{lines}
    return main
"""
    return read_features(text, "factory", {})


def marked(text: str) -> list[str]:
    return [str(mark) for mark in kernel(text).reductions]


# The shipped examples


def test_gemm() -> None:
    features = example("matmul/gemm/gemm", M=256, N=512, K=256)
    assert features.blocks == (512 // 64) * (256 // 64)
    assert features.buffers == {"a": 64 * 32 * 4, "b": 32 * 64 * 4, "c": 64 * 64 * 4}
    assert features.local_bytes == 32 * 1024
    assert features.stages == (2,)
    assert features.copies_in_loops == 2
    assert len(features.gemms) == 1
    assert not features.reductions and not features.divisions and not features.transcendentals
    assert not features.copy_through, "the tiles feed the product, they do not just pass through"


def test_softmax_has_two_reductions_an_exponential_and_a_division() -> None:
    features = example("activation/softmax/softmax", M=33, N=1000, dtype="float32")
    assert features.blocks == 9
    assert features.local_bytes == (2 * 4 * 1000 + 2 * 4) * 4
    assert [mark.what for mark in features.reductions] == ["T.reduce_max", "T.reduce_sum"]
    assert [mark.what for mark in features.transcendentals] == ["T.exp"]
    assert [mark.what for mark in features.divisions] == ["a division by `row_sum[i]`"]
    assert features.stages == () and features.copies_in_loops == 0


def test_rmsnorm_divides_in_its_inner_loop_only_once() -> None:
    """The division under the root runs once a row: it is no inner one."""
    features = example("norm/rmsnorm/rmsnorm", M=512, N=1024)
    assert [mark.what for mark in features.divisions] == ["a division by `rms[i]`"]
    assert features.copy_through == ("w",)


def test_gelu_copies_its_input_and_output_through() -> None:
    features = example("activation/gelu/gelu", M=128, N=1024)
    assert features.blocks == (1024 // 256) * (128 // 4)
    assert features.copy_through == ("x", "y")
    assert [mark.what for mark in features.transcendentals] == ["T.erf"]


def test_attention() -> None:
    features = example("attention/attention/attention", S=256, D=64)
    assert features.blocks == 8
    assert features.copies_in_loops == 3
    assert len(features.gemms) == 2
    assert len(features.reductions) == 2


def test_every_line_points_at_its_place() -> None:
    source = (EXAMPLES / "norm/layernorm/layernorm.py").read_text(encoding="utf-8").splitlines()
    features = example("norm/layernorm/layernorm", M=512, N=1024)
    assert features.reductions and features.divisions
    for mark in features.reductions:
        assert mark.what in source[mark.line - 1]
    for mark in features.divisions:
        assert "/" in source[mark.line - 1]


def test_the_facts_are_json() -> None:
    record = example("norm/layernorm/layernorm", M=512, N=1024).record()
    assert json.loads(json.dumps(record)) == record


# One thing each


def test_an_accumulation_along_the_innermost_loop_is_a_reduction() -> None:
    places = marked("for i, j in T.grid(block, N):\n    s[i] += X[i, j]")
    assert places == ["an accumulation into `s[i]` along `j` (line 9)"]
    assert marked(
        "for i in T.serial(block):\n    for j in T.serial(N):\n        s[i] = s[i] + X[i, j]"
    )


def test_independent_lanes_are_no_reduction() -> None:
    body = "for i, j, l in T.grid(block, N // LANES, LANES):\n    s[i, l] += X[i, j * LANES + l]"
    assert marked(body) == []


def test_a_reduction_along_the_first_axis_is_no_innermost_one() -> None:
    allocation = "x = T.alloc_local((block, N), dtype)\n"
    assert marked(allocation + "T.reduce_sum(x, s, dim=0)") == []
    assert marked(allocation + "T.reduce_sum(x, s, dim=1)") == ["T.reduce_sum (line 9)"]
    assert marked(allocation + "T.reduce_sum(x, s, -1)") == ["T.reduce_sum (line 9)"]
    assert marked(allocation + "T.reduce_sum(x, s)") == ["T.reduce_sum (line 9)"]


def test_a_division_in_an_index_is_none_of_a_kernels() -> None:
    features = kernel("for j in T.serial(N):\n    Y[bx, j / 2] = X[bx, j / 2]")
    assert features.divisions == ()


def test_buffer_sizes_follow_constants_arguments_and_dtypes() -> None:
    features = kernel(
        "a = T.alloc_local((block, half), dtype)\n"
        "b = T.alloc_local([LANES], 'float16')\n"
        "c = T.alloc_shared((N,), T.int8)\n"
        "d = T.alloc_local((unknown,), dtype)\n"
        "e = T.alloc_var('int64')"
    )
    assert features.buffers == {"a": 4 * 64 * 4, "b": 32, "c": 128, "d": 0, "e": 8}


def test_arguments_win_over_defaults() -> None:
    text = (EXAMPLES / "matmul/gemm/gemm.py").read_text(encoding="utf-8")
    shape = {"M": 256, "N": 256, "K": 256}
    assert read_features(text, "gemm", {**shape, "block_M": 128, "block_N": 32}).blocks == 2 * 8


def test_what_the_text_does_not_tell_is_unknown() -> None:
    text = (EXAMPLES / "norm/rmsnorm/rmsnorm.py").read_text(encoding="utf-8")
    features = read_features(text, "rmsnorm", {})
    assert features.blocks == 0
    assert features.buffers["x"] == 0


def test_a_value_that_is_computed_in_an_unknown_way_is_unknown() -> None:
    text = """\
def factory(M=64, block=4, /, *, dtype="float32"):
    size = block
    block = choose(block)
    @T.prim_func
    def main(X):
        a = T.alloc_local((size,), dtype)
        b = T.alloc_local((block,), dtype)
"""
    assert read_features(text, "factory", {}).buffers == {"a": 16, "b": 0}


def test_an_unknown_trip_count_still_counts_as_an_inner_loop() -> None:
    features = kernel("for j in T.serial(unknown):\n    Y[bx, j] = X[bx, j] / X[bx, 0]")
    assert len(features.divisions) == 1


def test_a_staged_buffer_that_is_used_twice_is_not_passing_through() -> None:
    once = (
        "x = T.alloc_local((N,), dtype)\nT.copy(X[bx, 0], x)\n"
        "for j in T.serial(N):\n    Y[bx, j] = x[j]"
    )
    assert kernel(once).copy_through == ("x",)
    assert kernel(f"{once}\nfor j in T.serial(N):\n    Y[bx, j] = x[j] + 1").copy_through == ()
    assert kernel(f"{once}\nT.reduce_sum(x, s)").copy_through == ()


def test_bad_sources_are_bad_input() -> None:
    with pytest.raises(BadInput, match="syntax") as error:
        read_features("def f(:", "f", {})
    assert error.value.where == "line 1"
    with pytest.raises(BadInput, match="`g`"):
        read_features("def f(): pass", "g", {})
