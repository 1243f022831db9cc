"""Data reuse: reduce over an expression while it is computed, instead of storing it in a buffer first.

    for i, j in T.grid(m, n): y[i, j] = x[i, j] * x[i, j]
    T.reduce_sum(y, total, dim=1)

needs `y` only to reduce it. The call is written out in lanes, and the expression takes the place of `y[i, j]` in it.
(As one plain loop it would be slower than the call was; a reduction that already is a loop is the business of
`inline-buffer`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import assigned, fills, is_pure
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import Nest, loses_comment, nests
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.lives import accesses, first_life, following
from opratchet.edit.rewrites.reductions import Reduction, lane_counts, of_call, why_not, with_lanes
from opratchet.edit.tree import Surgery, free_names, substitute

_PRIOR = {16: 1.75, 32: 1.7, 8: 1.6}


class ReduceInline(Strategy):
    """Compute what is reduced inside the reduction."""

    id = "reduce-inline"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "归约时就地计算表达式",
        "en": "compute inside the reduction",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density", "memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each buffer that is only reduced, and number of lanes."""
        kernel = tl.Kernel.of(situation.source)
        made = [one for seen in nests(kernel) if (one := _producer(kernel, seen))]
        found = [edit for one in made for edit in self._inline(kernel, one)]
        return answer(found, "no buffer is computed element by element and then reduced")

    def _inline(self, kernel: tl.Kernel, made: _Producer) -> Iterator[Edit | str]:
        reduction = _reader(kernel, made)
        if reduction is None or isinstance(reduction, str):
            yield from [reduction] if reduction else []
            return
        index = [cst.Name(name) for name in (*reduction.rows, reduction.axis)]
        value = substitute(made.value, dict(zip(made.index, index, strict=True)))
        for lanes in lane_counts(kernel, reduction):
            surgery = Surgery(kernel.source.module)
            surgery.remove(made.nest.node)
            if len(accesses(kernel.body, made.buffer.name)) == 2:
                surgery.remove(made.buffer.node)
            with_lanes(kernel, surgery, replace(reduction, term=value), lanes)
            title = f"reduce over what {made.buffer.name} held without storing it, in {lanes} lanes"
            key = f"{made.buffer.name}:{lanes}"
            yield Edit(self.id, key, title, surgery.apply, _PRIOR[lanes])


@dataclass(frozen=True)
class _Producer:
    """A nest that does nothing but set each element of a local buffer to an expression of its loop variables."""

    nest: Nest
    buffer: tl.Alloc
    index: tuple[str, ...]
    value: cst.BaseExpression


def _producer(kernel: tl.Kernel, seen: Nest) -> _Producer | None:
    made = tl.assign(seen.body[0]) if len(seen.body) == 1 else None
    buffer = kernel.allocs.get(made.target.base) if made and not made.operator else None
    if made is None or buffer is None or not fills(seen.node, buffer):
        return None
    index = tuple(part.value for part in made.target.index or () if isinstance(part, cst.Name))
    return _Producer(seen, buffer, index, made.value)


def _reader(kernel: tl.Kernel, made: _Producer) -> Reduction | str | None:
    """The reduction that alone reads the buffer; why it may not be inlined; None when there is none."""
    name, lines = made.buffer.name, following(kernel, made.nest.node)
    using = [line for line in lines if accesses([line], name)]
    call = tl.reduce(using[0]) if using else None
    if call is None or call.source.base != name:
        return None
    reduction = of_call(kernel, call)
    if isinstance(reduction, str):
        return reduction
    between = lines[: lines.index(using[0]) + 1]
    changed = assigned(between, kernel.buffers) & (free_names(made.value) - set(made.index))
    if changed or not is_pure(made.value):
        return f"`{name}` has to be stored: what it holds changes before it is reduced"
    if len(accesses(kernel.body, name)) > len(accesses(lines, name)) + 1:
        return f"`{name}` has to be stored: it is used before or while it is set"
    if first_life(using[1:], made.buffer) != []:
        return f"`{name}` has to be stored: it is needed again after it is reduced"
    if loses_comment(made.nest.node):
        return f"a comment in the loop that sets `{name}` would be lost"
    return why_not(kernel, reduction) or reduction
