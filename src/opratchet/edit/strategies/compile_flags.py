"""Other compile flags: optimisation level, vector width, unrolling. Fast-math is a strategy of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from opratchet.edit.knobs import Knob, KnobKind, Value, find_knobs
from opratchet.edit.knobs.tables import FAST_MATH, OPTIMISATION
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import move, moves

_UNROLLING = 1.08
_FROM_NOTHING = 10.0  # `-O3` against no optimisation at all was seen to give 2 to 57 times


class CompileFlags(Strategy):
    """Turn one group of compile flags to another value."""

    id = "compile_flags"
    row = "compile_flags"
    title: ClassVar[Mapping[str, str]] = {"zh": "编译选项", "en": "compile flags"}
    gain = (0.0, 0.10)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """Without an optimisation level, only that; else each other value of each group."""
        if not situation.target.compile_flags:
            return NotApplicable("this target takes no compile flags")
        flags = find_knobs(situation, (KnobKind.FLAG,))
        knobs = [knob for knob in flags if not knob.name.startswith(f"flag {FAST_MATH}")]
        if not knobs:
            return NotApplicable(
                "the compile flags are not written out as strings in the decorator"
            )
        level = next((knob for knob in knobs if knob.name == f"flag {OPTIMISATION}"), None)
        if level is not None and "-O" not in str(level.current):
            first = level.alternatives[0] or level.alternatives[1]
            return [move(self.id, situation.source, level, first, _title, _FROM_NOTHING)]
        optimised = [_optimised(knob) for knob in knobs]
        found = [_hopeful(edit) for edit in moves(self.id, situation.source, optimised, _title)]
        return sorted(found, key=lambda edit: -edit.prior) or NotApplicable(
            "no other value of the compile flags is legal here"
        )


def _hopeful(edit: Edit) -> Edit:
    """Unrolling helps the short inner loops that other rewrites leave."""
    return replace(edit, prior=_UNROLLING) if edit.key.endswith("=-funroll-loops") else edit


def _optimised(knob: Knob) -> Knob:
    """The optimisation level is changed, never taken away; other groups come in before they go."""
    if knob.name != f"flag {OPTIMISATION}":
        return knob
    return knob.limited(tuple(value for value in knob.legal if value))


def _title(knob: Knob, value: Value) -> str:
    if value == "":
        return f"without {knob.current}"
    return f"{knob.current} -> {value}" if knob.current else f"add {value}"
