"""F-10: another vector tile.

The tile is one decision, so a move may change several of its axes at once where it takes up a recommended shape; from there on one
axis moves at a time. What a tile may be: each axis a power of two or the whole extent of an axis of some tensor, the last one
aligned to 32 bytes, and all of it within the unified buffer, of which an operation holds at least its input and its output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from opratchet.edit.dialects.pypto import Numbers, Pypto, VectorTile
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.pypto.legality import vector_fault

BUFFERS = 2  # an operation's input and its output lie in the unified buffer together
LARGEST = 1 << 14  # elements of one axis
PRIOR = 1.10  # the middle of the catalogue's band for a recommended shape
STEP = 1.05

# Shapes that the reference recommends as a start for two axes: rows and columns.
RECOMMENDED = ((64, 512), (16, 512), (32, 256), (64, 256), (128, 128), (16, 1024), (8, 1024))


class VectorTiles(Strategy):
    """Another shape for one vector tile: recommended ones first, then one axis doubled or halved."""

    id = "vector_tile"
    row = "F-10"
    title: ClassVar[Mapping[str, str]] = {"zh": "vector tile 形状", "en": "another vector tile"}
    gain = (0.03, 0.10)
    eases = frozenset({"core_use", "granularity"})
    document = "docs/pypto.md"

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """Edits of every vector tile, those of recommended shapes first."""
        view = Pypto.of(situation.source)
        if not view.vector_tiles:
            return NotApplicable("the kernel sets no vector tile with literal numbers")
        return [
            _edit(self.id, view, tile, other, prior)
            for tile in view.vector_tiles
            for other, prior in _others(tile.tile, view.element_bytes, situation)
        ]


def _others(tile: Numbers, width: int, situation: Situation) -> Iterator[tuple[Numbers, float]]:
    seen, memories = {tile}, situation.target.memories
    offered = [(one, PRIOR) for one in _recommended(tile)] + [(one, STEP) for one in _steps(tile)]
    for other, prior in offered:
        taken = BUFFERS * math.prod(other) * width
        fits = taken <= memories.get("UB", taken) and not vector_fault(other, width, memories)
        if fits and other not in seen:
            seen.add(other)
            yield other, prior


def _recommended(tile: Numbers) -> Iterator[Numbers]:
    """The recommended shapes for the last two axes; axes before these stay as they are."""
    if len(tile) >= 2:
        for shape in RECOMMENDED:
            yield (*tile[:-2], *shape)


def _steps(tile: Numbers) -> Iterator[Numbers]:
    """One axis doubled or halved, the last but one first: it decides how many tiles there are."""
    for axis in _by_weight(len(tile)):
        now = tile[axis]
        halved = [now // 2] if now % 2 == 0 else []
        for extent in (now * 2, *halved):
            if extent <= LARGEST:
                yield (*tile[:axis], extent, *tile[axis + 1 :])


def _by_weight(axes: int) -> Sequence[int]:
    return sorted(range(axes), key=lambda axis: (axis == axes - 1, -axis))


def _edit(strategy: str, view: Pypto, tile: VectorTile, other: Numbers, prior: float) -> Edit:
    def text(numbers: Numbers) -> str:
        return ", ".join(map(str, numbers))

    which = f" {tile.number + 1}" if len(view.vector_tiles) > 1 else ""
    return Edit(
        strategy,
        f"{tile.number}:{'x'.join(map(str, other))}",
        f"vector tile{which} ({text(tile.tile)}) -> ({text(other)})",
        partial(view.write, tile.node, f"pypto.set_vec_tile_shapes({text(other)})"),
        prior,
    )
