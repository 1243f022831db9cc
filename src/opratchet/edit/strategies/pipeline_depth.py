"""More stages for `T.Pipelined`: while one stage is computed with, copies fill the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects.tilelang import copy
from opratchet.edit.knobs import Knob, KnobKind, find_knobs
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import move, moves
from opratchet.edit.tree import walk


class PipelineDepth(Strategy):
    """Turn `num_stages` to 1 to 4; make a serial loop that copies a pipelined one.

    Where the target has no asynchronous copies, the depth cannot matter. It is still tried, once, with the next deeper
    value: the tuner sees that the generated code is the same and records it, so that nobody has to take it on trust.
    """

    id = "pipeline_depth"
    row = "pipeline_depth"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "增加 T.Pipelined 流水深度",
        "en": "deeper T.Pipelined",
    }
    gain = (0.10, 0.20)
    eases = frozenset({"pipeline_depth"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """The next deeper value first."""
        stages = find_knobs(situation, (KnobKind.STAGES,))
        if not situation.target.pipelining:
            return self._once(situation, stages)
        loops = [knob for knob in find_knobs(situation, (KnobKind.LOOP,)) if _copies(knob)]
        found = moves(self.id, situation.source, stages)
        found += [
            move(self.id, situation.source, knob, value)
            for knob in loops
            for value in knob.alternatives
            if knob.current in ("serial", "range") and str(value).startswith("Pipelined")
        ]
        return found or NotApplicable(
            "no loop copies from global memory, so nothing can be overlapped"
        )

    def _once(self, situation: Situation, stages: list[Knob]) -> list[Edit] | NotApplicable:
        for knob in stages:
            if knob.alternatives:
                return [move(self.id, situation.source, knob, knob.alternatives[0])]
        return NotApplicable(
            "the kernel has no T.Pipelined loop, and this target has no asynchronous copies to overlap"
        )


def _copies(knob: Knob) -> bool:
    """Whether the loop copies tiles."""
    assert isinstance(knob.site, cst.For)
    return any(copy(part) for part in walk(knob.site))
