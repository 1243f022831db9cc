"""A whole run whose time is real: what is twice as fast is found to be, and what is half as fast too."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet import contest
from opratchet.engine import tune
from opratchet.flow.model import StopRules
from opratchet.ledger.words import Outcome
from tests.engine.scripted import PATIENT, Asked, assemble, edit, lab_for, make_operator, start

RULES = StopRules(max_rounds=1)


@pytest.mark.timing
def test_twice_as_fast_is_adopted_and_half_as_fast_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contest, "CALIBRATION", 3)
    monkeypatch.setattr(contest, "FINAL_BOUTS", 3)
    points = [[edit("slower", time=800), edit("faster", time=200)]]
    with (
        lab_for(make_operator(tmp_path), PATIENT) as lab,
        start(lab, tmp_path / "out", RULES) as ledger,
    ):
        state = tune(assemble(lab, ledger, points, RULES, Asked()))
    outcomes = [trial.outcome for trial in state.trials.values()]
    assert outcomes == [Outcome.REGRESSED, Outcome.ADOPTED]
    assert state.baseline["n64"].us == pytest.approx(400, rel=0.3)
    assert state.final is not None
    assert state.final.ratio.low > 1.0
    assert state.final.ratio.value == pytest.approx(2.0, rel=0.2)
