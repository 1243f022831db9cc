"""F-8: how often an innermost loop is unrolled.

`unroll_list` holds the factors for which PyPTO makes a body of its own; 1 is always among them, and only the innermost loop
counts. Several values become legal when tuning begins: until then the layout check wants one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from opratchet.edit.dialects.pypto import LoopCall, Numbers, Pypto, keyword, listed
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy

NAME = "unroll_list"
LISTS: tuple[Numbers, ...] = ((1,), (2, 1), (4, 1), (8, 1), (4, 2, 1), (8, 4, 2, 1), (16, 4, 1))


class Unrolling(Strategy):
    """Another `unroll_list` for one innermost loop."""

    id = "unroll_list"
    row = "F-8"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "内层循环 unroll_list",
        "en": "unroll an inner loop",
    }
    gain = (0.05, 0.30)
    eases = frozenset({"bubble"})
    document = "docs/pypto.md"

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """Edits of every innermost loop."""
        view = Pypto.of(situation.source)
        inner = [loop for loop in view.loops if loop.innermost]
        if not inner:
            return NotApplicable("the kernel has no `pypto.loop`")
        return [
            _edit(self.id, view, loop, values)
            for loop in inner
            for values in LISTS
            if values != (loop.unroll or (1,))
        ]


def _edit(strategy: str, view: Pypto, loop: LoopCall, values: Numbers) -> Edit:
    now = listed(loop.unroll) if loop.unroll else "none"
    return Edit(
        strategy,
        f"{loop.number}:{'-'.join(map(str, values))}",
        f"loop {loop.name}: {NAME} {now} -> {listed(values)}",
        partial(_written, view, loop, listed(values)),
    )


def _written(view: Pypto, loop: LoopCall, text: str) -> str:
    given = keyword(loop.call, NAME)
    if given is not None:
        return view.write(given, text)
    return view.splice(view.places.append(loop.call.args, loop.call, f"{NAME}={text}"))
