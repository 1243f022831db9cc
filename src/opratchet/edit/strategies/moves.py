"""From knobs to edits: one edit for each legal value, the nearest values of all knobs first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest

from opratchet.edit.knobs import Knob, Value
from opratchet.edit.model import Edit
from opratchet.edit.source import KernelSource

Titled = Callable[[Knob, Value], str]


def moves(
    strategy: str, source: KernelSource, knobs: Sequence[Knob], title: Titled | None = None
) -> list[Edit]:
    """All edits that turn one of the knobs to another legal value.

    Args:
        strategy: Id of the strategy that offers them.
        source: The source in which the knobs were found.
        knobs: The knobs, with their legal values.
        title: Says an edit in one line; `block_M 4 -> 8` by default.
    """
    ranks = zip_longest(*([(knob, value) for value in knob.alternatives] for knob in knobs))
    pairs = [pair for rank in ranks for pair in rank if pair]
    return [move(strategy, source, knob, value, title or plain) for knob, value in pairs]


def move(
    strategy: str,
    source: KernelSource,
    knob: Knob,
    value: Value,
    title: Titled | None = None,
    prior: float = 1.0,
) -> Edit:
    """The edit that turns one knob to one value."""
    text = (title or plain)(knob, value)
    return Edit(strategy, f"{knob.name}={value}", text, partial(knob.turned, source, value), prior)


def plain(knob: Knob, value: Value) -> str:
    """`block_M 4 -> 8`; `num_stages -> 2` where the source gives no value."""
    given = "" if knob.current in (None, "") else f" {knob.current}"
    return f"{knob.name}{given} -> {'none' if value is None else value}"
