"""A small operator that keeps every rule, for tests to break."""

from __future__ import annotations

from pathlib import Path

from opratchet.judge.layout import LayoutFiles

IMPL = """\
import pypto
import torch


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def softmax_kernel(
    x: pypto.Tensor([512, 1024], pypto.DT_FP32),
    y: pypto.Tensor([512, 1024], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(4, 1024)
    for i in pypto.loop(0, 8, 1, name="ROWS", idx_name="i", unroll_list=[1]):
        for j in range(2):
            one_part(x, y, i * 64 + j * 32)


def one_part(x, y, row):
    part = pypto.view(x, [32, 1024], [row, 0])
    weight = pypto.exp(part - pypto.amax(part, -1, True))
    pypto.assemble(weight / pypto.sum(weight, -1, True), [row, 0], y)


def softmax_wrapper(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    softmax_kernel(x, y)
    return y
"""

GOLDEN = """\
import torch


def softmax_golden(x):
    return torch.softmax(x, dim=-1)
"""

TEST = """\
import torch
from detailed_tensor_compare import detailed_tensor_compare
from softmax_golden import softmax_golden
from softmax_impl import softmax_wrapper


def check(shape):
    x = torch.randn(shape)
    actual, expected = softmax_wrapper(x), softmax_golden(x)
    result = detailed_tensor_compare(actual, expected, "y", rtol=1e-3, atol=1e-3)
    assert result["all_close"]


def test_softmax_l0():
    check((512, 1024))


def test_softmax_L1():
    check((512, 1024))
"""

SPEC = "---\nop_name: softmax\n---\n"
MEMORY = "# Plan: softmax\n"

TEXTS = {
    "softmax_impl.py": IMPL,
    "softmax_golden.py": GOLDEN,
    "test_softmax.py": TEST,
    "SPEC.md": SPEC,
    "MEMORY.md": MEMORY,
}


def files(impl: str = IMPL, golden: str = GOLDEN, test: str = TEST) -> LayoutFiles:
    """The operator as texts."""
    return LayoutFiles("softmax", impl, golden, test, SPEC)


def write(folder: Path, **changed: str) -> Path:
    """The operator as a folder; a file given by its name without suffix has another text."""
    root = folder / "softmax"
    root.mkdir()
    for name, text in TEXTS.items():
        (root / name).write_text(changed.get(name.split(".")[0], text), encoding="utf-8")
    return root


def swap(text: str, old: str, new: str) -> str:
    """A text with one part replaced; the part has to be there once."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


def line_of(text: str, part: str) -> int:
    """The line, from 1, that a part of a text stands in; the part has to be there once."""
    assert text.count(part) == 1, part
    return text[: text.index(part)].count("\n") + 1
