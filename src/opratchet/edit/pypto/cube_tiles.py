"""F-9: another cube tile.

A tile is `[m0, m1], [k0, k1], [n0, n1]` (level 0 and level 1), where k may have three values, `[k0, ka1, kb1]`: its level 1 for A
and for B apart. What may be: `0 < L0 <= L1`, `L1 % L0 == 0`, and each buffer within its memory, with level 0 rounded up to the
fractal of 16 (PyPTO's documentation of `set_cube_tile_shapes`). Recommended shapes come first, then one value at a time is
doubled or halved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from opratchet.edit.dialects.pypto import CubeTile, Pypto, listed
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.pypto.legality import Shape, cube_fault

LARGEST = 2048
PRIOR = 1.20  # the top of the catalogue's band for a recommended shape
STEP = 1.05

RECOMMENDED: tuple[Shape, ...] = (
    ((128, 128), (64, 256), (256, 256)),
    ((256, 256), (64, 256), (128, 128)),
    ((128, 128), (128, 512), (128, 128)),
    ((128, 128), (128, 128), (128, 128)),
    ((96, 96), (64, 1536, 256), (128, 128)),
    ((64, 64), (128, 256), (128, 128)),
    ((32, 32), (128, 512), (128, 128)),
    ((16, 16), (256, 512), (128, 128)),
)


class CubeTiles(Strategy):
    """Another shape for one cube tile: recommended ones first, then one value doubled or halved."""

    id = "cube_tile"
    row = "F-9"
    title: ClassVar[Mapping[str, str]] = {"zh": "cube tile 形状", "en": "another cube tile"}
    gain = (0.05, 0.20)
    eases = frozenset({"core_use", "granularity"})
    document = "docs/pypto.md"

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """Edits of every cube tile, those of recommended shapes first."""
        view = Pypto.of(situation.source)
        if not view.cube_tiles:
            return NotApplicable("the kernel sets no cube tile with literal numbers")
        memories, width = situation.target.memories, view.element_bytes
        return [
            _edit(self.id, view, tile, shape, prior)
            for tile in view.cube_tiles
            for shape, prior in _others((tile.m, tile.k, tile.n))
            if not cube_fault(shape, width, memories)
        ]


def _others(now: Shape) -> Iterator[tuple[Shape, float]]:
    seen = {now}
    offered = [(shape, PRIOR) for shape in RECOMMENDED] + [(shape, STEP) for shape in _steps(now)]
    for shape, prior in offered:
        if shape not in seen:
            seen.add(shape)
            yield shape, prior


def _steps(now: Shape) -> Iterator[Shape]:
    for part in range(3):
        for level in range(len(now[part])):
            for value in (now[part][level] * 2, now[part][level] // 2):
                if 0 < value <= LARGEST:
                    parts = [*now]
                    parts[part] = (*now[part][:level], value, *now[part][level + 1 :])
                    yield parts[0], parts[1], parts[2]


def _edit(strategy: str, view: Pypto, tile: CubeTile, shape: Shape, prior: float) -> Edit:
    def text(parts: Shape) -> str:
        return ", ".join(map(listed, parts))

    which = f" {tile.number + 1}" if len(view.cube_tiles) > 1 else ""
    arguments = tile.node.args[:3]
    return Edit(
        strategy,
        f"{tile.number}:{text(shape)}",
        f"cube tile{which} {text((tile.m, tile.k, tile.n))} -> {text(shape)}",
        lambda: view.splice(
            *(
                view.places.replace(argument.value, listed(part))
                for argument, part in zip(arguments, shape, strict=True)
            )
        ),
        prior,
    )
