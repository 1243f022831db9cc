"""Data reuse: fetch a tile once when every iteration of a loop would fetch the same one.

A `T.copy` from a tensor into a local buffer may leave a loop when its place does not depend on the loop and nothing
in the loop changes either side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import assigned, effects
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.source import code
from opratchet.edit.tree import Surgery, free_names


class HoistCopy(Strategy):
    """Move a copy out of the loop that does not change it."""

    id = "hoist-copy"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "循环不变搬运外提",
        "en": "hoist a loop-invariant copy",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"memory", "compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each copy that stands directly in a loop and can leave it."""
        kernel = tl.Kernel.of(situation.source)
        found = [
            self._edit(kernel, loop, copy)
            for loop in kernel.find(tl.loop)
            for line in loop.body
            if (copy := tl.copy(line)) and copy.target.base in kernel.allocs
        ]
        return answer(found, "no copy into a local buffer stands in a loop")

    def _edit(self, kernel: tl.Kernel, loop: tl.Loop, copy: tl.Copy) -> Edit | str:
        name, text = copy.target.base, code(copy.node)
        if why := _kept_by(kernel, loop, copy):
            return f"`{text}` has to stay in its loop: {why}"
        surgery = Surgery(kernel.source.module)
        surgery.insert_before(loop.node, [copy.node.with_changes(leading_lines=[])])
        surgery.remove(copy.node)
        title = f"fetch {name} once, before the loop over {', '.join(loop.targets)}"
        return Edit(self.id, f"{name}@{loop.inner}", title, surgery.apply, prior=1.1)


def _kept_by(kernel: tl.Kernel, loop: tl.Loop, copy: tl.Copy) -> str:
    """What forbids to move the copy in front of the loop; empty when nothing does."""
    name = copy.target.base
    if not copy.target.whole:
        return "it fills only a part of the buffer"
    others = [line for line in loop.body if line is not copy.node]
    if not others:
        return "there is nothing else in the loop"
    changing = {*loop.targets, *assigned(others, kernel.buffers)}
    if free_names(copy.source.node) & changing:
        return "what it fetches depends on the loop"
    elsewhere = [
        a for line in kernel.body for a in effects(line, {name}) if a.writes and a.name == name
    ]
    return f"`{name}` is written elsewhere too" if len(elsewhere) > 1 else ""
