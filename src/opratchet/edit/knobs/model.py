"""A knob: one value in the source that may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

import libcst as cst

from opratchet.edit.model import Target
from opratchet.edit.source import KernelSource
from opratchet.edit.splice import Places, Splice, spliced

Value: TypeAlias = "int | float | str | bool | None"


class KnobKind(str, Enum):
    """What a knob turns."""

    TILE = "tile"
    STAGES = "num_stages"
    LOOP = "loop_kind"
    FLAG = "compile_flag"
    PASS = "pass_config"


@dataclass(frozen=True)
class Knob:
    """One value in the source that may change.

    Attributes:
        name: Name in the source (`block_M`), or of the place (`loop i`, `flag level`); unique within a source.
        kind: What it turns.
        site: Node of the source that holds the value now.
        current: Present value; None or `""` when the source does not give one.
        legal: Legal values, nearest to the present one first; the present one is among them.
        write: The splices that give it another value.
        note: What limits the legal values, for people.
    """

    name: str
    kind: KnobKind
    site: cst.CSTNode = field(repr=False, compare=False)
    current: Value
    legal: tuple[Value, ...] = ()
    write: Callable[[Value], tuple[Splice, ...]] = field(repr=False, compare=False, default=lambda _: ())
    note: str = ""

    @property
    def alternatives(self) -> tuple[Value, ...]:
        """Legal values other than the present one."""
        return tuple(value for value in self.legal if value != self.current)

    def limited(self, legal: tuple[Value, ...], note: str = "") -> Knob:
        """The knob with its legal values."""
        return replace(self, legal=legal, note=note)

    def turned(self, source: KernelSource, value: Value) -> str:
        """Whole text of the source with this knob at another value.

        Args:
            source: The source the knob was found in.
            value: Any value of the right type; need not be a legal one.
        """
        return spliced(source.text, self.write(value))


@dataclass(frozen=True)
class Workbench:
    """A source with the places of its nodes: what the finders of knobs work on.

    Attributes:
        source: The source.
        places: Where its nodes stand.
        target: Where the code is to run.
    """

    source: KernelSource
    places: Places
    target: Target

    @classmethod
    def of(cls, source: KernelSource, target: Target) -> Workbench:
        """Set up for one source."""
        return cls(source, Places(source), target)


Finder: TypeAlias = Callable[[Workbench], list[Knob]]
LegalValues: TypeAlias = Mapping[str, tuple[Value, ...]]
