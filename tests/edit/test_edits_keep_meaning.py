"""Random kernels mean the same after every edit of every data-flow rewrite."""

from __future__ import annotations

from itertools import chain

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from opratchet.edit.model import Strategy
from opratchet.edit.rewrites.common_expression import CommonExpression
from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.fuse_loops import FuseLoops
from opratchet.edit.rewrites.hoist_copy import HoistCopy
from opratchet.edit.rewrites.hoist_expression import HoistExpression
from opratchet.edit.rewrites.inline_buffer import InlineBuffer
from opratchet.edit.rewrites.keep_in_output import KeepInOutput
from opratchet.edit.rewrites.merge_buffers import MergeBuffers
from opratchet.edit.rewrites.reciprocal import Reciprocal
from opratchet.edit.source import KernelSource
from tests.edit.interpreter import interpret
from tests.edit.sources import kernel, outcome

STRATEGIES: tuple[Strategy, ...] = (
    CommonExpression(),
    DropCopyIn(),
    DropCopyOut(),
    FuseLoops(),
    HoistCopy(),
    HoistExpression(),
    InlineBuffer(),
    KeepInOutput(),
    MergeBuffers(),
    Reciprocal(),
)
ALLOCATIONS = [f"{tile} = T.alloc_local((block_M, N), dtype)" for tile in "abcd"]
ALLOCATIONS += [f"{row} = T.alloc_local((block_M,), dtype)" for row in "rs"]

TILES, ROWS = st.sampled_from("abc"), st.sampled_from("rs")
ROW_VALUES = st.builds("{}[i]".format, ROWS)
# Mostly the element at hand; else one that an earlier (0) or a later (2, 1) iteration is at.
PLACES = st.sampled_from(["i, j"] * 6 + ["i, 0", "0, j", "i, 2", "1, j"])
TILE_VALUES = st.one_of(
    st.builds("{}[{}]".format, TILES, PLACES),
    st.just("X[bx * block_M + i, j]"),
    ROW_VALUES,
)


def formulas(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Right sides: sums, products, quotients by something positive, and a call that is worth sharing."""
    return st.one_of(
        values,
        st.builds("{} {} {}".format, values, st.sampled_from("+-*"), values),
        st.builds("{0} / N + T.tanh({1})".format, values, values),
        st.builds("{0} / ({1} * {1} + 1.0)".format, values, values),
        st.builds("T.tanh({0}) - T.tanh({0}) * {1}".format, values, values),
    )


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


TARGETS = st.one_of(*[st.builds("{}[i, j]".format, TILES)] * 3, ROW_VALUES)
TILE_LOOPS = st.lists(
    st.builds("{} = {}".format, TARGETS, formulas(TILE_VALUES)), min_size=1, max_size=2
).map(lambda lines: ["for i, j in T.grid(block_M, N):", *indented(lines)])
ROW_LOOPS = st.builds("{}[i] = {}".format, ROWS, formulas(ROW_VALUES)).map(
    lambda line: ["for i in T.serial(block_M):", f"    {line}"]
)
CALLS = st.one_of(
    st.builds("T.copy(X[bx * block_M, 0], {})".format, TILES),
    st.builds("T.reduce_sum({}, {}, dim=1)".format, TILES, ROWS),
    st.builds("T.clear({})".format, TILES | ROWS),
    st.builds("T.copy({}, {})".format, TILES, TILES),
).map(lambda line: [line])
SIMPLE = st.one_of(TILE_LOOPS, TILE_LOOPS, ROW_LOOPS, CALLS)
# The tile `d` is used in these two only: a temporary that is set and read, and a tile that is fetched in a loop.
READS = st.builds("{0}[i, j] = {1} * d[i, j]".format, TILES, TILE_VALUES)
TEMPORARIES = st.tuples(formulas(TILE_VALUES), READS).map(
    lambda values: [
        "for i, j in T.grid(block_M, N):",
        f"    d[i, j] = {values[0]}",
        "for i, j in T.grid(block_M, N):",
        f"    {values[1]}",
    ]
)
FETCHES = READS.map(
    lambda line: [
        "for k in T.serial(2):",
        "    T.copy(X[bx * block_M, 0], d)",
        "    for i, j in T.grid(block_M, N):",
        f"        {line}",
    ]
)
REPEATED = st.lists(SIMPLE, min_size=1, max_size=3).map(
    lambda parts: ["for k in T.serial(2):", *indented(list(chain(*parts)))]
)
BODIES = st.lists(
    st.one_of(SIMPLE, SIMPLE, TEMPORARIES, FETCHES, REPEATED), min_size=1, max_size=4
).map(lambda parts: list(chain(*parts)))


@st.composite
def kernels(draw: st.DrawFn) -> KernelSource:
    """A kernel over blocks of two rows: copies in, loops and reductions, and one copy out."""
    start = [f"T.copy(X[bx * block_M, 0], {tile})" for tile in draw(st.sets(TILES, max_size=2))]
    last = draw(TILES)
    final = ["for i, j in T.grid(block_M, N):", f"    {last}[i, j] = {draw(formulas(TILE_VALUES))}"]
    end = [*(final if draw(st.booleans()) else []), f"T.copy({last}, Y[bx * block_M, 0])"]
    if draw(st.booleans()):
        direct = f"Y[bx * block_M + i, j] = {last}[i, j] * {draw(TILE_VALUES)}"
        end = ["for i, j in T.grid(block_M, N):", f"    {direct}"]
    elif draw(st.booleans()):
        end = ["for k in T.serial(2):", *indented([*draw(TILE_LOOPS), *end])]
    return kernel("\n".join([*ALLOCATIONS, *sorted(start), *draw(BODIES), *end]))


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(source=kernels())
def test_an_edited_kernel_computes_the_same(source: KernelSource) -> None:
    found = [outcome(strategy, source) for strategy in STRATEGIES]
    edits = [edit for edits in found if isinstance(edits, list) for edit in edits]
    x = np.random.default_rng(0).normal(size=(5, 3))
    before = interpret(source, x, 2, 1)
    # Elements that depend on what was in memory before are nobody's promise.
    settled = before == interpret(source, x, 2, 2)
    for edit in edits:
        event(edit.strategy)
        after = interpret(KernelSource(edit.text, "op"), x, 2, 1)
        np.testing.assert_allclose(
            after[settled], before[settled], rtol=1e-9, atol=1e-9, err_msg=edit.id
        )
