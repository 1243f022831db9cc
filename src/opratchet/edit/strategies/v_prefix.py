"""The present names of the vector API in place of `npuir_*`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import libcst as cst

from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.source import dotted
from opratchet.edit.splice import Places, spliced
from opratchet.edit.tree import walk

# As upstream lists them; where the new name has no `v` in front, it is the bare name.
_V = """
    add sub mul div max min or and xor not pow shl shr exp exp2 ln log2 sqrt rsqrt rec abs relu sigmoid clamp
    select cmp cast bitcast brc
"""
_PLAIN = """
    vcos vsin verf vtanh load_nd2nz store_nz2nd store_fixpipe fill clear reduce cumsum atomic_add atomic_addx4
    gather interleave deinterleave transpose arange concat pad flip print reshape
"""

NEW_NAMES: Mapping[str, str] = {
    **{f"npuir_{name}": f"v{name}" for name in _V.split()},
    **{f"npuir_{name}": name for name in _PLAIN.split()},
    "npuir_dot": "gemm",
}


class VPrefix(Strategy):
    """Rename every `T.npuir_*` call of the kernel at once.

    Upstream the new names are aliases of the old functions, so that no gain is to be expected from them alone; the
    seed lists the row, and the measurement decides.
    """

    id = "v_prefix"
    row = "v_prefix"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "v-prefix API 替换 npuir_xxx",
        "en": "v-prefix API for npuir_xxx",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit that renames all of them."""
        source = situation.source
        names = [name for part in walk(source.factory) if (name := _old_name(part))]
        if not names:
            return NotApplicable("the kernel calls no npuir_* function")
        places = Places(source)
        splices = [places.replace(name, NEW_NAMES[name.value]) for name in names]
        olds = sorted({name.value for name in names})
        title = ", ".join(f"{old} -> {NEW_NAMES[old]}" for old in olds)
        return [Edit(self.id, "npuir", title, spliced(source.text, splices))]


def _old_name(node: cst.CSTNode) -> cst.Name | None:
    """The `npuir_add` of `T.npuir_add`, when it has a new name."""
    known = isinstance(node, cst.Attribute) and node.attr.value in NEW_NAMES and dotted(node.value)
    return node.attr if isinstance(node, cst.Attribute) and known else None
