"""Fewer buffers: run two neighbouring element-wise loops as one, so that a value is used while it is at hand.

Both loops have the same kind and extents. Whatever one of them writes and the other touches must be the same element
in the same iteration: all its indices are equal and contain every loop variable. Then no iteration of the second
loop waits for a later one of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import effects
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.tree import (
    Statement,
    Surgery,
    block_of,
    exchange,
    fingerprint,
    free_names,
    name_nodes,
)


class FuseLoops(Strategy):
    """Make one loop of two."""

    id = "fuse-loops"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "相邻逐元素循环融合",
        "en": "fuse neighbouring element-wise loops",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each pair of neighbouring loops that can run as one."""
        kernel = tl.Kernel.of(situation.source)
        blocks = [kernel.body, *(block_of(line) for line in kernel.statements)]
        views = [(tl.loop(a), tl.loop(b)) for block in blocks for a, b in pairwise(block)]
        pairs = [(a, b) for a, b in views if a and b and _header(a) == _header(b)]
        found = [self._edit(kernel, number, *pair) for number, pair in enumerate(pairs)]
        return answer(found, "no two neighbouring loops have the same extents")

    def _edit(self, kernel: tl.Kernel, number: int, first: tl.Loop, second: tl.Loop) -> Edit | str:
        loops = f"the loops over {', '.join(first.targets)}"
        if hidden := (set(first.targets) - set(second.targets)) & free_names(second.node.body):
            return f"{loops} cannot run as one: the second means something else by `{min(hidden)}`"
        renamed = [_renamed(line, first, second) for line in second.body]
        if why := _dependence(kernel, first, renamed):
            return f"{loops} cannot run as one: {why}"
        surgery = Surgery(kernel.source.module)
        surgery.insert_after(first.body[-1], _commented(second.node.leading_lines, renamed))
        surgery.discard(second.node)
        written = dict.fromkeys(a.name for a in effects(second.node, kernel.buffers) if a.writes)
        title = f"fuse {loops} that end in {', '.join(written)}"
        return Edit(self.id, f"{'.'.join(first.targets)}@{number}", title, surgery.apply)


def _header(loop: tl.Loop) -> str:
    """What two loops must share: everything but the names of their variables."""
    return f"{len(loop.targets)} {fingerprint(loop.node.iter)}"


def _renamed(line: Statement, first: tl.Loop, second: tl.Loop) -> Statement:
    names = dict(zip(second.targets, first.targets, strict=True))
    changes: dict[cst.CSTNode, cst.CSTNode] = {
        node: node.with_changes(value=names[node.value])
        for node in name_nodes(line)
        if names.get(node.value, node.value) != node.value
    }
    return exchange(line, changes)


def _commented(lines: Sequence[cst.EmptyLine], body: Sequence[Statement]) -> list[Statement]:
    """The second body, under the comments that stood above its loop."""
    comments = [line for line in lines if line.comment]
    above = [*comments, *body[0].leading_lines]
    return [body[0].with_changes(leading_lines=above), *body[1:]]


def _dependence(kernel: tl.Kernel, first: tl.Loop, second: Sequence[Statement]) -> str:
    """What forbids to run iteration k of the second body right after that of the first; empty when nothing does."""
    left = [a for line in first.body for a in effects(line, kernel.buffers)]
    right = [a for line in second for a in effects(line, kernel.buffers)]
    written = {a.name for a in [*left, *right] if a.writes}
    shared = written & {a.name for a in left} & {a.name for a in right}
    if scalars := (shared - kernel.buffers) | (written & free_names(first.node.iter)):
        return f"`{min(scalars)}` is set by both or bounds the loop"
    for name in sorted(shared):
        if not _apart([a.key for a in [*left, *right] if a.name == name], first.targets):
            return f"`{name}` is written by one and used at other places by the other"
    return ""


def _apart(keys: Sequence[tuple[str, ...]], variables: Sequence[str]) -> bool:
    """Whether different iterations touch different elements: each variable is everywhere the same index."""
    positions = list(zip(*keys, strict=False))
    return all(any(set(column) == {variable} for column in positions) for variable in variables)
