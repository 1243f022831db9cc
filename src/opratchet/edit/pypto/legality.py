"""Gate 2 for PyPTO: what can be proven wrong from the tiles alone.

The rules are those of PyPTO's documentation of `set_vec_tile_shapes` and `set_cube_tile_shapes`: memories of a core, nesting of the
levels, alignment. A rule must be sure; what it cannot tell, PyPTO finds out.
"""

from __future__ import annotations

import math

from opratchet.edit.dialects.pypto import CubeTile, Pypto, VectorTile, listed
from opratchet.edit.model import Target
from opratchet.edit.pypto.cube_tiles import too_large
from opratchet.edit.source import KernelSource

ALIGNMENT = 32  # bytes of a block of the unified buffer
MOST_AXES = 4


def broken_rule(source: KernelSource, target: Target) -> str | None:
    """Text of the first rule that a candidate breaks, or None.

    Raises:
        BadInput: the source has no such kernel.
    """
    view = Pypto.of(source)
    texts = [_vector(tile, view.element_bytes, target) for tile in view.vector_tiles]
    texts += [_cube(tile, view.element_bytes, target) for tile in view.cube_tiles]
    return next(filter(None, texts), None)


def _vector(tile: VectorTile, width: int, target: Target) -> str:
    shape = listed(tile.tile)
    if len(tile.tile) > MOST_AXES:
        return f"the vector tile {shape} has {len(tile.tile)} axes, limit {MOST_AXES}"
    last = tile.tile[-1] * width
    if last % ALIGNMENT:
        return f"the last axis of the vector tile {shape} takes {last} bytes, no multiple of {ALIGNMENT}"
    size, limit = math.prod(tile.tile) * width, target.memories.get("UB")
    if limit is not None and size > limit:
        return f"the vector tile {shape} takes {size} bytes of UB, limit {limit}"
    return ""


def _cube(tile: CubeTile, width: int, target: Target) -> str:
    for part in (tile.m, tile.k, tile.n):
        if len(part) < 2 or any(outer < part[0] or outer % part[0] for outer in part[1:]):
            return f"in the cube tile {listed(part)} level 1 is no multiple of level 0"
    return too_large((tile.m, tile.k, tile.n), width, target.memories)
