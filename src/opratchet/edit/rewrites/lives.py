"""How long the content of a buffer is needed, seen from the statement that makes it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.effects import Access, effects, sets_each
from opratchet.edit.tree import Statement, nested


def accesses(lines: Sequence[Statement], name: str) -> list[Access]:
    """All accesses of some statements to one buffer, in order."""
    return [a for line in lines for a in effects(line, {name}) if a.name == name]


def following(kernel: tl.Kernel, node: cst.CSTNode) -> list[Statement]:
    """The statements after one, in the same statement list."""
    siblings = list(kernel.siblings(node))
    position = next(k for k, line in enumerate(siblings) if line is node)
    return siblings[position + 1 :]


def loop_variables(lines: Sequence[Statement]) -> set[str]:
    """Variables of all loops among some statements; they hide outer names that are spelled the same."""
    views = [tl.loop(part) for line in lines for part in nested(line)]
    return {name for view in views if view for name in view.targets}


def first_life(
    lines: Sequence[Statement], buffer: tl.Alloc, whole: Collection[Statement] = ()
) -> list[Access] | str:
    """Reads of a buffer until it is overwritten as a whole, or why they cannot be read elsewhere.

    Args:
        lines: The statements after the one that makes the content.
        buffer: The buffer.
        whole: Statements that may read it as a whole.
    """
    uses: list[Access] = []
    for line in lines:
        here = accesses([line], buffer.name)
        uses += [a for a in here if not a.writes]
        if line not in whole and any(not a.index for a in here if not a.writes):
            return f"`{buffer.name}` is read as a whole, not element by element"
        if any(a.writes for a in here):
            return (
                uses if _overwrites(line, here, buffer) else f"`{buffer.name}` is changed in part"
            )
    return uses


def _overwrites(line: Statement, here: list[Access], buffer: tl.Alloc) -> bool:
    """Whether a loop sets each element once, and reads only the one it is about to set."""
    *before, write = here
    one = write.writes and not any(a.writes for a in before)
    return one and all(a.key == write.key for a in before) and sets_each(line, write, buffer)
