"""What the tests of knobs share: targets, the examples' shapes, and texts in every style that editors write."""

from __future__ import annotations

from opratchet.edit.knobs.tables import gcc_flag_groups
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy, Target
from opratchet.edit.source import KernelSource

CPU = Target("tilelang-c", local_bytes=4 << 20, compile_flags=gcc_flag_groups(64))
NPU = Target("tilelang-npuir", pipelining=True, multi_buffering=True, local_bytes=196_608)
SHAPES: dict[str, list[dict[str, int]]] = {
    "softmax": [{"M": 512, "N": 1024}, {"M": 128, "N": 4096}, {"M": 33, "N": 1000}],
    "gelu": [{"M": 128, "N": 1024}, {"M": 256, "N": 768}, {"M": 33, "N": 1000}],
    "rmsnorm": [{"M": 512, "N": 1024}, {"M": 1024, "N": 768}],
    "layernorm": [{"M": 512, "N": 1024}, {"M": 1024, "N": 768}],
    "gemm": [{"M": 256, "N": 256, "K": 256}, {"M": 100, "N": 75, "K": 50}],
    "attention": [{"S": 256, "D": 64}, {"S": 100, "D": 48}],
}


def situation(source: KernelSource, target: Target = CPU) -> Situation:
    """The source on a target, with the shapes of the example of that name."""
    return Situation(source, target, SHAPES.get(source.kernel, []))


def offered(strategy: Strategy, source: KernelSource, target: Target = CPU) -> dict[str, Edit]:
    """What a strategy offers, by key."""
    found = strategy.edits(situation(source, target))
    assert not isinstance(found, NotApplicable), found.why
    return {edit.key: edit for edit in found}


def refused(strategy: Strategy, source: KernelSource, target: Target = CPU) -> str:
    """Why a strategy has nothing to offer."""
    found = strategy.edits(situation(source, target))
    assert isinstance(found, NotApplicable), found
    return found.why


def styled(source: KernelSource, *, mark: bool, newline: str, tabs: bool) -> KernelSource:
    """The source as another editor would have written it."""
    text = source.text.replace("    ", "\t") if tabs else source.text
    text = text.replace("\n", newline)
    return KernelSource(("\ufeff" if mark else "") + text, source.kernel)
