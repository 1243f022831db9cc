"""Pass configurations: options of the DSL's own compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.knobs import Knob, KnobKind, Value, find_knobs
from opratchet.edit.knobs.tables import PASS_CONFIGS
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import moves


class PassConfigs(Strategy):
    """Turn one pass configuration that was seen to change the code of this target."""

    id = "pass_configs"
    row = "pass_configs"
    title: ClassVar[Mapping[str, str]] = {"zh": "编译 pass 配置", "en": "pass configurations"}
    gain = (0.0, 0.05)
    eases = frozenset({"compute_density", "memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each legal value of each configuration; those for buffers belong to `double_buffer`."""
        rows = PASS_CONFIGS.get(situation.target.backend, ())
        names = {f"pass {row.key}" for row in rows if not row.buffers}
        if not names:
            return NotApplicable("no pass configuration is known to change the code of this target")
        knobs = [k for k in find_knobs(situation, (KnobKind.PASS,)) if k.name in names]
        if not knobs:
            return NotApplicable(
                "the pass configurations are not written out as a dict in the decorator"
            )
        return moves(self.id, situation.source, knobs, _title)


def _title(knob: Knob, value: Value) -> str:
    key = knob.name.removeprefix("pass ")
    if value is None:
        return f"without {key}"
    return f"{key} = {value} ({knob.note})"
