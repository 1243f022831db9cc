"""Fewer buffers: let two local buffers that are never needed at the same time share one memory.

Both must have the same dims, dtype and scope. Seen from the smallest statement list that holds all their uses, the
last statement that uses the one comes before the first that uses the other. They may also meet in a single loop, when
each iteration reads element `e` of the old one and then sets element `e` of the new one: the loop then works in place.
In a loop body, both must be set anew in every iteration, so that nothing is carried from one to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import ClassVar

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import Access, effects, fills
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.tree import Statement, Surgery, name_nodes, nested


class MergeBuffers(Strategy):
    """Use one buffer for two that do not live at the same time."""

    id = "merge-buffers"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "合并生命周期不相交的 buffer",
        "en": "merge buffers that do not live together",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each pair of buffers that can share, the largest rank only."""
        kernel = tl.Kernel.of(situation.source)
        rank = max((len(a.dims) for a in kernel.allocs.values()), default=0)
        large = [a for a in kernel.allocs.values() if len(a.dims) == rank]
        pairs = [(a, b) for a, b in permutations(large, 2) if a.like == b.like]
        found = [self._edit(kernel, a, b) for a, b in pairs if succeeds(kernel, a, b)]
        why = "all buffers of one shape and dtype are needed at the same time"
        return answer(found, why if pairs else "no two large buffers have the same shape and dtype")

    def _edit(self, kernel: tl.Kernel, kept: tl.Alloc, gone: tl.Alloc) -> Edit:
        surgery = Surgery(kernel.source.module)
        surgery.remove(gone.node)
        for line in kernel.body:
            for node in name_nodes(line):
                if node.value == gone.name:
                    surgery.replace(node, node.with_changes(value=kept.name))
        title = f"let {gone.name} use the memory of {kept.name}"
        return Edit(self.id, f"{kept.name}+{gone.name}", title, surgery.apply)


def succeeds(kernel: tl.Kernel, old: tl.Alloc, new: tl.Alloc) -> bool:
    """Whether `new` comes to life only where `old` is needed no more."""
    block, in_loop = _home(kernel, old, new)
    olds = [line for line in block if _uses(line, old)]
    news = [line for line in block if _uses(line, new)]
    if not olds or not news or (in_loop and not (fills(olds[0], old) and fills(news[0], new))):
        return False
    last, first = block.index(olds[-1]), block.index(news[0])
    return last < first or (last == first and _in_place(olds[-1], old, new))


def _home(kernel: tl.Kernel, old: tl.Alloc, new: tl.Alloc) -> tuple[list[Statement], bool]:
    """The smallest statement list with all uses of both, and whether it is repeated by a loop."""
    block, in_loop = list(kernel.body), False
    while True:
        using = [line for line in block if _uses(line, old) or _uses(line, new)]
        view = tl.loop(using[0]) if len(using) == 1 else None
        if view is None or _in_place(view.node, old, new):
            return block, in_loop
        block, in_loop = list(view.body), True


def _uses(line: Statement, buffer: tl.Alloc) -> list[Access]:
    return [a for a in effects(line, {buffer.name}) if a.name == buffer.name]


def _in_place(line: Statement, old: tl.Alloc, new: tl.Alloc) -> bool:
    """Whether each iteration of a loop nest is done with an element of `old` when it sets the same one of `new`."""
    if tl.loop(line) is None:
        return False
    accesses = [a for a in effects(line, {old.name, new.name}) if a.name in (old.name, new.name)]
    order = [(a.name == new.name, a.writes) for a in accesses]
    keys = {a.key for a in accesses}
    reads_then_sets = order == sorted(order, key=lambda item: item[0]) and not any(
        writes for is_new, writes in order if not is_new
    )
    return reads_then_sets and len(keys) == 1 and _distinct(line, keys.pop())


def _distinct(line: Statement, index: Sequence[str]) -> bool:
    """Whether every iteration of the nest has an element of its own."""
    views = [view for part in nested(line) if (view := tl.loop(part))]
    return sorted(index) == sorted(name for view in views for name in view.targets)
