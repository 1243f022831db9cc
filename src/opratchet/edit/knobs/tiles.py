"""Tile sizes: block constants and the defaults of the factory's parameters.

A whole number is a tile size when it is named like one (`block_M`, `BLOCK_SIZE`, `bM`, `TILE_K`), or when it is used as one: it
divides in a `T.ceildiv`, or is an extent of a local buffer. It is none when it gives the shape of a tensor, or when
the golden, the inputs or the tests know it too: such a value is part of the problem, not of the solution.

Legal values are the powers of two up to the dimension that is tiled, and those divisors of it that most workloads
share, as far as the local buffers then fit into the target's local memory. The dimension is found from
`T.ceildiv(M, block_M)`, else by name (`block_M` tiles `M`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import libcst as cst

from opratchet.edit.dialects.tilelang import primitive
from opratchet.edit.knobs.loops import stage_knobs
from opratchet.edit.knobs.model import Knob, KnobKind, Value, Workbench, literal_knob
from opratchet.edit.legality import LocalMemory
from opratchet.edit.model import Situation
from opratchet.edit.names import Names, number
from opratchet.edit.source import code, dotted
from opratchet.edit.tree import free_names, positional, walk

_WORD = "block|blk|tile|chunk"
_NAMED = re.compile(rf"(?:{_WORD})(?:_?size)?(?:_?\w+)?|\w+_(?:{_WORD})(?:_size)?|b[MNKDSHL]", re.I)
_DIMENSION = re.compile(rf"(?:{_WORD}|b)(?:_?size)?_?([a-z]\w*)", re.I)
_LARGEST_DIVISOR = 1 << 16  # nobody tiles by more; keeps the search short for absurd extents
_BEYOND = 16  # a tile of an unknown dimension grows at most this many times


def tile_knobs(bench: Workbench) -> list[Knob]:
    """The tile sizes of a source, without their legal values."""
    used = _Uses(bench)
    stages = {knob.name for knob in stage_knobs(bench)}
    return [
        literal_knob(bench, name, node, KnobKind.TILE)
        for name, node in bench.literals.items()
        if isinstance(node, cst.Integer) and name not in stages and used.as_tile(name)
    ]


class _Uses:
    """How names are used in a factory."""

    def __init__(self, bench: Workbench) -> None:
        annotations = [p.annotation for p in bench.source.body.params.params if p.annotation]
        self._shapes = set().union(*map(free_names, annotations))
        self._divisors = {divisor for _, divisor in divisions(bench.source.factory)}
        self._extents = _names_in(dim for view in bench.kernel.allocs.values() for dim in view.dims)

    def as_tile(self, name: str) -> bool:
        """Whether a whole number of that name is a tile size."""
        if name in self._shapes:
            return False
        return bool(_NAMED.fullmatch(name)) or name in self._divisors | self._extents


def _names_in(texts: Iterable[str]) -> set[str]:
    return set().union(*(re.findall(r"[A-Za-z_]\w*", text) for text in texts))


def divisions(node: cst.CSTNode) -> list[tuple[str, str]]:
    """`(M, block_M)` for each `T.ceildiv(M, block_M)` and each `M // block_M` below a node."""
    found: list[tuple[str, str]] = []
    for part in walk(node):
        if isinstance(part, cst.Call) and _last(part) in ("ceildiv", "cdiv"):
            arguments = positional(part)
            if len(arguments) == 2:
                found.append((code(arguments[0]), code(arguments[1])))
        elif isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.FloorDivide):
            found.append((code(part.left), code(part.right)))
    return found


def _last(call: cst.Call) -> str:
    return primitive(call) or dotted(call.func).rpartition(".")[2]


class TileValues:
    """Legal values of the tile sizes of one source.

    Args:
        situation: Gives the source, the shapes of the workloads and the size of local memory.
    """

    def __init__(self, situation: Situation) -> None:
        self._shapes: Sequence[dict[str, int]] = [dict(shape) for shape in situation.shapes] or [{}]
        self._names = Names(situation.source)
        self._memory = LocalMemory(situation.source)
        self._limit = situation.target.local_bytes
        self._divisions = divisions(situation.source.factory)

    def limit(self, knob: Knob) -> Knob:
        """The knob with its legal values, the nearest to the present one first."""
        current = knob.current if isinstance(knob.current, int) else 1
        wanted = sorted({current, *_sizes(self.dimensions(knob.name), current)})
        fitting = [value for value in wanted if value == current or self.fits(knob.name, value)]
        note = ""
        if len(fitting) < len(wanted):
            refused = min(set(wanted) - set(fitting))
            note = f"from {refused} on, the local buffers take more than {self._limit} bytes"
        return knob.limited(tuple(nearest_first(fitting, current)), note)

    def dimensions(self, name: str) -> list[int]:
        """The extent that a tile size divides, in each workload; empty when it is not known."""
        divided = [above for above, below in self._divisions if below == name]
        match = _DIMENSION.fullmatch(name)
        if match:
            divided.append(match.group(1))
        for expression in divided:
            found = [number(expression, self._names.on(shape)) for shape in self._shapes]
            extents = [int(extent) for extent in found if extent is not None and extent >= 1]
            if extents:
                return extents
        return []

    def fits(self, name: str, value: Value) -> bool:
        """Whether the local buffers of every workload fit when the name has that value."""
        return not any(
            self._memory.over(self._limit, self._names.on(shape, {name: value}))
            for shape in self._shapes
        )


def _sizes(dimensions: Sequence[int], current: int) -> set[int]:
    """Powers of two up to the largest dimension, and the divisors that most of the dimensions share."""
    top = max(dimensions, default=current * _BEYOND)
    powers = {1 << bit for bit in range(max(top - 1, 0).bit_length() + 1)}
    shared = Counter(d for extent in dimensions for d in divisors(extent))
    return powers | {d for d, count in shared.items() if 2 * count > len(dimensions)}


def divisors(extent: int) -> list[int]:
    """All divisors of a whole number, ascending."""
    lower = [d for d in range(1, min(math.isqrt(extent), _LARGEST_DIVISOR) + 1) if extent % d == 0]
    return sorted({*lower, *(extent // d for d in lower)})


def nearest_first(values: Iterable[int], current: int) -> list[int]:
    """Positive numbers by their ratio to the present one, the smaller of two equal ratios first."""
    return sorted(values, key=lambda value: (abs(math.log(value / current)), value))
