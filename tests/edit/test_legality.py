"""Static rules refuse what cannot run, and nothing else."""

from __future__ import annotations

import pytest

from opratchet.edit.legality import broken_rule
from opratchet.edit.model import Target
from opratchet.edit.source import KernelSource
from tests.edit.knobbed import CPU, SHAPES
from tests.edit.sources import example, kernel

TILE = kernel("x = T.alloc_local((block_M, N), dtype)\ny = T.alloc_shared([N // 2], 'float16')")


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_the_examples_are_legal(name: str) -> None:
    assert broken_rule(example(name), CPU, SHAPES[name]) is None


def test_local_memory_is_counted_in_bytes_on_every_workload() -> None:
    needed = 4 * 100 * 4 + 50 * 2
    shapes = [{"M": 8, "N": 10}, {"M": 8, "N": 100}]
    assert broken_rule(TILE, Target("t", local_bytes=needed), shapes) is None
    text = broken_rule(TILE, Target("t", local_bytes=needed - 1), shapes)
    assert text == f"local buffers take {needed} bytes, limit {needed - 1} (M = 8, N = 100)"


def test_what_cannot_be_told_is_let_pass() -> None:
    source = kernel("x = T.alloc_local((lookup(N), 1 << 40), dtype)")
    assert broken_rule(source, Target("t", local_bytes=1), [{"M": 1, "N": 1}]) is None
    assert broken_rule(TILE, Target("t", local_bytes=1)) is None


def test_a_buffer_without_elements_is_refused() -> None:
    source = KernelSource(TILE.text.replace("block_M=4", "block_M=0"), "op")
    text = broken_rule(source, CPU, [{"M": 8, "N": 8}])
    assert text is not None and "`x`" in text and "block_M = 0" in text
