"""Gate 2, static legality: what can be proven wrong from the text alone, before anything is spent.

A rule returns its text when the candidate breaks it. It must be sure: what it cannot tell, it lets pass, and the build
and the accuracy gate find out. A new rule is one function and one line in `RULES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from opratchet.edit.dialects.tilelang import Alloc, Kernel, alloc
from opratchet.edit.model import Target
from opratchet.edit.names import Names, known, number
from opratchet.edit.pypto.legality import broken_rule as broken_pypto_rule
from opratchet.edit.source import KernelSource

Rule: TypeAlias = Callable[[KernelSource, Target, Mapping[str, Any]], "str | None"]


class LocalMemory:
    """The buffers that a kernel allocates, ready to be added up for many workloads.

    Args:
        source: The source.
    """

    def __init__(self, source: KernelSource) -> None:
        self._allocs = Kernel.of(source).find(alloc)

    def bytes(self, names: Mapping[str, Any]) -> int | None:
        """Bytes that all buffers take together, or None when an extent or a dtype cannot be told."""
        sizes = [_bytes(view, names) for view in self._allocs]
        found = [size for size in sizes if size is not None]
        return sum(found) if len(found) == len(sizes) else None

    def over(self, limit: int, names: Mapping[str, Any]) -> bool:
        """Whether they surely take more than so many bytes."""
        taken = self.bytes(names)
        return taken is not None and taken > limit


def _bytes(view: Alloc, names: Mapping[str, Any]) -> int | None:
    extents = [number(dim, names) for dim in view.dims]
    found = [int(extent) for extent in extents if extent is not None]
    width = _width(known(view.dtype, names))
    if width is None or len(found) < len(extents):
        return None
    return math.prod(found) * width


def _width(dtype: object) -> int | None:
    """Bytes of an element: `float32` gives 4; None when it is not a dtype."""
    match = re.match(r"[a-z]+?(\d+)", dtype) if isinstance(dtype, str) else None
    if match:
        return max(int(match.group(1)) // 8, 1)
    return 1 if dtype == "bool" else None


def fits_local_memory(source: KernelSource, target: Target, names: Mapping[str, Any]) -> str | None:
    """All local buffers together must fit into the target's local memory."""
    taken = LocalMemory(source).bytes(names)
    if taken is not None and taken > target.local_bytes:
        return f"local buffers take {taken} bytes, limit {target.local_bytes}"
    return None


def allocates_something(
    source: KernelSource, target: Target, names: Mapping[str, Any]
) -> str | None:
    """A buffer has at least one element in each dimension."""
    for view in Kernel.of(source).find(alloc):
        for dim in view.dims:
            extent = number(dim, names)
            if extent is not None and extent < 1:
                return f"local buffer `{view.name}` has the extent {dim} = {extent:g}"
    return None


RULES: tuple[Rule, ...] = (fits_local_memory, allocates_something)


def broken_rule(
    source: KernelSource, target: Target, shapes: Sequence[Mapping[str, int]] = ()
) -> str | None:
    """Text of the first rule that a candidate breaks on one of the workloads, or None.

    Args:
        source: The candidate.
        target: Where it is to run.
        shapes: Shape of each workload that will be run.

    Raises:
        BadInput: the source has no such kernel factory.
    """
    if target.dialect == "pypto":
        return broken_pypto_rule(source, target)
    names = Names(source)
    for shape in shapes or ({},):
        for rule in RULES:
            text = rule(source, target, names.on(shape))
            if text is not None:
                where = ", ".join(f"{name} = {extent}" for name, extent in shape.items())
                return f"{text} ({where})" if where else text
    return None
