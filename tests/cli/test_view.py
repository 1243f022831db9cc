"""What people see while a run works: figures, plurals, and how long it may still take."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from rich.console import Console

from opratchet.cli import view as module
from opratchet.cli.pace import Pace, about
from opratchet.cli.view import View
from opratchet.ledger.events import Line, RoundFinished, RunResumed
from opratchet.ledger.plural import counted
from opratchet.ledger.state import RunState, apply
from tests.builders import Story

# Each line of a story is a second after the one before. A round of one trial is four lines.
ROUND = 4.0


def story(*rounds: str) -> Story:
    """A run that has a baseline and some finished rounds."""
    told = Story()
    told.open()
    for outcome in rounds:
        told.round(outcome)
    return told


def pace_of(lines: list[Line]) -> Pace:
    """The pace after these lines, each seen when it was written."""
    found = Pace()
    for number, line in enumerate(lines):
        found.see(line, float(number))
    return found


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 rounds"), (1, "1 round"), (2, "2 rounds"), (1000, "1000 rounds")]
)
def test_plurals(number: int, text: str) -> None:
    assert counted(number, "round") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "~0 s"), (40.4, "~40 s"), (89.0, "~89 s"), (180.0, "~3 min"), (5400.0, "~1.5 h")],
)
def test_estimated_times(seconds: float, text: str) -> None:
    assert about(seconds) == text


def test_nothing_is_estimated_before_a_round_is_finished() -> None:
    told = story()
    told.begin_round()
    assert pace_of(told.lines).left(10, now=100.0) is None


def test_the_rounds_left_take_as_long_as_those_before_on_average() -> None:
    told = story("no_gain")
    last = len(told.lines) - 1
    # The first round counts from the baseline: the diagnosis lies between.
    assert pace_of(told.lines).left(9, now=last) == pytest.approx((ROUND + 1) * 9)
    told.round("no_gain")
    mean = (ROUND + 1 + ROUND) / 2
    last = len(told.lines) - 1
    assert pace_of(told.lines).left(8, now=last) == pytest.approx(mean * 8)
    assert pace_of(told.lines).left(8, now=last + 2) == pytest.approx(mean * 8 - 2)


def test_a_round_that_takes_longer_than_usual_does_not_eat_into_the_others() -> None:
    told = story("no_gain")
    assert pace_of(told.lines).left(3, now=1e6) == pytest.approx((ROUND + 1) * 2)
    assert pace_of(told.lines).left(0, now=1e6) == 0


def test_a_night_between_two_commands_is_no_part_of_a_round() -> None:
    told = story("no_gain")
    told.begin_round()
    told.add(RunResumed(tool_version="0"))
    late = [line_later(line) for line in told.lines[-1:]]
    lines = [*told.lines[:-1], *late]
    assert pace_of(lines).left(2, now=len(lines) - 1) == pytest.approx((ROUND + 1) * 2)
    # Nor is the round that was interrupted, when it is finished at last.
    told.add(RoundFinished(round=2, adopted=None, shown=None, version="", incumbent=told.incumbent))
    lines = [*lines, line_later(told.lines[-1])]
    assert pace_of(lines).left(2, now=len(lines) - 1) == pytest.approx((ROUND + 1) * 2)


def line_later(line: Line) -> Line:
    """The same line, written a day later."""
    at = datetime.fromisoformat(line.at) + timedelta(days=1)
    return line.model_copy(update={"at": at.isoformat()})


class Terminal:
    """A view on a terminal of our own, with a clock that moves on by a second for each event."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, max_rounds: int = 10, budget: float | None = None
    ) -> None:
        self.clock = 0.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.clock)
        self.screen = io.StringIO()
        console = Console(file=self.screen, force_terminal=True, width=200, color_system=None)
        self.view = View(console, max_rounds, budget)
        self.state = RunState()

    def show(self, told: Story) -> str:
        """Show a story and give the last status line and all that was printed."""
        for line in told.lines:
            self.clock += 1.0
            apply(self.state, line)
            self.view.event(line, self.state)
        return self.screen.getvalue()

    @property
    def status(self) -> str:
        """The status line as it would be drawn now."""
        return self.view.status_line()


def test_the_status_line_tells_an_estimate_after_the_first_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal(monkeypatch)
    terminal.show(story())
    assert "left" not in terminal.status
    assert "0/10 rounds" in terminal.status
    terminal = Terminal(monkeypatch)
    terminal.show(story("adopted"))
    assert terminal.status.endswith("~45 s left at most")
    assert "1/10 rounds" in terminal.status
    terminal.clock += 3
    assert terminal.status.endswith("~42 s left at most")


def test_the_budget_is_told_when_it_ends_the_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, budget=30.0)
    terminal.show(story())
    assert terminal.status.endswith("26 s left")
    terminal = Terminal(monkeypatch, budget=30.0)
    terminal.show(story("adopted"))
    assert terminal.status.endswith("22 s left")
    terminal = Terminal(monkeypatch, max_rounds=2, budget=30.0)
    terminal.show(story("adopted"))
    assert terminal.status.endswith("~5 s left at most")


def test_after_the_last_round_nothing_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    told = story("adopted")
    told.stop()
    terminal.show(told)
    assert "at most" not in terminal.status


def test_a_notice_stays_whatever_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    terminal.show(story("adopted"))
    terminal.view.notice("stopping after this step")
    terminal.view.progress("measuring the best version again")
    assert terminal.status.startswith("measuring the best version again")
    assert terminal.status.endswith("stopping after this step")


def test_one_round_is_no_plural(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Terminal(monkeypatch).show(story("no_gain", "no_gain"))
    assert "1 round without gain" in text
    assert "2 rounds without gain" in text
    assert "1 rounds" not in text


def test_a_resumed_run_says_which_limits_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    told = story("no_gain")
    told.add(RunResumed(tool_version="0", options={"max_rounds": 20, "budget_seconds": 90.0}))
    text = Terminal(monkeypatch).show(told)
    assert "resumed   max rounds 20   budget seconds 90" in text
