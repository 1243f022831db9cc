"""Fast-math: rules of floating-point arithmetic that the compiler may break. It has to pass the accuracy gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects.tilelang import Kernel, primitive, reduce
from opratchet.edit.knobs import Knob, KnobKind, Value, find_knobs
from opratchet.edit.knobs.tables import FAST_MATH, OPTIMISATION
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.strategies.moves import move
from opratchet.edit.tree import walk

# Functions with a vector form in libmvec. On the code of the shipped examples, a vector `exp` or `erf` was seen to make
# a kernel two to seven times faster, a sum whose order is free about twice.
_VECTOR_LIBRARY = {
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "erf",
    "tanh",
    "sin",
    "cos",
    "pow",
}
_LIKELY = 1.5


class FastMath(Strategy):
    """Add `-ffast-math`, or one of its milder parts, to the compile flags."""

    id = "fast_math"
    row = "fast_math"
    title: ClassVar[Mapping[str, str]] = {"zh": "fast-math 编译选项", "en": "fast-math"}
    gain = (0.0, 0.50)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """The parts first, from the mildest on, then all of them, then taking out what is there."""
        flags = {knob.name: knob for knob in find_knobs(situation, (KnobKind.FLAG,))}
        knobs = [k for name, k in flags.items() if name.startswith(f"flag {FAST_MATH}")]
        if not knobs:
            return NotApplicable(_why_none(situation))
        level = flags.get(f"flag {OPTIMISATION}")
        if level is not None and "-O" not in str(level.current):
            return NotApplicable(
                "the compiler does not optimise yet; see the strategy compile_flags"
            )
        if flags[f"flag {FAST_MATH}"].current:
            knobs = [flags[f"flag {FAST_MATH}"]]  # it contains every part
        pairs = [(knob, value) for knob in knobs for value in knob.alternatives]
        pairs.sort(key=lambda pair: pair[1] == "")
        likely = _likely(situation)
        return [
            move(
                self.id, situation.source, k, v, _title, _LIKELY if v and k.name in likely else 1.0
            )
            for k, v in pairs
        ]


def _why_none(situation: Situation) -> str:
    if not any(group.startswith(FAST_MATH) for group in situation.target.compile_flags):
        return "this target takes no such compile flags"
    return "the compile flags are not written out as strings in the decorator"


def _likely(situation: Situation) -> set[str]:
    """Knobs that the kernel is likely to gain by."""
    kernel = Kernel.of(situation.source)
    calls = {primitive(p) for line in kernel.body for p in walk(line) if isinstance(p, cst.Call)}
    found = set()
    if calls & _VECTOR_LIBRARY:
        found |= {"vector_library", "parts"}
    if kernel.find(reduce):
        found |= {"reassociate", "parts"}
    return {f"flag {FAST_MATH}.{name}" for name in found}


def _title(knob: Knob, value: Value) -> str:
    part = knob.name.removeprefix("flag ").replace("_", "-").replace(".", ": ")
    if value == "":
        return f"without {part} ({knob.current})"
    return f"{part} ({value})"
