"""Sources the edit tests work on: the shipped examples, and how an edit changes them."""

from __future__ import annotations

import difflib
from pathlib import Path

from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy, Target
from opratchet.edit.source import KernelSource

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = """import tilelang
import tilelang.language as T
import torch


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
"""


def example(name: str) -> KernelSource:
    """The shipped example of that name."""
    (path,) = EXAMPLES.glob(f"*/{name}/{name}.py")
    return KernelSource(path.read_text(encoding="utf-8"), name)


def outcome(strategy: Strategy, source: KernelSource) -> list[Edit] | NotApplicable:
    """What a strategy offers for a source on the CPU target."""
    return strategy.edits(Situation(source, Target("tilelang-c")))


def edit(strategy: Strategy, source: KernelSource, key: str = "") -> Edit:
    """The edit whose key begins with `key`; the only one when `key` is empty."""
    found = outcome(strategy, source)
    assert isinstance(found, list), found
    (chosen,) = [one for one in found if one.key.startswith(key)]
    return chosen


def why_not(strategy: Strategy, source: KernelSource) -> str:
    """Why a strategy does not apply."""
    found = outcome(strategy, source)
    assert isinstance(found, NotApplicable), found
    return found.why


def changed(source: KernelSource, text: str) -> tuple[list[str], list[str]]:
    """Lines that went and lines that came, without indentation."""
    lines = list(difflib.ndiff(source.text.splitlines(), text.splitlines()))
    gone = [line[2:].strip() for line in lines if line.startswith("- ")]
    came = [line[2:].strip() for line in lines if line.startswith("+ ")]
    return gone, came


def kernel(
    body: str, parameters: str = "X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)"
) -> KernelSource:
    """A source whose kernel has the given body, one block of `block_M` rows."""
    lines = "\n".join(" " * 12 + line if line else "" for line in body.strip("\n").splitlines())
    text = f"""{HEAD}def op(M, N, block_M=4, dtype="float32"):
    @T.prim_func
    def main({parameters}):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
{lines}

    return main
"""
    return KernelSource(text, "op")
