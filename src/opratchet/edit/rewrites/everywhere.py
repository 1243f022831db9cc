"""One rewrite at every place where it fits, as one change.

Where a kernel has several copies to drop or several reductions to split, a round for each would spend rounds on steps
that are each too small to be told from noise. The rewrite is the same at every place, so it is one optimisation point:
these strategies apply another one again and again, each place once, until it has nothing more to offer. The edits
at single places remain, for where only some of them pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.lanes import Lanes
from opratchet.edit.rewrites.reciprocal import Reciprocal
from opratchet.edit.rewrites.reduce_inline import ReduceInline
from opratchet.edit.rewrites.register_tile import RegisterTile
from opratchet.edit.source import KernelSource

MOST_PLACES = 12
# All places together promise a little more than the best one alone.
TOGETHER = 1.1


def place(edit: Edit) -> str:
    """Where an edit applies: its key without the variant, `row_sum:16` -> `row_sum`."""
    return f"{edit.strategy}/{edit.key.rpartition(':')[0] or edit.key}"


class Everywhere(Strategy):
    """Applies its parts, best guess first, at each place once."""

    parts: ClassVar[tuple[Strategy, ...]]

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit, where there are two places or more."""
        best = self._best(situation)
        if len(best) < 2:
            return NotApplicable("there are not two places for it")
        names = ", ".join(name.partition("/")[2] for name in best)
        prior = TOGETHER * max(edit.prior for edit in best.values())

        def made() -> str:
            return self._apply(situation)

        return [Edit(self.id, names, f"{self.title['en']} ({names})", made, prior)]

    def _best(self, situation: Situation) -> dict[str, Edit]:
        """The best edit of each place, the best place first."""
        found: list[Edit] = []
        for part in self.parts:
            offered = part.edits(situation)
            found += [] if isinstance(offered, NotApplicable) else offered
        best: dict[str, Edit] = {}
        for edit in sorted(found, key=lambda edit: -edit.prior):
            best.setdefault(place(edit), edit)
        return best

    def _apply(self, situation: Situation) -> str:
        done: set[str] = set()
        kernel = situation.source.kernel
        for _ in range(MOST_PLACES):
            best = self._best(situation)
            left = [name for name in best if name not in done]
            if not left:
                break
            done.add(left[0])
            source = KernelSource(best[left[0]].text, kernel)
            situation = Situation(source, situation.target, situation.shapes, situation.knobs)
        return situation.source.text


class DropCopies(Everywhere):
    """Drop every copy-through buffer."""

    id = "drop-copies"
    row = "fewer_buffers"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "去掉全部搬运 buffer",
        "en": "drop every copy-through buffer",
    }
    gain = (0.05, 0.10)
    eases = frozenset({"memory"})
    parts = (DropCopyIn(), DropCopyOut())


class SplitReductions(Everywhere):
    """Split every reduction into lanes."""

    id = "split-reductions"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "全部归约拆成独立通道",
        "en": "split every reduction into lanes",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density"})
    parts = (ReduceInline(), Lanes())


class RegisterTiles(Everywhere):
    """Block every matrix product for registers."""

    id = "register-tiles"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "全部矩阵乘寄存器分块",
        "en": "block every product for registers",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density"})
    parts = (RegisterTile(),)


class Reciprocals(Everywhere):
    """Multiply by a reciprocal instead of dividing, everywhere."""

    id = "reciprocals"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "除法全部改为乘倒数",
        "en": "divide once and multiply, everywhere",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density"})
    parts = (Reciprocal(),)
