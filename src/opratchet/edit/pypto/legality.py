"""Gate 2 for PyPTO: what can be proven wrong from the tiles alone.

The rules are those of PyPTO's documentation of `set_vec_tile_shapes` and `set_cube_tile_shapes`: memories of a core, nesting of the
levels, alignment. A rule must be sure; what it cannot tell, PyPTO finds out. Strategies offer nothing that breaks one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from opratchet.edit.dialects.pypto import Numbers, Pypto, listed
from opratchet.edit.model import Target
from opratchet.edit.source import KernelSource

ALIGNMENT = 32  # bytes of a block of the unified buffer
MOST_AXES = 4
FRACTAL = 16  # level 0 is rounded up to it
ACCUMULATOR_BYTES = 4  # of an element in L0C

Shape: TypeAlias = tuple[Numbers, Numbers, Numbers]
"""A cube tile: m, k and n."""


def broken_rule(source: KernelSource, target: Target) -> str | None:
    """Text of the first rule that a candidate breaks, or None.

    Raises:
        BadInput: the source has no such kernel.
    """
    view = Pypto.of(source)
    width, memories = view.element_bytes, target.memories
    texts = [vector_fault(tile.tile, width, memories) for tile in view.vector_tiles]
    texts += [cube_fault((tile.m, tile.k, tile.n), width, memories) for tile in view.cube_tiles]
    return next(filter(None, texts), None)


def vector_fault(tile: Numbers, width: int, memories: Mapping[str, int]) -> str:
    """What is wrong with a vector tile, with the arithmetic; empty when nothing is known to be.

    Args:
        tile: Extents of its axes.
        width: Bytes of an element.
        memories: Bytes of each memory of a core.
    """
    if len(tile) > MOST_AXES:
        return f"the vector tile {listed(tile)} has {len(tile)} axes, limit {MOST_AXES}"
    last = tile[-1] * width
    if last % ALIGNMENT:
        return f"the last axis of the vector tile {listed(tile)} takes {last} bytes, no multiple of {ALIGNMENT}"
    size = math.prod(tile) * width
    if size > memories.get("UB", size):
        return f"the vector tile {listed(tile)} takes {size} bytes of UB, limit {memories['UB']}"
    return ""


def cube_fault(shape: Shape, width: int, memories: Mapping[str, int]) -> str:
    """What is wrong with a cube tile, with the arithmetic; empty when nothing is known to be.

    Args:
        shape: Levels 0 and 1 of m, k and n; k may have a level 1 for A and one for B.
        width: Bytes of an element of A and B.
        memories: Bytes of each memory of a core.
    """
    for part in shape:
        if len(part) < 2 or any(outer < part[0] or outer % part[0] for outer in part[1:]):
            return f"in the cube tile {listed(part)} level 1 is no multiple of level 0"
    m, k, n = shape
    m0, k0, n0 = (-(-part[0] // FRACTAL) * FRACTAL for part in shape)
    taken = {
        "L0A": m0 * k0 * width,
        "L0B": k0 * n0 * width,
        "L0C": m0 * n0 * ACCUMULATOR_BYTES,
        "L1": (m[1] * k[1] + k[-1] * n[1]) * width,
    }
    for name, size in taken.items():
        if size > memories.get(name, size):
            return f"the cube tile takes {size} bytes of {name}, limit {memories[name]}"
    return ""
