"""Gate 1 lets one change of the kernel pass, and nothing that is not the kernel."""

from __future__ import annotations

import pytest

from opratchet.edit.onechange import ChangeRefusedError, check_edit, describe_change, diff
from opratchet.edit.source import KernelSource
from tests.edit.knobbed import styled
from tests.edit.sources import example

GEMM = example("gemm")
MARKER = "def golden_gemm"
CONSTANT = GEMM.text.replace("block_K=32, ", "").replace("block_K", "BLOCK_K")
CONSTANT = CONSTANT.replace(MARKER, f"BLOCK_K = 32\n\n\n{MARKER}")


def check(after: str, before: str = GEMM.text) -> str:
    return str(check_edit(before, after, "gemm", "golden_gemm"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("block_K=32", "block_K=16", "block_K 32 -> 16"),
        ("num_stages=2", "num_stages=4", "num_stages 2 -> 4"),
        (", num_stages=2", "", "num_stages 2 -> None"),
        (
            "T.Pipelined(T.ceildiv(K, block_K), num_stages=2)",
            "T.serial(T.ceildiv(K, block_K))",
            "loop ko",
        ),
        ('"-O3", ', '"-O2", ', "flag optimisation -O3 -march=native -> -O2 -march=native"),
        ('native"]', 'native", "-ffast-math"]', "flag fast_math  -> -ffast-math"),
        (
            'native"])',
            'native"], pass_configs={"tl.config_index_bitwidth": 64})',
            "pass tl.config_index_bitwidth None -> 64",
        ),
    ],
)
def test_one_knob_is_named(old: str, new: str, said: str) -> None:
    assert check(GEMM.text.replace(old, new)).startswith(said)


@pytest.mark.parametrize(
    "change",
    [
        {"block_K=32": "block_K=16", "block_M=64": "block_M=32"},
        {"block_K=32": "block_K=16", "T.clear(c)": "T.fill(c, 0)"},
        {"T.clear(c)": "T.fill(c, 0)"},
        {'"-O3", ': '"-O2", ', "block_K=32": "block_K=16"},
        {'"-O3", ': '"-O2", ', 'native"]': 'native", "-ffast-math"]'},
    ],
)
def test_more_than_one_knob_is_not_one(change: dict[str, str]) -> None:
    text = GEMM.text
    for old, new in change.items():
        text = text.replace(old, new)
    assert not check_edit(GEMM.text, text, "gemm", "golden_gemm").is_one_knob


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("return A @ B", "return A @ B + 0", "golden `golden_gemm`"),
        ("rtol=1e-4", "rtol=1e-1", "`run_case`"),
        ("run_case(100, 75, 50)", "pass", "`run_L0`"),
        ("import torch\n", "import torch\nimport os\n", "`import os`"),
        ("import argparse\n", "", "`import argparse`"),
        ("run_L0()\n    if", "if", "`main`"),
    ],
)
def test_anything_outside_the_kernel_is_refused_by_name(old: str, new: str, named: str) -> None:
    after = GEMM.text.replace(old, new).replace("block_K=32", "block_K=16")
    assert after != GEMM.text.replace("block_K=32", "block_K=16")
    with pytest.raises(ChangeRefusedError, match=named):
        check(after)


def test_a_second_definition_of_the_kernel_or_the_golden_is_refused() -> None:
    for name in ("gemm", "golden_gemm"):
        extra = f"\n\ndef {name}(A, B):\n    return B\n"
        with pytest.raises(ChangeRefusedError, match=name):
            check(GEMM.text + extra)


def test_statements_in_another_order_are_refused() -> None:
    lines = "import argparse\n\nimport tilelang\n"
    after = GEMM.text.replace(lines, "import tilelang\nimport argparse\n")
    with pytest.raises(ChangeRefusedError, match="order"):
        check(after)


def test_module_constant_of_the_kernel_may_move_but_only_to_a_literal() -> None:
    assert check(CONSTANT.replace("BLOCK_K = 32", "BLOCK_K = 8"), CONSTANT) == "BLOCK_K 32 -> 8"
    with pytest.raises(ChangeRefusedError, match="BLOCK_K"):
        check(CONSTANT.replace("BLOCK_K = 32", "BLOCK_K = evil()"), CONSTANT)


def test_module_constant_that_the_golden_knows_may_not_move() -> None:
    before = CONSTANT.replace("return A @ B", "return A[:, :BLOCK_K] @ B[:BLOCK_K]")
    with pytest.raises(ChangeRefusedError, match="BLOCK_K"):
        check(before.replace("BLOCK_K = 32", "BLOCK_K = 8"), before)


def test_comments_and_style_do_not_count() -> None:
    after = styled(GEMM, mark=True, newline="\r\n", tabs=False).text
    after = after.replace("block_K=32", "block_K=16  # smaller\r\n   ")
    assert check(after) == "block_K 32 -> 16"
    with pytest.raises(ChangeRefusedError, match="nothing is changed"):
        check(GEMM.text.replace("T.clear(c)", "T.clear( c )  # zero"))


@pytest.mark.parametrize("text", ["def gemm(:", "", "x = 1\x00", "gemm = None"])
def test_unreadable_candidate_is_refused(text: str) -> None:
    with pytest.raises(ChangeRefusedError, match="cannot be read"):
        check(text)


def test_a_flag_that_two_groups_share_is_seen_as_one_change() -> None:
    with_library = GEMM.text.replace('native"]', 'native", "-fno-math-errno", "-D__FAST_MATH__"]')
    after = with_library.replace('__"]', '__", "-fno-trapping-math"]')
    before = KernelSource(with_library, "gemm")
    change = describe_change(before, KernelSource(after, "gemm"))
    assert change.knob == "flag fast_math.no_traps"


def test_diff_names_both_and_shows_the_line() -> None:
    text = diff("a\nb\n", "a\nc", "v1.py", "v2.py")
    assert text == "--- v1.py\n+++ v2.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
