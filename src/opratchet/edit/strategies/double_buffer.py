"""Two buffers for each copy, so that one is filled while the other is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.knobs import Knob, KnobKind, find_knobs
from opratchet.edit.knobs.tables import PASS_CONFIGS
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import move, moves


class DoubleBuffer(Strategy):
    """Let the compiler give copies several buffers, or ask for two stages where a loop has fewer."""

    id = "double_buffer"
    row = "double_buffer"
    title: ClassVar[Mapping[str, str]] = {"zh": "double-buffer / 多缓冲", "en": "double buffering"}
    gain = (0.10, 0.15)
    eases = frozenset({"pipeline_depth"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """Pass configurations for buffers first, then `num_stages=2`."""
        if not situation.target.multi_buffering:
            return NotApplicable(
                "copies and computation run on the same core here, so a second buffer has nothing to overlap with"
            )
        found = moves(self.id, situation.source, _buffering(situation))
        found += [
            move(self.id, situation.source, knob, 2)
            for knob in find_knobs(situation, (KnobKind.STAGES,))
            if knob.current in (None, 0, 1) and 2 in knob.alternatives
        ]
        return found or NotApplicable("every pipelined loop has two stages or more already")


def _buffering(situation: Situation) -> list[Knob]:
    rows = PASS_CONFIGS.get(situation.target.backend, ())
    names = {f"pass {row.key}" for row in rows if row.buffers}
    knobs = find_knobs(situation, (KnobKind.PASS,))
    return [knob for knob in knobs if knob.name in names]
