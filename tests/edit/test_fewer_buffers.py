"""The rewrites that save a buffer: what they change, what they refuse, and that the result is still right."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.edit.model import Strategy
from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.fuse_loops import FuseLoops
from opratchet.edit.rewrites.inline_buffer import InlineBuffer
from opratchet.edit.rewrites.keep_in_output import KeepInOutput
from opratchet.edit.rewrites.lanes import Lanes
from opratchet.edit.rewrites.merge_buffers import MergeBuffers
from opratchet.edit.source import KernelSource
from tests.edit.running import assert_matches_golden, run
from tests.edit.sources import changed, edit, example, kernel, outcome, why_not


def after(source: KernelSource, strategy: Strategy, key: str = "") -> KernelSource:
    return KernelSource(edit(strategy, source, key).text, source.kernel)


def test_drop_copy_in_reads_the_tensor_itself() -> None:
    source = example("rmsnorm")
    gone, came = changed(source, edit(DropCopyIn(), source, "x").text)
    assert gone == [
        "x = T.alloc_local((block_M, N), dtype)",
        "T.copy(X[bx * block_M, 0], x)",
        "y[i, j] = x[i, j] * x[i, j]",
        "y[i, j] = x[i, j] / rms[i] * w[j]",
    ]
    assert came == [
        "y[i, j] = X[bx * block_M + i, j] * X[bx * block_M + i, j]",
        "y[i, j] = X[bx * block_M + i, j] / rms[i] * w[j]",
    ]


def test_drop_copy_in_ends_the_first_life_of_a_buffer_that_has_a_second() -> None:
    source = kernel("""
x = T.alloc_local((block_M, N), dtype)
T.copy(X[bx * block_M, 0], x)
for i, j in T.grid(block_M, N):
    # Double it.
    x[i, j] = x[i, j] * 2.0
T.copy(x, Y[bx * block_M, 0])
""")
    gone, came = changed(source, edit(DropCopyIn(), source).text)
    assert gone == ["T.copy(X[bx * block_M, 0], x)", "x[i, j] = x[i, j] * 2.0"]
    assert came == ["x[i, j] = X[bx * block_M + i, j] * 2.0"]


def test_drop_copy_in_writes_out_the_one_reduction_that_needs_the_whole_buffer() -> None:
    gone, came = changed(example("softmax"), edit(DropCopyIn(), example("softmax")).text)
    assert gone == [
        "x = T.alloc_local((block_M, N), dtype)",
        "T.copy(X[bx * block_M, 0], x)",
        "T.reduce_max(x, row_max, dim=1)",
        "y[i, j] = T.exp(x[i, j] - row_max[i])",
    ]
    assert "lanes[lane] = T.max(lanes[lane], X[bx * block_M + i, j * 16 + lane])" in came
    assert "y[i, j] = T.exp(X[bx * block_M + i, j] - row_max[i])" in came


@pytest.mark.tilelang
def test_a_reduction_read_from_the_tensor_matches_the_golden(tmp_path: Path) -> None:
    source = example("softmax")
    text = edit(DropCopyIn(), source).text
    assert_matches_golden(text, source, tmp_path, M=33, N=1000)


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("T.reduce_sum(x, s, dim=0)", "read as a whole"),
        ("T.reduce_sum(x, s, dim=1)\nT.reduce_max(x, s, dim=1)", "read as a whole"),
        ("x[0, 0] = 1.0", "changed in part"),
        ("for i, j in T.grid(block_M, N):\n    x[i, j] = x[i, 0]", "changed in part"),
        ("for bx, j in T.grid(block_M, N):\n    Y[bx, j] = x[bx, j]", "place of the tile"),
        ("for i, j in T.grid(block_M, N):\n    X[i, j] = x[i, j]", "`X` is written"),
        ("helper(x)", "read as a whole"),
    ],
)
def test_drop_copy_in_refuses(use: str, why: str) -> None:
    head = "x = T.alloc_local((block_M, N), dtype)\ns = T.alloc_local((block_M,), dtype)\n"
    source = kernel(f"{head}T.copy(X[bx * block_M, 0], x)\n{use}\n")
    assert why in why_not(DropCopyIn(), source)


def test_drop_copy_in_refuses_what_is_read_before_the_copy_of_the_same_iteration() -> None:
    source = kernel("""
x = T.alloc_local((block_M, N), dtype)
for k in T.serial(2):
    for i, j in T.grid(block_M, N):
        Y[i, j] = x[i, j]
    T.copy(X[k * block_M, 0], x)
""")
    assert "does not come before" in why_not(DropCopyIn(), source)


def test_drop_copy_out_writes_the_tensor_itself() -> None:
    source = example("gelu")
    gone, came = changed(source, edit(DropCopyOut(), source).text)
    value = "0.5 * x[i, j] * (1.0 + T.erf(x[i, j] * SQRT_HALF))"
    assert gone == [
        "y = T.alloc_local((block_M, block_N), dtype)",
        f"y[i, j] = {value}",
        "T.copy(y, Y[by * block_M, bx * block_N])",
    ]
    assert came == [f"Y[by * block_M + i, bx * block_N + j] = {value}"]


def test_drop_copy_out_keeps_a_buffer_that_is_needed_before() -> None:
    source = example("softmax")
    gone, came = changed(source, edit(DropCopyOut(), source).text)
    assert gone == ["y[i, j] = y[i, j] / row_sum[i]", "T.copy(y, Y[bx * block_M, 0])"]
    assert came == ["Y[bx * block_M + i, j] = y[i, j] / row_sum[i]"]


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("T.clear(y)", "not set by a loop"),
        ("T.clear(y)\nfor i in T.serial(block_M):\n    y[i, 0] = 1.0", "not set every element"),
        ("for i, j in T.grid(block_M, N):\n    y[i, j] = y[i, 0]", "other elements"),
        (
            "for i, j in T.grid(block_M, N):\n    y[i, j] = 1.0\n    y[i, j] = y[i, j] + 1.0",
            "does not end by setting one element",
        ),
        ("for i, j in T.grid(block_M, N):\n    y[i, j] = Y[i, j]", "`Y` is used elsewhere"),
    ],
)
def test_drop_copy_out_refuses(use: str, why: str) -> None:
    head = "y = T.alloc_local((block_M, N), dtype)\n"
    source = kernel(f"{head}{use}\nT.copy(y, Y[bx * block_M, 0])\n")
    assert why in why_not(DropCopyOut(), source)


def test_drop_copy_out_refuses_a_running_sum_that_goes_on() -> None:
    source = kernel("""
y = T.alloc_local((block_M, N), dtype)
T.clear(y)
for k in T.serial(2):
    for i, j in T.grid(block_M, N):
        y[i, j] = y[i, j] + X[k * block_M + i, j]
    T.copy(y, Y[k * block_M, 0])
""")
    assert "read again" in why_not(DropCopyOut(), source)


def test_inline_buffer_computes_where_it_is_read() -> None:
    source = kernel("""
x = T.alloc_local((block_M, N), dtype)
y = T.alloc_local((block_M, N), dtype)
T.copy(X[bx * block_M, 0], x)
# Squares.
for i, j in T.grid(block_M, N):
    y[i, j] = x[i, j] * x[i, j]
for r, c in T.grid(block_M, N):
    Y[bx * block_M + r, c] = 2.0 * y[r, c]
""")
    gone, came = changed(source, edit(InlineBuffer(), source).text)
    assert gone == [
        "y = T.alloc_local((block_M, N), dtype)",
        "for i, j in T.grid(block_M, N):",
        "y[i, j] = x[i, j] * x[i, j]",
        "Y[bx * block_M + r, c] = 2.0 * y[r, c]",
    ]
    assert came == ["Y[bx * block_M + r, c] = 2.0 * (x[r, c] * x[r, c])"]


@pytest.mark.parametrize(
    ("value", "between", "why"),
    [
        ("x[i, j] + 1.0", "T.clear(x)", "`x` changes"),
        ("T.exp(x[i, j])", "T.copy(y, x)", "read as a whole"),
        ("helper(x[i, j])", "", "not a plain expression"),
        ("y[i, j] + x[i, j]", "", "before or while it is set"),
    ],
)
def test_inline_buffer_refuses(value: str, between: str, why: str) -> None:
    source = kernel(f"""
x = T.alloc_local((block_M, N), dtype)
y = T.alloc_local((block_M, N), dtype)
T.copy(X[bx * block_M, 0], x)
for i, j in T.grid(block_M, N):
    y[i, j] = {value}
{between}
for i, j in T.grid(block_M, N):
    Y[bx * block_M + i, j] = y[i, j]
""")
    assert why in why_not(InlineBuffer(), source)


def test_inline_buffer_does_not_repeat_costly_work() -> None:
    assert "`rms` has to be stored: it is costly" in why_not(InlineBuffer(), example("rmsnorm"))


def test_merge_buffers_works_in_place() -> None:
    source = example("softmax")
    gone, came = changed(source, edit(MergeBuffers(), source).text)
    assert gone == [
        "y = T.alloc_local((block_M, N), dtype)",
        "y[i, j] = T.exp(x[i, j] - row_max[i])",
        "T.reduce_sum(y, row_sum, dim=1)",
        "y[i, j] = y[i, j] / row_sum[i]",
        "T.copy(y, Y[bx * block_M, 0])",
    ]
    assert came == [
        "x[i, j] = T.exp(x[i, j] - row_max[i])",
        "T.reduce_sum(x, row_sum, dim=1)",
        "x[i, j] = x[i, j] / row_sum[i]",
        "T.copy(x, Y[bx * block_M, 0])",
    ]


@pytest.mark.parametrize(
    ("body", "possible"),
    [
        # One after the other.
        ("T.copy(X[0, 0], a)\nT.copy(a, Y[0, 0])\nT.copy(X[4, 0], b)\nT.copy(b, Y[4, 0])", True),
        # Both alive between the copies.
        ("T.copy(X[0, 0], a)\nT.copy(X[4, 0], b)\nT.copy(a, Y[0, 0])\nT.copy(b, Y[4, 0])", False),
        # The loop reads elements of `a` that it has already overwritten in `b`.
        (
            "T.copy(X[0, 0], a)\nfor i, j in T.grid(block_M, N):\n    b[i, j] = a[i, 0]\nT.copy(b, Y[0, 0])",
            False,
        ),
        # `b` is carried from one iteration to the next.
        (
            "for k in T.serial(2):\n    T.copy(X[k, 0], a)\n    T.copy(a, Y[k, 0])\n"
            "    for i, j in T.grid(block_M, N):\n        b[i, j] = b[i, j] + 1.0\n    T.copy(b, Y[k, 0])",
            False,
        ),
        # Both are set anew in each iteration.
        (
            "for k in T.serial(2):\n    T.copy(X[k, 0], a)\n    T.copy(a, Y[k, 0])\n"
            "    for i, j in T.grid(block_M, N):\n        b[i, j] = 1.0\n    T.copy(b, Y[k, 0])",
            True,
        ),
        # A branch hides where `a` is read.
        (
            "T.copy(X[0, 0], a)\nif bx > 0:\n    T.clear(b)\nelse:\n    T.copy(a, Y[0, 0])\nT.copy(b, Y[4, 0])",
            False,
        ),
    ],
)
def test_merge_buffers_only_where_lives_do_not_meet(body: str, possible: bool) -> None:
    head = "a = T.alloc_local((block_M, N), dtype)\nb = T.alloc_local((block_M, N), dtype)\n"
    assert isinstance(outcome(MergeBuffers(), kernel(head + body)), list) is possible


def test_fuse_loops_runs_both_bodies_in_one() -> None:
    source = example("layernorm")
    gone, came = changed(source, edit(FuseLoops(), source).text)
    assert gone == ["for i, j in T.grid(block_M, N):"]
    assert came == []


def test_fuse_loops_keeps_comments_and_renames_variables() -> None:
    source = kernel("""
y = T.alloc_local((block_M, N), dtype)
for i, j in T.grid(block_M, N):
    y[i, j] = X[i, j]

# Then write.
for r, c in T.grid(block_M, N):
    Y[r, c] = y[r, c]
""")
    text = edit(FuseLoops(), source).text
    assert (
        """
                y[i, j] = X[i, j]
                # Then write.
                Y[i, j] = y[i, j]

    return main"""
        in text
    )


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ("for i, j in T.grid(block_M, N):\n    Y[i, j] = y[i, 0]", "`y` is written by one"),
        ("for i, j in T.grid(block_M, N):\n    Y[i, j] = y[j, i]", "`y` is written by one"),
        ("for i in T.serial(block_M):\n    Y[i, 0] = y[i, 0]", "same extents"),
        ("for i, j in T.grid(block_M, N):\n    helper(y)", "`y` is written by one"),
    ],
)
def test_fuse_loops_refuses(second: str, why: str) -> None:
    first = "y = T.alloc_local((block_M, N), dtype)\nfor i, j in T.grid(block_M, N):\n    y[i, j] = X[i, j]\n"
    assert why in why_not(FuseLoops(), kernel(first + second))


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("name", "strategy", "key"),
    [
        ("rmsnorm", DropCopyIn(), "x"),
        ("gelu", DropCopyOut(), ""),
        ("softmax", DropCopyOut(), ""),
        ("softmax", MergeBuffers(), ""),
        ("layernorm", FuseLoops(), ""),
    ],
)
def test_the_result_matches_the_golden(
    name: str, strategy: Strategy, key: str, tmp_path: Path
) -> None:
    source = example(name)
    # 33 rows and, for gelu, 100 columns do not divide the tile.
    assert_matches_golden(edit(strategy, source, key).text, source, tmp_path, M=33, N=100)


@pytest.mark.tilelang
def test_an_inlined_temporary_gives_the_same_result(tmp_path: Path) -> None:
    import torch

    source = kernel("""
y = T.alloc_local((block_M, N), dtype)
for i, j in T.grid(block_M, N):
    y[i, j] = X[bx * block_M + i, j] - 1.0
for i, j in T.grid(block_M, N):
    Y[bx * block_M + i, j] = 2.0 * y[i, j]
""")
    (inputs, output) = run(after(source, InlineBuffer()), tmp_path, M=33, N=100)
    torch.testing.assert_close(output, 2.0 * (inputs[0] - 1.0))


KEPT = """
x = T.alloc_local((block_M, N), dtype)
y = T.alloc_local((block_M, N), dtype)
s = T.alloc_local((block_M,), dtype)
T.copy(X[bx * block_M, 0], x)
for i, j in T.grid(block_M, N):
    y[i, j] = x[i, j] * x[i, j]
for i in T.serial(block_M):
    s[i] = 1.0
    for j in T.serial(N // 2):
        s[i] += y[i, j * 2 + 1]
for i, j in T.grid(block_M, N):
    Y[bx * block_M + i, j] = y[i, j] / s[i]
"""


def test_keep_in_output_changes_values_in_their_place() -> None:
    source = kernel(KEPT)
    gone, came = changed(source, edit(KeepInOutput(), source, "y").text)
    assert gone == [
        "y = T.alloc_local((block_M, N), dtype)",
        "y[i, j] = x[i, j] * x[i, j]",
        "s[i] += y[i, j * 2 + 1]",
        "Y[bx * block_M + i, j] = y[i, j] / s[i]",
    ]
    assert came == [
        "Y[bx * block_M + i, j] = x[i, j] * x[i, j]",
        "s[i] += Y[bx * block_M + i, j * 2 + 1]",
        "Y[bx * block_M + i, j] = Y[bx * block_M + i, j] / s[i]",
    ]


@pytest.mark.tilelang
def test_softmax_kept_in_its_output_matches_the_golden(tmp_path: Path) -> None:
    source = example("softmax")
    lanes = after(after(source, Lanes(), "row_sum:16"), DropCopyOut())
    text = edit(KeepInOutput(), lanes, "y").text
    assert "T.exp(x[i, j] - row_max[i])" in text
    assert "lanes[lane] += Y[bx * block_M + i, j * 16 + lane]" in text
    assert_matches_golden(text, source, tmp_path, M=33, N=1000)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("y[i, j] / s[i]", "y[i, 0] / s[i]", "not set from `y` element for element"),
        ("Y[bx * block_M + i, j]", "Y[bx * block_M + i, N - j]", "element for element"),
        ("in T.grid(block_M, N):\n    Y", "in T.grid(block_M, N // 2):\n    Y", "for element"),
        ("s[i] = 1.0", "Y[i, 0] = 1.0", "used elsewhere"),
        ("s[i] = 1.0", "T.reduce_sum(y, s, dim=1)", "used as a whole"),
        ("s[i] = 1.0", "s[i] = y[0, 0]", "besides the one at hand"),
        (
            "y = T.alloc_local((block_M, N), dtype)",
            "y = T.alloc_local((block_M, N), 'float16')",
            "dtype",
        ),
        ("for i in T.serial(block_M):", "o = bx\nfor i in T.serial(block_M):", "place of the tile"),
    ],
)
def test_keep_in_output_refuses(old: str, new: str, why: str) -> None:
    body = KEPT.replace(old, new)
    if "o = bx" in new:
        body = body.replace("Y[bx *", "Y[o *")
    found = outcome(KeepInOutput(), kernel(body))
    told = found.why if not isinstance(found, list) else str([e.title for e in found])
    assert why in told
