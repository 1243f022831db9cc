"""Every rule: an operator that keeps it, and the same operator with just that rule broken, in a folder on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from opratchet.judge.layout import RULES, check_layout
from tests.judge.layout.folder import TEXTS, line_of, swap, write

TILE = "pypto.set_vec_tile_shapes(4, 1024)"


@dataclass(frozen=True)
class Break:
    """One way to break a rule.

    Attributes:
        rule: The rule.
        file: The file that is changed, and that the finding is about.
        old: What is replaced.
        new: By what.
        at: Something that stands in the line of the finding; `""` for the first line.
    """

    rule: str
    file: str
    old: str
    new: str
    at: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.new.strip().splitlines()[0] if self.new.strip() else 'nothing'}"


def impl(rule: str, old: str, new: str, at: str) -> Break:
    return Break(rule, "softmax_impl.py", old, new, at)


def tile(rule: str, new: str) -> Break:
    return impl(rule, TILE, f"pypto.{new}", f"pypto.{new}")


def golden(rule: str, old: str, new: str, at: str = "") -> Break:
    return Break(rule, "softmax_golden.py", old, new, at)


def in_test(rule: str, old: str, new: str, at: str = "") -> Break:
    return Break(rule, "test_softmax.py", old, new, at)


SECOND_KERNEL = "\n\n@pypto.frontend.jit\ndef second(x: pypto.Tensor()):\n    pass\n"
CALL = "    softmax_kernel(x, y)\n"
GUARDED = "    try:\n        softmax_kernel(x, y)\n    except RuntimeError:\n"
COMPARE = """\
    result = detailed_tensor_compare(actual, expected, "y", rtol=1e-3, atol=1e-3)
    assert result["all_close"]
"""

BREAKS = [
    impl("syntax", "    return y\n", "    return y)\n", "return y)"),
    golden("syntax", "import torch\n", "import torch\n\0\n"),
    # one-jit
    impl("one-jit", "@pypto.frontend.jit(runtime_options={", "@plain(options={", ""),
    impl("one-jit", "    return y\n", f"    return y\n{SECOND_KERNEL}", "def second"),
    impl(
        "one-jit",
        "    return y\n",
        "    return y\n\n\nother = pypto.frontend.jit(one_part)\n",
        "other =",
    ),
    golden(
        "one-jit",
        "def softmax_golden",
        "@pypto.frontend.jit\ndef softmax_golden",
        "def softmax_golden",
    ),
    in_test(
        "one-jit", "def check(", "import pypto\n@pypto.frontend.jit()\ndef check(", "def check("
    ),
    # apart
    golden("golden-apart", "def softmax_golden", "def golden"),
    golden("golden-apart", "import torch\n", "import torch\nfrom pypto import op\n", "from pypto"),
    golden(
        "golden-apart",
        "import torch\n",
        "import torch\nfrom .softmax_impl import one_part\n",
        "one_part",
    ),
    impl("impl-apart", "import torch\n", "import torch\nimport softmax_golden\n", "import softmax"),
    impl(
        "impl-apart",
        "import torch\n",
        "import torch\nfrom custom.softmax.softmax_golden import softmax_golden as reference\n",
        "reference",
    ),
    impl(
        "impl-apart",
        "import torch\n",
        'import torch\nimport importlib\nother = importlib.import_module("softmax_golden")\n',
        "other =",
    ),
    impl(
        "impl-apart",
        "def softmax_wrapper",
        "def golden(x):\n    pass\n\n\ndef softmax_wrapper",
        "def golden",
    ),
    in_test("test-apart", "from softmax_golden import", "from reference import"),
    in_test("test-apart", "from softmax_impl import", "from softmax_golden import"),
    in_test(
        "test-apart",
        "def check(",
        "def softmax_golden(x):\n    return x\n\n\ndef check(",
        "def softmax_golden",
    ),
    # the test
    in_test("compare-helper", COMPARE, "    assert torch.allclose(actual, expected)\n"),
    in_test(
        "compare-helper",
        "from detailed_tensor_compare import detailed_tensor_compare\n",
        "def detailed_tensor_compare(*a, **k):\n    return {'all_close': True}\n",
        "def detailed",
    ),
    in_test(
        "compare-helper",
        "def test_softmax_l0():\n    check(",
        "def test_softmax_l0():\n    len(",
        "def test_softmax_l0",
    ),
    in_test(
        "compare-helper",
        "def test_softmax_l0():\n",
        "def bound(a, b):\n    assert (a - b).abs().max() < 1e-3\n\n\ndef test_softmax_l0():\n",
        "assert (a - b)",
    ),
    in_test(
        "compare-helper",
        "def test_softmax_l0():\n",
        "def bound(max_diff):\n    assert max_diff <= 1e-3\n\n\ndef test_softmax_l0():\n",
        "assert max_diff",
    ),
    in_test("test-levels", "def test_softmax_l0", "def test_softmax_small"),
    in_test("test-levels", "def test_softmax_L1", "def softmax_L1"),
    # tiles
    impl("tile-setter", f"    {TILE}\n", "", "def softmax_kernel"),
    tile("literal-tiles", "set_vec_tile_shapes(ROWS, 1024)"),
    tile("literal-tiles", "set_vec_tile_shapes(4 * 2, 1024)"),
    tile("literal-tiles", "set_vec_tile_shapes(-4, 1024)"),
    tile("literal-tiles", "set_vec_tile_shapes(0, 1024)"),
    tile("literal-tiles", "set_vec_tile_shapes(True, 1024)"),
    tile("literal-tiles", "set_vec_tile_shapes(4.0, 1024)"),
    tile("literal-tiles", "set_vec_tile_shapes(*shape)"),
    tile("literal-tiles", "set_vec_tile_shapes([4, 1024])"),
    tile("literal-tiles", "set_vec_tile_shapes()"),
    tile("literal-tiles", "set_cube_tile_shapes([M, 128], [64, 256], [256, 256])"),
    tile("literal-tiles", "set_cube_tile_shapes([0, 128], [64, 256], [256, 256])"),
    tile("literal-tiles", "set_cube_tile_shapes(M, [64, 256], [256, 256])"),
    tile("literal-tiles", "set_cube_tile_shapes([128, 128], (64, 256), [256, 256])"),
    impl("literal-tiles", TILE, f"{TILE}\n    again = pypto.set_vec_tile_shapes", "again"),
    tile("cube-tiles", "set_cube_tile_shapes([128], [64, 256], [256, 256])"),
    tile("cube-tiles", "set_cube_tile_shapes([64, 128, 128], [64, 256], [256, 256])"),
    tile("cube-tiles", "set_cube_tile_shapes([128, 128], [16, 32, 64, 64], [256, 256])"),
    tile("cube-tiles", "set_cube_tile_shapes([128, 64], [64, 256], [256, 256])"),
    tile("cube-tiles", "set_cube_tile_shapes([128, 192], [64, 256], [256, 256])"),
    tile("cube-tiles", "set_cube_tile_shapes([128, 128], [64, 256, 96], n=[256, 256])"),
    tile("cube-tiles", "set_cube_tile_shapes([128, 128], [64, 256])"),
    tile("vector-axes", "set_vec_tile_shapes(1, 1, 1, 4, 1024)"),
    tile("vector-alignment", "set_vec_tile_shapes(4, 12)"),
    # loops
    impl(
        "unroll-innermost",
        "for j in range(2)",
        'for j in pypto.loop(2, name="HALVES")',
        'name="ROWS"',
    ),
    impl(
        "unroll-innermost",
        "    part = pypto.view",
        "    for k in pypto.loop(1):\n        print(k)\n    part = pypto.view",
        'name="ROWS"',
    ),
    impl("unroll-single", "unroll_list=[1]", "unroll_list=[4, 2, 1]", "unroll_list"),
    impl("unroll-single", "unroll_list=[1]", "unroll_list=[]", "unroll_list"),
    impl("unroll-single", "unroll_list=[1]", "unroll_list=FACTORS", "unroll_list"),
    impl(
        "host-loop",
        CALL,
        "    for row in range(8):\n        softmax_kernel(x[row], y[row])\n",
        "for row",
    ),
    impl("host-loop", CALL, "    while softmax_kernel(x, y) is None:\n        break\n", "while"),
    impl("host-loop", CALL, "    [softmax_kernel(a, b) for a, b in zip(x, y)]\n", "zip(x, y)"),
    impl(
        "host-loop",
        CALL,
        "    run = softmax_kernel\n    for a in x:\n        run(a, y)\n",
        "for a in x",
    ),
    impl(
        "host-loop",
        "    return y\n",
        "    return y\n\n\ndef many(xs):\n    for x in xs:\n        for part in x:\n            softmax_wrapper(part)\n",
        "for x in xs",
    ),
    impl("graph-loops", "for j in range(2):", "for j in (0, 1):", "for j in"),
    impl("graph-loops", "for j in range(2):", "j = 0\n        while j < 2:", "while"),
    impl(
        "graph-loops",
        TILE,
        f"{TILE}\n    rows = list(pypto.loop(2))",
        "rows =",
    ),
    # fallback
    impl("golden-fallback", CALL, f"{GUARDED}        y = torch.softmax(x, -1)\n", "except"),
    impl("golden-fallback", CALL, f"{GUARDED}        return reference_golden(x)\n", "except"),
    impl("golden-fallback", CALL, f"{GUARDED}        y = x @ x\n        raise\n", "except"),
    impl("golden-fallback", CALL, f"{GUARDED}        pass\n", "except"),
    impl("golden-fallback", CALL, f"{GUARDED}        if x.any():\n            raise\n", "except"),
    impl(
        "golden-fallback",
        CALL,
        f"{GUARDED}        if x.any():\n            return x\n        raise\n",
        "except",
    ),
    impl(
        "golden-fallback",
        CALL,
        f"{GUARDED}        y = other(x)\n        raise\n    def other(x):\n        return torch.exp(x)\n",
        "except",
    ),
    impl(
        "golden-fallback",
        CALL,
        "    with contextlib.suppress(RuntimeError):\n        softmax_kernel(x, y)\n",
        "with contextlib",
    ),
    impl(
        "golden-fallback",
        CALL,
        "    try:\n        softmax_kernel(x, y)\n    finally:\n        return x\n",
        "try:",
    ),
]


def test_an_operator_that_keeps_every_rule_has_no_findings(tmp_path: Path) -> None:
    assert check_layout(write(tmp_path)) == []


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_a_broken_rule_is_found_where_it_is_broken(tmp_path: Path, broken: Break) -> None:
    text = swap(TEXTS[broken.file], broken.old, broken.new)
    found = check_layout(write(tmp_path, **{broken.file.split(".")[0]: text}))
    line = line_of(text, broken.at) if broken.at else 1
    assert [(f.file, f.line, f.rule) for f in found] == [(broken.file, line, broken.rule)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_missing_file_is_found(tmp_path: Path, name: str) -> None:
    root = write(tmp_path)
    (root / name).unlink()
    found = check_layout(root)
    assert [(f.file, f.line, f.rule) for f in found] == [(name, 1, "missing-file")]


def test_every_rule_is_broken_once_at_least() -> None:
    assert {broken.rule for broken in BREAKS} | {"missing-file"} == set(RULES)


def test_every_rule_says_why() -> None:
    for rule in RULES.values():
        assert rule.title and rule.why.endswith(".")
