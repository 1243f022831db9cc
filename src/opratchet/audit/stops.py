"""Whether the run stopped when it had to, and not before: the stop rules asked again at every point where they were.

That the user asked to stop, or that nothing was left to try, is only known from the ledger. That no other rule held then
can be told. How much time was spent is known from the times of writing, as far as the clock was not set back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from opratchet.audit.facts import moment
from opratchet.audit.findings import Finding
from opratchet.audit.replay import complaint
from opratchet.flow.model import StopRules
from opratchet.flow.registry import FLOWS
from opratchet.flow.stop import stop_rule
from opratchet.ledger.events import Delivered, Line, RoundStarted, RunResumed, Stopped
from opratchet.ledger.state import RunState
from opratchet.ledger.words import StopReason

LATE_SECONDS = 5.0
"""Seconds beyond its budget from which on a run should not have begun another round."""


def rules_of(state: RunState) -> StopRules:
    """The stop rules in force: those recorded, and the flow's where nothing is recorded."""
    flow = FLOWS.get(state.run.flow)
    names = {entry.name for entry in fields(StopRules)}
    given: dict[str, Any] = {name: value for name, value in state.options.items() if name in names}
    return replace(flow.stop if flow else StopRules(), **given)


class Stops:
    """Asks the stop rules before each round and at each stop."""

    def __init__(self) -> None:
        self._began: datetime | None = None
        self._last: datetime | None = None
        self._is_steady = True
        self._over_budget: tuple[datetime, float] | None = None

    def __call__(self, state: RunState, line: Line) -> Iterator[Finding]:
        """What is wrong with stopping, or with not stopping, at a line."""
        self._follow(line)
        if isinstance(line.event, RoundStarted):
            yield from self._goes_on(state)
        elif isinstance(line.event, Stopped):
            yield from self._stops(state, line.event)
        elif isinstance(line.event, Delivered):
            yield from self._took_its_budget(line.event)

    def _follow(self, line: Line) -> None:
        now = moment(line.at)
        if now is None or (self._last is not None and now < self._last):
            self._is_steady = False
        if self._began is None or isinstance(line.event, RunResumed):
            self._began, self._is_steady = now, now is not None
        self._last = now

    def _spent(self) -> float:
        """Seconds since the run began or went on; 0 when the clock does not tell. The gate and the baseline are not in it."""
        if not self._is_steady or self._began is None or self._last is None:
            return 0.0
        return (self._last - self._began).total_seconds()

    def _goes_on(self, state: RunState) -> Iterator[Finding]:
        due = stop_rule(state, rules_of(state), self._spent() - LATE_SECONDS, asked=False)
        if due is not None:
            what = f"another round begins, and a stop rule held before it ({due.detail})"
            yield complaint("stop", what, "", "round_started", f"stopped: {due.reason.value}")

    def _stops(self, state: RunState, event: Stopped) -> Iterator[Finding]:
        if event.reason is StopReason.USER_STOP:
            return
        rules = rules_of(state)
        due = stop_rule(state, replace(rules, budget_seconds=None), 0.0, asked=False)
        untold = event.reason is StopReason.NOTHING_LEFT or (
            event.reason is StopReason.TIME_BUDGET and rules.budget_seconds is not None
        )
        expected = due.reason if due is not None else event.reason if untold else None
        if expected is not event.reason:
            what = (
                "this stop rule did not hold" if due is None else f"another one held ({due.detail})"
            )
            right = expected.value if expected is not None else "no stop"
            yield complaint("stop", what, "reason", event.reason.value, right)
        elif event.reason is StopReason.TIME_BUDGET and self._last is not None:
            self._over_budget = self._last, float(rules.budget_seconds or 0.0)

    def _took_its_budget(self, event: Delivered) -> Iterator[Finding]:
        """A run that ended on its budget had spent it: the whole time is known at its end, and what was spent after the stop."""
        total = event.seconds.get("total")
        if self._over_budget is None or self._last is None or total is None or not self._is_steady:
            return
        at, budget = self._over_budget
        self._over_budget = None
        spent = total - (self._last - at).total_seconds()
        if spent < budget - LATE_SECONDS:
            what = "the run stopped on its budget and had not spent it"
            yield complaint("stop", what, "seconds", f"{spent:.0f} s", f"{budget:.0f} s")
