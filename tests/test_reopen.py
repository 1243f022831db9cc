"""Going on with a recorded run: which limits hold, and that the error of the whole run stays what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet import session
from opratchet.edit.source import sha256
from opratchet.errors import BadInput
from opratchet.flow.model import StopRules
from opratchet.ledger.events import RunResumed, RunStarted
from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from opratchet.operator.model import Operator
from tests.builders import Story
from tests.engine.scripted import SOURCE, make_operator

RULES = StopRules(max_rounds=10, patience=3, max_experiments=4)
FOLDER = "perf_opt"


def recorded(folder: Path, *rounds: list[str]) -> Operator:
    """A run in `folder/perf_opt` with these outcomes, round by round."""
    story = Story()
    story.baseline = story.incumbent = sha256(SOURCE)
    story.open()
    for outcomes in rounds:
        story.round(*outcomes)
    with Ledger(folder / FOLDER, create=True) as ledger:
        for line in story.lines:
            event = line.event
            if isinstance(event, RunStarted):
                options = session.Options(RULES, seed=7).record()
                event = event.model_copy(update={"options": options})
            ledger.append(event)
    return make_operator(folder)


def reopened(folder: Path, operator: Operator, **limits: float) -> session.Options:
    """The options that the run goes on with."""
    ledger, options = session.reopen(folder / FOLDER, operator, limits)
    ledger.close()
    return options


def test_what_is_given_holds_from_here_on_and_the_rest_stays(tmp_path: Path) -> None:
    operator = recorded(tmp_path, ["no_gain"])
    before = session.Options(RULES, seed=7)
    assert reopened(tmp_path, operator).rules == before.rules
    options = reopened(tmp_path, operator, max_rounds=20, budget_seconds=60.0)
    assert options.rules == StopRules(20, 3, 4, 60.0)
    assert (options.seed, options.language) == (7, "zh")
    again = reopened(tmp_path, operator, patience=1)
    assert again.rules == StopRules(20, 1, 4, 60.0)
    state = fold(read_lines(tmp_path / FOLDER / LEDGER))
    assert state.options["max_rounds"] == 20
    assert state.run.options["max_rounds"] == 10, "the header says how the run began"


def test_the_change_is_on_record(tmp_path: Path) -> None:
    operator = recorded(tmp_path, ["no_gain"])
    reopened(tmp_path, operator, max_rounds=20)
    last = read_lines(tmp_path / FOLDER / LEDGER)[-1].event
    assert isinstance(last, RunResumed)
    assert last.options == {"max_rounds": 20}


def test_a_raised_limit_makes_each_comparison_stricter(tmp_path: Path) -> None:
    operator = recorded(tmp_path, ["no_gain", "no_gain"], ["compile_failed"])
    assert reopened(tmp_path, operator).rule.trials == 4
    # Two of four shares are left for the nine experiments that the new limit allows.
    assert reopened(tmp_path, operator, max_experiments=12).rule.trials == 18


def test_a_limit_cannot_be_raised_when_the_whole_error_is_used_up(tmp_path: Path) -> None:
    operator = recorded(tmp_path, ["no_gain", "no_gain"], ["no_gain", "regressed"])
    before = (tmp_path / FOLDER / LEDGER).read_bytes()
    with pytest.raises(BadInput, match="compared as many") as caught:
        session.reopen(tmp_path / FOLDER, operator, {"max_experiments": 5})
    assert "--fresh" in caught.value.fix
    assert (tmp_path / FOLDER / LEDGER).read_bytes() == before
    assert not (tmp_path / FOLDER / "run.pid").exists(), "the folder is free again"
    assert reopened(tmp_path, operator).rules == RULES
