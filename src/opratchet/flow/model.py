"""A flow: one written procedure as data. Rows of its strategy table, its stop rules, its words for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One row of a procedure's strategy table.

    Attributes:
        id: Name that strategies refer to (`Strategy.row`).
        title: Name for people by language (`zh`, `en`).
        when: When the procedure says to use it, by language.
        gain: Expected gain band, as fractions of the latency.
        in_seed: True for rows of the written procedure, False for what this tool adds to it.
        stage: Stage that it belongs to, for procedures that have stages.
    """

    id: str
    title: Mapping[str, str]
    when: Mapping[str, str]
    gain: tuple[float, float]
    in_seed: bool = True
    stage: str = ""

    @property
    def expected(self) -> float:
        """Middle of the band."""
        return sum(self.gain) / 2


@dataclass(frozen=True)
class Stage:
    """An ordered part of a procedure.

    Attributes:
        id: Name that rows refer to.
        title: Name for people by language.
        patience: Rounds in a row without gain after which it ends.
    """

    id: str
    title: Mapping[str, str]
    patience: int


@dataclass(frozen=True)
class StopRules:
    """When a run ends.

    Attributes:
        max_rounds: Rounds at most.
        patience: Rounds in a row without gain.
        max_experiments: Trials at most, failed ones included, pruned ones not.
        budget_seconds: Wall time at most, or None.
    """

    max_rounds: int = 10
    patience: int = 3
    max_experiments: int = 120
    budget_seconds: float | None = None


@dataclass(frozen=True)
class Flow:
    """One procedure.

    Attributes:
        name: Name on the command line.
        stage: Number of the stage in the procedure's completion report.
        rows: Strategy table, in the order of priority.
        stop: Default stop rules.
        trials_per_round: Edits tried at most in one round, all from the same incumbent.
        guides: Documentation page by backend, named as consulted when the run acts on it.
        stages: Its stages in their order; none for a procedure whose rows may be tried in any order.
        repeated: The stages that may be gone through again, as long as that gains something.
        cycles: How often these are gone through at most.
        activated: Whether it begins only with the proofs of activation on record.
    """

    name: str
    stage: int
    rows: tuple[Row, ...]
    stop: StopRules
    trials_per_round: int
    guides: Mapping[str, str]
    stages: tuple[Stage, ...] = ()
    repeated: tuple[str, ...] = ()
    cycles: int = 1
    activated: bool = False

    def row(self, row_id: str) -> Row:
        """A row by its id."""
        return next(row for row in self.rows if row.id == row_id)
