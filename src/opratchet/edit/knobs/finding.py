"""All knobs of a source, in one order: tiles, pipeline depths, loops, compile flags, pass configurations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from opratchet.edit.knobs.jit import flag_knobs, pass_knobs
from opratchet.edit.knobs.loops import LoopKinds, depths, loop_knobs, stage_knobs
from opratchet.edit.knobs.model import Finder, Knob, KnobKind, Value, Workbench, literal_knob
from opratchet.edit.knobs.tiles import TileValues, nearest_first, tile_knobs
from opratchet.edit.model import Situation, Target
from opratchet.edit.source import KernelSource

FINDERS: Mapping[KnobKind, Finder] = {
    KnobKind.TILE: tile_knobs,
    KnobKind.STAGES: stage_knobs,
    KnobKind.LOOP: loop_knobs,
    KnobKind.FLAG: flag_knobs,
    KnobKind.PASS: pass_knobs,
}


def knobs_of(
    source: KernelSource, target: Target, kinds: Collection[KnobKind] = tuple(KnobKind)
) -> list[Knob]:
    """Every knob of some kinds, with its place and its present value; names are unique.

    Raises:
        BadInput: the source has no such kernel factory.
    """
    bench = Workbench(source, target)
    return [knob for kind, finder in FINDERS.items() if kind in kinds for knob in finder(bench)]


def find_knobs(situation: Situation, kinds: Collection[KnobKind] = tuple(KnobKind)) -> list[Knob]:
    """Knobs of the incumbent with their legal values, the nearest to the present value first.

    Args:
        situation: Source, target, workload shapes, and what the manifest says of knobs.
        kinds: Kinds that are wanted. A literal that only the manifest calls a knob counts as a tile.
    """
    given = {name for shape in situation.shapes for name in shape}
    found = knobs_of(situation.source, situation.target, kinds)
    if KnobKind.TILE in kinds:
        found += _declared(situation)
    return _limited(situation, [knob for knob in found if knob.name not in given])


def unknown_knobs(situation: Situation) -> list[str]:
    """Names in the manifest's table of knobs that mean nothing in the source."""
    known = {knob.name for knob in knobs_of(situation.source, situation.target)}
    literals = Workbench(situation.source, situation.target).literals
    return [name for name in situation.knobs if name not in known and name not in literals]


def _declared(situation: Situation) -> list[Knob]:
    """Literals of the source that are knobs only because the manifest says so."""
    if not situation.knobs:
        return []
    bench = Workbench(situation.source, situation.target)
    known = {knob.name for knob in knobs_of(situation.source, situation.target)}
    return [
        literal_knob(bench, name, node, KnobKind.TILE)
        for name, node in bench.literals.items()
        if name in situation.knobs and name not in known
    ]


def _limited(situation: Situation, knobs: Sequence[Knob]) -> list[Knob]:
    kinds = {knob.kind for knob in knobs}
    limits: dict[KnobKind, Callable[[Knob], Knob]] = {KnobKind.STAGES: depths}
    if KnobKind.TILE in kinds:
        limits[KnobKind.TILE] = TileValues(situation).limit
    if KnobKind.LOOP in kinds:
        limits[KnobKind.LOOP] = LoopKinds(situation).limit
    return [_limit(knob, situation, limits.get(knob.kind)) for knob in knobs]


def _limit(knob: Knob, situation: Situation, limit: Callable[[Knob], Knob] | None) -> Knob:
    if knob.name in situation.knobs:
        return knob.limited(_given(knob, situation.knobs[knob.name]), "from the manifest")
    return limit(knob) if limit else knob


def _given(knob: Knob, values: Sequence[Value]) -> tuple[Value, ...]:
    """The manifest's values, the nearest to the present one first where they are sizes."""
    wanted = [knob.current, *(value for value in values if value != knob.current)]
    sizes = [v for v in wanted if isinstance(v, int) and not isinstance(v, bool) and v > 0]
    if len(sizes) == len(wanted):
        return tuple(nearest_first(sizes, sizes[0]))
    return tuple(wanted)
