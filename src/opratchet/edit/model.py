"""What a change is: edits, the strategies that make them, and the limits of the target they must respect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from opratchet.edit.source import KernelSource


@dataclass(frozen=True)
class Edit:
    """One application of one strategy. A candidate is the incumbent plus exactly one edit.

    Attributes:
        strategy: Id of the strategy.
        key: Stable name of this edit within the strategy, e.g. `block_M=4` or `lanes:row_sum:16`.
        title: One line for people, e.g. `block_M 1 -> 4`.
        made: Whole source after the edit, or what makes it: most edits are only ranked, and few are ever built.
        prior: Expected speed-up factor used only to order trials (1.0 = no opinion).
    """

    strategy: str
    key: str
    title: str
    made: str | Callable[[], str]
    prior: float = 1.0

    @cached_property
    def text(self) -> str:
        """Whole source after the edit."""
        return self.made if isinstance(self.made, str) else self.made()

    @property
    def id(self) -> str:
        """Identity across strategies: `strategy/key`."""
        return f"{self.strategy}/{self.key}"


@dataclass(frozen=True)
class NotApplicable:
    """Why a strategy has nothing to offer for this source on this target."""

    why: str


@dataclass(frozen=True)
class Target:
    """What an edit must know of the place where the code runs.

    Attributes:
        backend: Name of the backend.
        dialect: Name of the dialect, e.g. `tilelang`.
        vector_bytes: Width of a vector register in bytes.
        local_bytes: Bytes that all local buffers of a kernel may take together.
        pipelining: Whether the target has asynchronous copies, so that `T.Pipelined` depth can matter.
        multi_buffering: Whether copies and computation run on different units.
        compile_flags: Legal values of each compile-flag group by group name (first is "absent").
        memories: Bytes of each memory of a core by its name, e.g. `UB`; for targets that have such.
    """

    backend: str
    dialect: str = "tilelang"
    vector_bytes: int = 32
    local_bytes: int = 1 << 20
    pipelining: bool = False
    multi_buffering: bool = False
    compile_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memories: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Situation:
    """All a strategy may look at: the incumbent's source, the target, the workloads' shapes, and extra knob values."""

    source: KernelSource
    target: Target
    shapes: Sequence[Mapping[str, int]] = ()
    knobs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


class Strategy(ABC):
    """A named way to change the source.

    Class attributes:
        id: Stable name, used in the ledger.
        row: Row of the seed's strategy table it belongs to, see `opratchet.flow.tilelang.ROWS`.
        title: Names for people, by language (`zh`, `en`).
        gain: Expected gain band from the seed, as fractions, e.g. `(0.10, 0.30)`.
        eases: Names of the bottlenecks it helps against.
        document: Documentation page that describes it.
    """

    id: ClassVar[str]
    row: ClassVar[str]
    title: ClassVar[Mapping[str, str]]
    gain: ClassVar[tuple[float, float]]
    eases: ClassVar[frozenset[str]]
    document: ClassVar[str] = "docs/strategies.md"

    @abstractmethod
    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """All single edits of this strategy on the incumbent, best guess first, or why there are none."""
