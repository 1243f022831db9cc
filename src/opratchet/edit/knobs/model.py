"""A knob: one value in the source that may change."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from opratchet.edit.dialects.tilelang import Kernel, Loop, loop
from opratchet.edit.knobs.constants import literals, module_constants
from opratchet.edit.model import Target
from opratchet.edit.source import KernelSource, code
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
    write: Callable[[Value], tuple[Splice, ...]] = field(
        repr=False, compare=False, default=lambda _: ()
    )
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
    """A source with what the finders of knobs ask of it; each question is answered once.

    Attributes:
        source: The source.
        target: Where the code is to run.
    """

    source: KernelSource
    target: Target

    @cached_property
    def places(self) -> Places:
        """Where the nodes of the source stand."""
        return Places(self.source)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel in it."""
        return Kernel.of(self.source)

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops of the kernel."""
        return self.kernel.find(loop)

    @cached_property
    def constants(self) -> Mapping[str, cst.BaseExpression]:
        """Module constants that only the kernel factory mentions."""
        return module_constants(self.source)

    @cached_property
    def literals(self) -> Mapping[str, cst.BaseExpression]:
        """Literals that the kernel alone knows, by name."""
        return literals(self.source, self.constants)


Finder: TypeAlias = Callable[[Workbench], list[Knob]]


def literal_knob(bench: Workbench, name: str, node: cst.BaseExpression, kind: KnobKind) -> Knob:
    """A knob that is one literal in the source."""

    def write(value: Value) -> tuple[Splice, ...]:
        return (bench.places.replace(node, code(node) if value == current else _literal(value)),)

    current: Value = ast.literal_eval(code(node))
    return Knob(name, kind, node, current, write=write)


def _literal(value: Value) -> str:
    """Python text of a value, in double quotes as formatters like them."""
    plain = isinstance(value, str) and '"' not in value and "\\" not in value
    return f'"{value}"' if plain else repr(value)
