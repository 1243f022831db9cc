"""Another size for a tile: the first row of the seed's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.knobs import KnobKind, find_knobs
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import moves


class BlockSize(Strategy):
    """Turn each tile size to each legal value: a block that fits the caches, and leaves enough work in a row."""

    id = "block_size"
    row = "block_size"
    title: ClassVar[Mapping[str, str]] = {"zh": "调整 block size", "en": "another block size"}
    gain = (0.10, 0.30)
    eases = frozenset({"block_size", "memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each legal value of each tile size, the nearest values first."""
        knobs = find_knobs(situation, (KnobKind.TILE,))
        found = moves(self.id, situation.source, knobs)
        if found:
            return found
        if not knobs:
            return NotApplicable(
                "the kernel has no tile size of its own: neither a default of its factory nor a constant"
            )
        names = ", ".join(knob.name for knob in knobs)
        return NotApplicable(f"no other value of {names} is legal here")
