"""Data reuse: split a reduction over the innermost axis into independent lanes, so that it can be vectorised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import numbered
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.reductions import (
    Reduction,
    lane_counts,
    reductions,
    why_not,
    with_lanes,
)
from opratchet.edit.tree import Surgery

_PRIOR = {16: 1.6, 32: 1.55, 8: 1.45}


class Lanes(Strategy):
    """Reduce into several partial accumulators instead of one."""

    id = "lanes"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "归约拆成独立通道",
        "en": "split a reduction into lanes",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each reduction and number of lanes."""
        kernel = tl.Kernel.of(situation.source)
        seen = reductions(kernel)
        found: list[Edit | str] = [one for one in seen if isinstance(one, str)]
        split = [one for one in seen if not isinstance(one, str)]
        for site, one in zip(numbered(one.base for one in split), split, strict=True):
            found += self._split(kernel, one, site)
        return answer(found, "there is no reduction over the innermost axis")

    def _split(self, kernel: tl.Kernel, found: Reduction, site: str) -> Iterator[Edit | str]:
        if why := why_not(kernel, found):
            yield why
            return
        for lanes in lane_counts(kernel, found):
            surgery = Surgery(kernel.source.module)
            with_lanes(kernel, surgery, found, lanes)
            title = f"split the reduction into {found.base} into {lanes} lanes"
            yield Edit(self.id, f"{site}:{lanes}", title, surgery.apply, _PRIOR[lanes])
