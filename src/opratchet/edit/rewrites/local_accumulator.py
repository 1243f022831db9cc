"""Data reuse: accumulate in a scalar, and store the element once after the loop.

An element whose index does not change in the inner loop is loaded and stored in every iteration, unless the compiler
can prove that nothing else touches it; for a tensor in global memory it rarely can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import assigned, effects
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import (
    Nest,
    accumulation,
    block,
    declare,
    for_each,
    loses_comment,
    nests,
    statements,
)
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.source import code
from opratchet.edit.splice import Places
from opratchet.edit.tree import (
    Statement,
    Surgery,
    exchange,
    free_names,
    fresh_name,
    statement,
    walk,
)


@dataclass(frozen=True)
class Site:
    """An accumulating statement in a nest.

    Attributes:
        nest: The nest around it.
        target: The element.
        inner: Innermost loop variables that its index does not use.
        dtype: Its element type, as text.
        local: Whether its buffer is local.
    """

    nest: Nest
    target: tl.Region
    inner: Sequence[str]
    dtype: str
    local: bool


class LocalAccumulator(Strategy):
    """Accumulate in a local scalar."""

    id = "local-accumulator"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "累加放在局部标量",
        "en": "accumulate in a local scalar",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density", "memory"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each element that accumulates in an inner loop."""
        kernel, places = tl.Kernel.of(situation.source), Places(situation.source)
        found: list[Edit | str] = []
        for number, seen in enumerate(nests(kernel), start=1):
            for line in seen.body:
                site = _site(kernel, seen, line)
                if site is not None:
                    found.append(
                        site
                        if isinstance(site, str)
                        else self._edit(kernel, site, number, places.line(line))
                    )
        return answer(found, "no inner loop accumulates into an element that it does not move")

    def _edit(self, kernel: tl.Kernel, site: Site, number: int, line: int) -> Edit:
        name = fresh_name(f"{site.target.base}_acc", kernel.names)
        surgery = Surgery(kernel.source.module)
        declare(kernel, surgery, f"{name} = T.alloc_local((1,), {site.dtype})")
        surgery.expand(site.nest.node, _lines(site, f"{name}[0]"))
        title = f"accumulate {code(site.target.node)} in a local scalar, line {line}"
        key = f"{site.target.base}@{number}"
        return Edit(self.id, key, title, surgery.apply, 1.05 if site.local else 1.3)


def _site(kernel: tl.Kernel, seen: Nest, line: Statement) -> Site | str | None:
    """An accumulation whose element the innermost loop does not move; why it must stay; None for anything else."""
    found = accumulation(line)
    if found is None:
        return None
    used = free_names(found.target.node)
    names = list(seen.extents)
    moved = max((k + 1 for k, name in enumerate(names) if name in used), default=0)
    inner, base = names[moved:], found.target.base
    if not inner or _is_scalar(kernel, base):
        return None
    buffer = kernel.allocs.get(base) or kernel.parameters.get(base)
    if buffer is None or not buffer.dtype:
        return f"the dtype of `{base}` is not known"
    if _touched(kernel, seen, found.target):
        return f"the loop that accumulates into `{base}` also uses it otherwise, or moves its index"
    if loses_comment(seen.node):
        return f"a comment in the loop that accumulates into `{base}` would be lost"
    return Site(seen, found.target, inner, buffer.dtype, base in kernel.allocs)


def _is_scalar(kernel: tl.Kernel, name: str) -> bool:
    return name in kernel.allocs and kernel.allocs[name].dims == ("1",)


def _touched(kernel: tl.Kernel, seen: Nest, target: tl.Region) -> bool:
    accesses = [a for line in seen.body for a in effects(line, kernel.buffers)]
    own = [a for a in accesses if a.name == target.base]
    index = [name for part in target.index or () for name in free_names(part)]
    return len(own) != 2 or bool(set(index) & assigned(seen.body, kernel.buffers))


def _lines(site: Site, scalar: str) -> list[Statement]:
    element = code(site.target.node)
    inner = {name: site.nest.extents[name] for name in site.inner}
    outer = {name: e for name, e in site.nest.extents.items() if name not in inner}
    load, store = f"{scalar} = {element}", f"{element} = {scalar}"
    body = [_exchanged(line, element, scalar) for line in site.nest.body]
    loop = statement(block(for_each(inner), "pass") + "\n")
    loop = loop.with_changes(body=cst.IndentedBlock(body))
    first, last = statements([load, store])
    if not outer:
        return [first, loop, last]
    head = statement(block(for_each(outer), "pass") + "\n")
    return [head.with_changes(body=cst.IndentedBlock([first, loop, last]))]


def _exchanged(line: Statement, element: str, scalar: str) -> Statement:
    new = cst.parse_expression(scalar)
    changes: dict[cst.CSTNode, cst.CSTNode] = {
        part: new
        for part in walk(line)
        if isinstance(part, cst.Subscript) and code(part) == element
    }
    return exchange(line, changes)
