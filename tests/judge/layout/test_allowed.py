"""What keeps the rules although it looks unlike the template, and what a text alone can be asked."""

from __future__ import annotations

import pytest

from opratchet.judge.layout import LayoutFiles, check_text
from tests.judge.layout.folder import GOLDEN, IMPL, SPEC, TEST, files, swap

CALL = "    softmax_kernel(x, y)\n"
TILE = "pypto.set_vec_tile_shapes(4, 1024)"
LEVELS = "def test_softmax_l0():\n    check((512, 1024))\n\n\ndef test_softmax_L1():\n    check((512, 1024))\n"


def rules(checked: LayoutFiles, *, tuned: bool = False) -> list[str]:
    return [finding.rule for finding in check_text(checked, tuned=tuned)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@pypto.frontend.jit(runtime", "@pt.frontend.jit(runtime"),
        ("import pypto\n", "import pypto\nfrom pypto import set_cube_tile_shapes as cube\n"),
        (TILE, "pypto.set_cube_tile_shapes([128, 128], [64, 256, 128], n=[256, 256])"),
        (TILE, "pypto.set_cube_tile_shapes([1, 1], [1, 3], [2, 2], True)"),
        (TILE, "pypto.set_vec_tile_shapes(1, 1, 4, 8)"),
        ("unroll_list=[1]", "unroll_list=[4]"),
        (", unroll_list=[1]", ""),
        ("for j in range(2)", "for j, n in pypto.loop_unroll(2)"),
        (CALL, f"    print([len(row) for row in x])\n{CALL}"),
        (CALL, f"    for row in x:\n        print(row)\n{CALL}"),
        (
            CALL,
            "    try:\n        softmax_kernel(x, y)\n    except OSError as e:\n        raise KeyError from e\n",
        ),
        (CALL, "    try:\n        softmax_kernel(x, y)\n    finally:\n        print(y)\n"),
        (
            "import torch\n",
            "import torch\ntry:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None\n",
        ),
        ("import torch\n", "import torch\nGOLDEN_RATIO = 1.618\n"),
    ],
)
def test_other_ways_to_write_an_implementation(old: str, new: str) -> None:
    text = swap(IMPL, old, new)
    if "pt.frontend" in new:
        text = text.replace("import pypto\n", "import pypto\nimport pypto as pt\n")
    if "loop_unroll" in new:
        text = swap(text, ", unroll_list=[1]", "")
    assert rules(files(impl=text)) == []


def test_a_kernel_that_is_defined_in_a_function_is_one_too() -> None:
    head, kernel = IMPL.split("@pypto", 1)
    kernel, rest = kernel.split("\n\n\ndef one_part", 1)
    made = (
        "def make():\n    @pypto" + kernel.replace("\n", "\n    ") + "\n\n    return softmax_kernel"
    )
    text = f"{head}{made}\n\n\ndef one_part{rest}".replace(CALL, "    make()(x, y)\n")
    assert rules(files(impl=text)) == []
    called = text.replace("    make()(x, y)\n", "    for row in x:\n        make()(row, y)\n")
    assert rules(files(impl=called)) == ["host-loop"]
    bound = text.replace(
        "    make()(x, y)\n", "    run = make()\n    while True:\n        run(x, y)\n"
    )
    assert rules(files(impl=bound)) == ["host-loop"]


@pytest.mark.parametrize(
    ("dtype", "last", "wrong"),
    [
        ("pypto.DT_FP32", 8, False),
        ("pypto.DT_FP32", 4, True),
        ("pypto.DT_FP16", 16, False),
        ("pypto.DT_BF16", 8, True),
        ("pypto.DT_INT8", 32, False),
        ("pypto.DT_INT8", 16, True),
        ("pypto.DT_INT64", 4, False),
        ("DTYPE", 1, False),
        ("DT_FP16", 8, True),
    ],
)
def test_the_last_axis_counts_in_bytes_of_the_dtype(dtype: str, last: int, wrong: bool) -> None:
    text = IMPL.replace("pypto.DT_FP32", dtype).replace("(4, 1024)", f"(4, {last})")
    text = text.replace("import torch\n", "import torch\nfrom pypto import DT_FP16\n")
    assert rules(files(impl=text)) == ["vector-alignment"] * wrong


def test_of_several_dtypes_the_smallest_counts() -> None:
    text = swap(
        IMPL, "y: pypto.Tensor([512, 1024], pypto.DT_FP32)", "y: pypto.Tensor([8], pypto.DT_BF16)"
    )
    assert rules(files(impl=text.replace("(4, 1024)", "(4, 8)"))) == ["vector-alignment"]
    assert rules(files(impl=text.replace("(4, 1024)", "(4, 16)"))) == []


def test_a_tuned_implementation_may_unroll_by_several_factors() -> None:
    text = swap(IMPL, "unroll_list=[1]", "unroll_list=[8, 4, 2, 1]")
    assert rules(files(impl=text)) == ["unroll-single"]
    assert rules(files(impl=text), tuned=True) == []


@pytest.mark.parametrize(
    "levels",
    [
        "def test_level0_basic():\n    check(1)\n\ndef test_softmax_p0():\n    check(1)\n",
        "class TestSoftmax:\n    def test_l0(self):\n        check(1)\n    def test_l1(self):\n        check(1)\n",
        '@pytest.mark.parametrize("level", ["L0", "L1"])\ndef test_softmax(level):\n    check(1)\n',
        '@pytest.mark.parametrize("level", [0, 1])\ndef test_softmax(level):\n    check(1)\n',
        'CASES = {"L0": 1, "P0": 2}\n@pytest.mark.parametrize("shape", CASES.values(), ids=CASES)\ndef test_softmax(shape):\n    check(shape)\n',
        '@pytest.mark.parametrize("s", [pytest.param(1, id="l0-odd"), pytest.param(2, id="l1")])\ndef test_softmax(s):\n    check(s)\n',
    ],
)
def test_other_ways_to_write_the_levels(levels: str) -> None:
    assert rules(files(test=swap(TEST, LEVELS, levels))) == []


def test_the_name_of_an_operator_is_no_level() -> None:
    renamed = [text.replace("softmax", "l1_norm") for text in (IMPL, GOLDEN, TEST)]
    assert rules(LayoutFiles("l1_norm", *renamed, SPEC)) == []
    renamed[2] = renamed[2].replace("test_l1_norm_L1", "test_l1_norm_large")
    assert rules(LayoutFiles("l1_norm", *renamed, SPEC)) == ["test-levels"]


def test_a_parametrised_test_without_levels_has_none() -> None:
    levels = '@pytest.mark.parametrize("rows", [0, 1])\ndef test_softmax(rows):\n    check(rows)\n'
    assert rules(files(test=swap(TEST, LEVELS, levels))) == ["test-levels", "test-levels"]


TWO_OUTPUTS = swap(GOLDEN, "return torch.softmax(x, dim=-1)", "return x, {'top': x.amax(-1)}")
ONE_COMPARISON = (
    '    result = detailed_tensor_compare(actual, expected, "y", rtol=1e-3, atol=1e-3)\n'
)


@pytest.mark.parametrize(
    ("comparison", "found"),
    [
        (ONE_COMPARISON, 2),
        (ONE_COMPARISON * 2, 0),
        (f"    for i in range(2):\n    {ONE_COMPARISON}", 0),
        ("    each(actual[0], expected[0])\n    result = each(actual[1], expected[1])\n", 0),
        ("    result = each(actual[0], expected[0])\n", 2),
        ("    result = [each(a, b) for a, b in zip(actual, expected)]\n", 0),
    ],
)
def test_every_output_is_compared(comparison: str, found: int) -> None:
    each = "def each(a, b):\n    return detailed_tensor_compare(a, b, 'y')\n\n\ndef check("
    test = swap(swap(TEST, ONE_COMPARISON, comparison), "def check(", each)
    if "each(" not in comparison:
        test = test.replace(each, "def check(")
    assert rules(files(golden=TWO_OUTPUTS, test=test)) == ["compare-helper"] * found


def test_a_further_bound_beside_the_helper_is_allowed() -> None:
    test = swap(
        TEST,
        'assert result["all_close"]\n',
        'assert result["all_close"]\n    assert result["max_diff"] < 1\n',
    )
    assert rules(files(test=test)) == []


@pytest.mark.parametrize(
    "line",
    [
        "from softmax_impl import softmax_wrapper",
        "from .softmax_impl import softmax_wrapper",
        "from . import softmax_impl",
        "from custom.softmax import softmax_impl",
        "import custom.softmax.softmax_impl as impl",
        'import importlib\nimpl = importlib.import_module("softmax_impl")',
    ],
)
def test_ways_to_import_a_side(line: str) -> None:
    text = swap(TEST, "from softmax_impl import softmax_wrapper", line)
    assert rules(files(test=text)) == []


def test_a_golden_that_is_taken_from_elsewhere_is_not_apart() -> None:
    text = swap(TEST, "from softmax_golden import", "from reference import")
    assert rules(files(test=text)) == ["test-apart"]


def test_findings_are_sorted_by_file_line_and_rule() -> None:
    impl = swap(IMPL, TILE, f"pypto.set_vec_tile_shapes(1, 1, 1, ROWS, 12)\n    {TILE[:-1]}0 + 0)")
    found = check_text(files(impl=impl, golden="", test=""))
    places = [(f.file, f.line, f.rule) for f in found]
    assert places == sorted(places)
    assert [place[2] for place in places[1:4]] == [
        "literal-tiles",
        "vector-alignment",
        "vector-axes",
    ]


def test_texts_that_are_not_there_are_named() -> None:
    found = check_text(LayoutFiles("softmax", None, None, None, None, None))
    assert [(f.file, f.line, f.rule) for f in found] == [
        ("MEMORY.md", 1, "missing-file"),
        ("SPEC.md", 1, "missing-file"),
        ("softmax_golden.py", 1, "missing-file"),
        ("softmax_impl.py", 1, "missing-file"),
        ("test_softmax.py", 1, "missing-file"),
    ]
