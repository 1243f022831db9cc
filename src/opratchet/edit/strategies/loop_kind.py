"""Another kind for a loop: serial, unrolled, vectorised, parallel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.knobs import KnobKind, find_knobs
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import moves


class LoopKind(Strategy):
    """Turn each loop to each kind that the target takes. Pipelining a loop is the business of `pipeline_depth`."""

    id = "loop_kind"
    row = "loop_kind"
    title: ClassVar[Mapping[str, str]] = {"zh": "调整循环类型", "en": "another kind of loop"}
    gain = (0.0, 0.05)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each legal kind of each loop; when there is none, why each kind is refused."""
        knobs = find_knobs(situation, (KnobKind.LOOP,))
        plain = [
            knob.limited(tuple(v for v in knob.legal if not str(v).startswith("Pipelined")))
            for knob in knobs
        ]
        found = moves(self.id, situation.source, plain)
        if found:
            return found
        if not knobs:
            return NotApplicable("the kernel has no loop of its own")
        return NotApplicable("; ".join(dict.fromkeys(knob.note for knob in knobs)))
