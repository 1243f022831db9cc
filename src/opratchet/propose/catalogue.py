"""The catalogue: the written procedure's table, ordered by its priority, the diagnosis and what has paid off.

Each row of the flow's table gets an expected gain:

- what its best edit promises where a strategy can tell, else the middle of its band (for a row that this tool added, the
  low end: without a promise nothing speaks for it);
- raised where the diagnosis says that a bottleneck is one the row's strategies ease;
- replaced by the measured gain of an edit that was found credibly faster earlier, but lost to a better one of its round;
- lowered for each round in which the row gained nothing since its last adoption, and nearly nothing when all that is
  left of the row was tried on an earlier incumbent without gain.

The row with the highest expectation is the next point; on a tie the table's order decides. Its edits are tried best
guess first, at most `trials_per_round` of them; what is left waits for a later round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.source import sha256
from opratchet.flow.model import Flow, Row
from opratchet.flow.stages import rows_now
from opratchet.ledger.state import RunState
from opratchet.propose.base import Answer, Point, Proposer

DISAPPOINTMENT = 0.35
EASING = 2.0
FAINT = 0.01


@dataclass(frozen=True)
class _Offer:
    """A row with its edits that are still worth a trial, and what is expected of it."""

    row: Row
    edits: list[Edit]
    expected: float
    reason: str
    documents: tuple[str, ...]


class Catalogue(Proposer):
    """Proposer of the written procedure.

    Args:
        flow: The procedure.
        strategies: The strategies that may be used.
        language: Language of the reasons, `zh` or `en`.
    """

    def __init__(self, flow: Flow, strategies: Iterable[Strategy], language: str = "en") -> None:
        self.flow = flow
        self.strategies = tuple(strategies)
        self.language = language
        self._known: tuple[str, dict[str, list[Edit] | NotApplicable]] = ("", {})

    def ask(self, state: RunState, situation: Situation) -> Answer:
        """The row with the highest expected gain, its untried edits, and the strategies that do not apply."""
        skipped: dict[str, str] = {}
        offers = [self._offer(state, situation, row, skipped) for row in rows_now(self.flow, state)]
        for offer in sorted(offers, key=lambda offer: -offer.expected):
            edits = list(islice(_new_sources(state, offer.edits), self.flow.trials_per_round))
            if edits:
                return Answer(Point(offer.row.id, offer.reason, edits, offer.documents), skipped)
        return Answer(None, skipped)

    def edits(self, state: RunState, situation: Situation, row: str) -> Sequence[Edit]:
        """All edits of a row on this incumbent."""
        return [edit for _s, edits in self._offered(situation, row, {}) for edit in edits]

    def _offered(
        self, situation: Situation, row: str, skipped: dict[str, str]
    ) -> Iterable[tuple[Strategy, list[Edit]]]:
        for strategy in self.strategies:
            if strategy.row != row:
                continue
            found = self._of(strategy, situation)
            if isinstance(found, NotApplicable):
                skipped[strategy.id] = found.why
            else:
                yield strategy, found

    def _of(self, strategy: Strategy, situation: Situation) -> list[Edit] | NotApplicable:
        """Edits of a strategy; kept while the incumbent stays, since most rounds do not change it."""
        digest = situation.source.sha256
        if self._known[0] != digest:
            self._known = (digest, {})
        found = self._known[1]
        if strategy.id not in found:
            found[strategy.id] = strategy.edits(situation)
        return found[strategy.id]

    def _offer(
        self, state: RunState, situation: Situation, row: Row, skipped: dict[str, str]
    ) -> _Offer:
        used: list[Strategy] = []
        edits: list[Edit] = []
        for strategy, found in self._offered(situation, row.id, skipped):
            fresh = [edit for edit in found if _is_untried(state, situation, edit)]
            if fresh:
                used.append(strategy)
                edits += fresh
        known = known_gains(state)
        stale = _disappointed(state)
        edits.sort(key=lambda e: (e.id in stale, -max(known.get(e.id, 0.0) + 1.0, e.prior)))
        expected, reason = self._expect(state, row, used, edits, known)
        return _Offer(row, edits, expected, reason, self._documents(situation, used))

    def _expect(
        self,
        state: RunState,
        row: Row,
        used: Sequence[Strategy],
        edits: Sequence[Edit],
        known: Mapping[str, float],
    ) -> tuple[float, str]:
        measured = max((known[edit.id] for edit in edits if edit.id in known), default=0.0)
        if measured > FAINT:
            return measured, f"an edit of this row measured {1 + measured:.2f}x and waited its turn"
        new = [edit for edit in edits if edit.id not in _disappointed(state)]
        promise = max((edit.prior - 1.0 for edit in new), default=0.0)
        unpromised = row.expected if row.in_seed and new else max(row.gain[0], FAINT)
        eased, why = _easing(state, used)
        barren = _barren_rounds(state, row.id)
        expected = max(unpromised, promise) * (1 + EASING * eased) * DISAPPOINTMENT**barren
        low, high = row.gain
        band = f"expected {low:.0%} to {high:.0%}"
        return expected, f"{band}; {why}" if why else band

    def _documents(self, situation: Situation, used: Sequence[Strategy]) -> tuple[str, ...]:
        guide = self.flow.guides.get(situation.target.backend)
        pages = [strategy.document for strategy in used] + ([guide] if guide else [])
        return tuple(dict.fromkeys(pages))


def _is_untried(state: RunState, situation: Situation, edit: Edit) -> bool:
    """Not tried on this incumbent, and not known to have no effect."""
    return (situation.source.sha256, edit.id) not in state.tried and edit.id not in state.no_effect


def _new_sources(state: RunState, edits: Iterable[Edit]) -> Iterator[Edit]:
    """Edits whose result was not judged before and is not that of another edit here. This makes their text."""
    seen = set(state.judged)
    for edit in edits:
        digest = sha256(edit.text)
        if digest not in seen:
            seen.add(digest)
            yield edit


def known_gains(state: RunState) -> dict[str, float]:
    """Gains of edits that were credibly faster than their incumbent and were not adopted, by edit id.

    An edit that lost to another variant of the same strategy keeps only what it promises beyond that one.
    """
    gains: dict[str, float] = {}
    for trial in state.trials.values():
        if trial.ratio is None or trial.ratio.low <= 1.0:
            continue
        winner = state.rounds[trial.round].adopted
        if winner is not None and winner.ratio is not None and winner.strategy == trial.strategy:
            gains[trial.edit] = trial.ratio.value / winner.ratio.value - 1.0
        else:
            gains[trial.edit] = trial.ratio.value - 1.0
    adopted = {trial.edit for trial in state.lineage}
    return {edit: gain for edit, gain in gains.items() if edit not in adopted}


def _disappointed(state: RunState) -> set[str]:
    """Edits whose latest trial, on an earlier incumbent, gained nothing or failed."""
    latest = {trial.edit: trial for trial in state.trials.values() if not trial.is_open}
    gained = known_gains(state)
    return {edit for edit, trial in latest.items() if gained.get(edit, 0.0) < FAINT}


def _easing(state: RunState, used: Sequence[Strategy]) -> tuple[float, str]:
    """How strongly the present diagnosis points at what these strategies ease, with its evidence."""
    if not state.diagnoses:
        return 0.0, ""
    eases = frozenset().union(*(strategy.eases for strategy in used)) if used else frozenset()
    found = [b for b in state.diagnoses[-1].bottlenecks if b.name in eases]
    if not found:
        return 0.0, ""
    worst = max(found, key=lambda bottleneck: bottleneck.score)
    return worst.score, f"eases {worst.name.replace('_', ' ')} ({worst.score:.2f})"


def _barren_rounds(state: RunState, row: str) -> int:
    """Rounds of this row that gained nothing since it last gained."""
    count = 0
    for finished in reversed(state.finished_rounds):
        if finished.strategy != row:
            continue
        if finished.adopted is not None:
            break
        count += 1
    return count
