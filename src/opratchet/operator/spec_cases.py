"""Which shapes the tensors of an operator have, from `p0_shapes` and `l0_shapes` of its SPEC.md.

A mapping says it all: `p0_shapes: [{query: [1, 64, 128], key: [1, 64, 128]}]`. Documents in the wild write lists, and
the same list means two things: `[[2, 4, 8], [8]]` is one case of two tensors, `[[1, 1, 1024, 64], [1, 128, 2048, 64]]`
two cases of the first of three. What only one meaning fits is read; for the rest the mapping is written out, to choose
from. Nothing is guessed, for a case that was misread proves the accuracy of something that nobody runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opratchet.errors import BadInput
from opratchet.operator.evaluate import LARGEST
from opratchet.operator.problems import advice, shown

Level = Literal["P0", "L0"]
Shape = tuple[int, ...]
Where = Callable[..., str]


@dataclass(frozen=True)
class Case:
    """One set of input shapes.

    Attributes:
        id: The shape of the first tensor, e.g. `512x1024`; those of all tensors where that is not unique.
        tensors: Shape by tensor, in the order of the golden's parameters.
        level: `P0` decides, `L0` is for accuracy only.
    """

    id: str
    tensors: Mapping[str, Shape]
    level: Level


def resolve(raw: Any, tensors: Sequence[str], key: str, where: Where) -> list[tuple[Shape, ...]]:
    """The cases that a value of the front matter states: for each, the shapes in the order of the tensors.

    Args:
        raw: The value, as YAML gives it.
        tensors: Names of the tensors.
        key: Its key.
        where: Place of a path below the key, for errors.

    Raises:
        BadInput: it is no list of shapes, or could mean more than one thing.
    """
    reading = _Reading(tuple(tensors), key, where)
    if isinstance(raw, dict):
        return [reading.named(raw)]
    if not isinstance(raw, list) or not raw:
        raise reading.refusal(f"`{key}` is {shown(raw)}, which is no list of shapes")
    if len(tensors) > 1 and all(_is_flat(entry) for entry in raw):
        return [reading.one_case(raw)]
    return [reading.entry(entry, at) for at, entry in enumerate(raw)]


def with_ids(
    cases: Sequence[tuple[tuple[Shape, ...], Level]], tensors: Sequence[str]
) -> tuple[Case, ...]:
    """Cases with their ids; a case that is stated twice is one, and P0 if either is."""
    levels: dict[tuple[Shape, ...], Level] = {}
    for shapes, level in cases:
        levels.setdefault(shapes, level)
    often = Counter(shapes[0] for shapes in levels)
    return tuple(
        Case(
            _joined(shapes if often[shapes[0]] > 1 else shapes[:1]),
            dict(zip(tensors, shapes, strict=True)),
            level,
        )
        for shapes, level in levels.items()
    )


def _joined(shapes: Sequence[Shape]) -> str:
    return "-".join("x".join(map(str, shape)) for shape in shapes)


def _is_flat(entry: Any) -> bool:
    """Whether it is one list without further lists or tables in it."""
    return isinstance(entry, list) and not any(isinstance(item, (list, dict)) for item in entry)


@dataclass(frozen=True)
class _Reading:
    tensors: tuple[str, ...]
    key: str
    where: Where

    def entry(self, entry: Any, at: int) -> tuple[Shape, ...]:
        """One case for each entry: a mapping, a shape where there is one tensor, or a shape for each tensor."""
        if isinstance(entry, dict):
            return self.named(entry, at)
        if _is_flat(entry) and len(self.tensors) == 1:
            return (self._shape(entry, at),)
        if (
            isinstance(entry, list)
            and len(entry) == len(self.tensors)
            and all(map(_is_flat, entry))
        ):
            return tuple(self._shape(shape, at, index) for index, shape in enumerate(entry))
        raise self.refusal(f"{shown(entry)} does not say which tensor has which shape", at)

    def named(self, entry: Mapping[str, Any], *at: int) -> tuple[Shape, ...]:
        """A case that names its tensors."""
        for name in entry:
            if name not in self.tensors:
                what = f"the golden takes no tensor `{name}`"
                raise BadInput(what, where=self.where(*at, name), fix=advice(name, self.tensors))
        absent = [name for name in self.tensors if name not in entry]
        if absent:
            raise self.refusal(f"the case gives no shape for {', '.join(absent)}", *at)
        return tuple(self._shape(entry[name], *at, name) for name in self.tensors)

    def one_case(self, raw: Sequence[Any]) -> tuple[Shape, ...]:
        """One shape for each tensor, where that is the only reading.

        With as many shapes as tensors it is, if the ranks differ (cases of one tensor have one rank) or if the shapes
        are all the same (nobody states a case twice).
        """
        shapes = tuple(self._shape(shape, at) for at, shape in enumerate(raw))
        ranks, kinds = len({len(shape) for shape in shapes}), len(set(shapes))
        if len(shapes) == len(self.tensors) and (ranks > 1 or kinds == 1):
            return shapes
        raise self._ambiguous(shapes)

    def _shape(self, raw: Any, *at: int | str) -> Shape:
        if not isinstance(raw, list) or not raw:
            raise self.refusal(f"{shown(raw)} is no shape", *at)
        for size in raw:
            if type(size) is not int or not 0 < size <= LARGEST:
                raise self.refusal(f"{shown(size)} is no length of an axis", *at)
        return tuple(raw)

    def refusal(self, what: str, *at: int | str) -> BadInput:
        """The error for a value that is not understood, with the form that always is."""
        fix = f"Name the tensors of each case: `{self.key}: [{self._example()}]`."
        return BadInput(what, where=self.where(*at), fix=fix)

    def _ambiguous(self, shapes: Sequence[Shape]) -> BadInput:
        what = (
            f"`{self.key}` has {len(shapes)} shapes and the golden takes {len(self.tensors)} tensors"
            f" ({', '.join(self.tensors)}): it is not clear which shape is whose"
        )
        several = ", ".join(self._example(shape) for shape in shapes)
        fix = f"Name the tensors. For {len(shapes)} cases: `{self.key}: [{several}]`."
        if len(shapes) == len(self.tensors):
            fix = f"{fix} For one case: `{self.key}: [{self._example(*shapes)}]`."
        return BadInput(what, where=self.where(), fix=fix)

    def _example(self, *shapes: Shape) -> str:
        """A case as a mapping, with the shapes that are known."""
        known: Iterator[str] = (str(list(shape)) for shape in shapes)
        return "{" + ", ".join(f"{name}: {next(known, '[...]')}" for name in self.tensors) + "}"
