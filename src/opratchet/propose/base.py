"""The protocol of a proposer: asked for the next optimisation point, told everything by the ledger.

There is no separate `tell`: whatever happened is in the state, so a proposer is a pure function of the state and can be
resumed from the ledger alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opratchet.edit.model import Edit, Situation
from opratchet.ledger.state import RunState


@dataclass(frozen=True)
class Point:
    """One optimisation point: what a round explores.

    Attributes:
        row: Row of the flow's strategy table.
        reason: Why this one now, for the log.
        edits: Edits to try, all from the same incumbent, best guess first.
        documents: Documentation pages that the choice rests on.
    """

    row: str
    reason: str
    edits: Sequence[Edit]
    documents: Sequence[str] = ()


@dataclass(frozen=True)
class Answer:
    """What a proposer says: the next point, or None when nothing is left; and which strategies do not apply, and why."""

    point: Point | None
    skipped: Mapping[str, str] = field(default_factory=dict)


class Proposer(ABC):
    """Chooses the next optimisation point. Never proposes what was tried in the same state, failures included."""

    @abstractmethod
    def ask(self, state: RunState, situation: Situation) -> Answer:
        """The next point for the incumbent that `situation` describes."""

    @abstractmethod
    def edits(self, state: RunState, situation: Situation, row: str) -> Sequence[Edit]:
        """All edits of a row for this incumbent, tried or not: what a round's plan is looked up in."""
