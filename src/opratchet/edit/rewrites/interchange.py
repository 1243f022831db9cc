"""Loop order: swap two neighbouring loops of a nest, so that the innermost one runs along memory.

Legal where the order of the iterations cannot matter: the nest accumulates into elements, or sets each element once,
from values that no iteration writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import is_pure
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import Nest, accumulation, nests
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.source import code
from opratchet.edit.splice import Places
from opratchet.edit.tree import Surgery, fingerprint, free_names, positional, walk


class Interchange(Strategy):
    """Swap two neighbouring loops."""

    id = "interchange"
    row = "loop_order"
    title: ClassVar[Mapping[str, str]] = {"zh": "循环交换", "en": "swap two loops"}
    gain = (0.10, 0.30)
    eases = frozenset({"compute_density", "memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each pair of neighbouring loops that may change places and does not run worse along memory."""
        kernel, places = tl.Kernel.of(situation.source), Places(situation.source)
        found = [
            one
            for number, seen in enumerate(nests(kernel), start=1)
            if len(seen.extents) > 1
            for one in self._swaps(kernel, places, seen, number)
        ]
        return answer(found, "there is no nest of two or more loops")

    def _swaps(
        self, kernel: tl.Kernel, places: Places, seen: Nest, number: int
    ) -> Iterator[Edit | str]:
        if why := _dependence(seen):
            yield why
            return
        for outer, inner in pairwise(seen.extents):
            order = _swapped(tuple(seen.extents), outer, inner)
            before, after = _strided(seen, seen.loops[-1].inner), _strided(seen, order[-1])
            if after > before:
                yield f"with {inner} outside {outer} the innermost loop would not run along memory"
                continue
            line = places.line(seen.node)
            title = f"loop order {', '.join(seen.extents)} -> {', '.join(order)}, line {line}"
            prior = 2.0 if after < before else 1.0
            yield Edit(
                self.id,
                f"{''.join(order)}@{number}",
                title,
                _exchange(kernel, seen, outer, inner),
                prior,
            )


def _swapped(order: tuple[str, ...], outer: str, inner: str) -> tuple[str, ...]:
    names = {outer: inner, inner: outer}
    return tuple(names.get(name, name) for name in order)


def _dependence(seen: Nest) -> str:
    """Why the iterations of a nest must keep their order; empty when they need not."""
    names = ", ".join(seen.extents)
    made = tl.assign(seen.body[0]) if len(seen.body) == 1 else None
    bounds = [part for loop in seen.loops for part in loop.extents]
    if any(free_names(part) & seen.extents.keys() for part in bounds):
        return f"an extent of the loops over {names} depends on another of them"
    if made is None or not is_pure(made.value):
        return f"the loops over {names} do more than set one element"
    if accumulation(seen.body[0]) is not None:
        return ""
    index = [fingerprint(part) for part in made.target.index or ()]
    if made.operator or any(index.count(name) != 1 for name in seen.extents):
        return f"the loops over {names} may set an element of `{made.target.base}` twice"
    own = fingerprint(made.target.node)
    if any(_other_element(part, made.target.base, own) for part in walk(made.value)):
        return f"the loops over {names} read other elements of `{made.target.base}`"
    return ""


def _other_element(node: cst.CSTNode, base: str, own: str) -> bool:
    reads = isinstance(node, cst.Subscript) and code(node.value) == base
    return reads and fingerprint(node) != own


def _strided(seen: Nest, name: str) -> int:
    """How many elements do not lie next to each other from one value of a loop variable to the next."""
    parts = [part for line in seen.body for part in walk(line) if isinstance(part, cst.Subscript)]
    moved = [tl.indices(part) or () for part in parts if name in free_names(part)]
    return sum(any(name in free_names(p) for p in index[:-1]) or not index for index in moved)


def _exchange(kernel: tl.Kernel, seen: Nest, outer: str, inner: str) -> str:
    """The source with a variable and its extent changing places with its neighbour's."""
    heads = {
        name: (target, extent)
        for loop in seen.loops
        for name, target, extent in zip(
            loop.targets, _targets(loop.node.target), positional(loop.call), strict=True
        )
    }
    surgery = Surgery(kernel.source.module)
    for here, there in ((outer, inner), (inner, outer)):
        for old, new in zip(heads[here], heads[there], strict=True):
            surgery.replace(old, new)
    return surgery.apply()


def _targets(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]
