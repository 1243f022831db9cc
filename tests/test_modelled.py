"""Comparison by a model's figures: exact, checked to be the same each time, and behind the same gates as any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opratchet import comparing
from opratchet.engine import tune
from opratchet.flow.model import StopRules
from opratchet.gates import GateClosed
from opratchet.judge.decision import Rule, Verdict
from opratchet.judge.spread import Spread
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.words import MetricKind, Outcome
from tests.engine.scripted import (
    PATIENT,
    Asked,
    assemble,
    candidate,
    edit,
    lab_for,
    make_operator,
    start,
)
from tests.modelled_backend import NAME

RULE = Rule(minimum_effect=0.01)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with two tune workloads, n64 and n128."""
    operator = make_operator(tmp_path_factory.mktemp("operator"), workloads=2, backend=NAME)
    with lab_for(operator, PATIENT) as opened:
        yield opened


def built(lab: Lab, *directives: str, time: int = 400) -> Build:
    return lab.build(candidate(*directives, time=time), lab.operator.checked)


@pytest.mark.parametrize(
    ("directives", "verdict", "ratio"),
    [
        (("time_64: 200", "time_128: 200"), Verdict.FASTER, 2.0),
        (("time_64: 800", "time_128: 800"), Verdict.SLOWER, 0.5),
        (("time_64: 398", "time_128: 398"), Verdict.TIE, 400 / 398),
        (("time_64: 100", "time_128: 401"), Verdict.BLOCKED, (4 * 400 / 401) ** 0.5),
        (("time_64: 100", "time_128: 400"), Verdict.FASTER, 2.0),
    ],
)
def test_figures_are_compared_as_they_are(
    lab: Lab, directives: tuple[str, ...], verdict: Verdict, ratio: float
) -> None:
    found = comparing.contest(lab, built(lab), built(lab, *directives), RULE, Spread())

    assert found.verdict is verdict
    assert found.ratio.value == pytest.approx(ratio)
    assert found.ratio.low == found.ratio.value == found.ratio.high
    assert {latency.kind for latency in found.candidate.values()} == {MetricKind.SIMULATED}


def test_every_workload_is_interpreted_and_compared_with_the_golden(lab: Lab) -> None:
    found = comparing.contest(lab, built(lab), built(lab, time=200), RULE, Spread())

    assert [(record.workload, record.passed) for record in found.accuracy] == [
        ("n64", True),
        ("n128", True),
        ("n7", True),
    ]


@pytest.mark.parametrize(
    ("directive", "outcome"),
    [
        ("run: wrong", Outcome.ACCURACY_FAILED),
        ("run: half", Outcome.ACCURACY_FAILED),
        ("run: mutate", Outcome.CHEATED),
        ("again: 399", Outcome.PROFILE_INVALID),
        ("again: 0", Outcome.PROFILE_INVALID),
    ],
)
def test_what_is_wrong_is_not_compared(lab: Lab, directive: str, outcome: Outcome) -> None:
    with pytest.raises(GateClosed) as closed:
        comparing.contest(lab, built(lab), built(lab, directive, time=1), RULE, Spread())

    assert closed.value.outcome is outcome


def test_a_file_that_holds_no_figure_is_an_outcome_and_no_traceback(lab: Lab) -> None:
    with pytest.raises(GateClosed, match="no figure") as closed:
        comparing.contest(lab, built(lab), built(lab, "figure: none"), RULE, Spread())

    assert closed.value.outcome is Outcome.PROFILE_INVALID


def test_an_interpreter_that_crashes_is_told(lab: Lab) -> None:
    with pytest.raises(WorkerFailed) as failed:
        comparing.contest(lab, built(lab), built(lab, "run: crash", time=1), RULE, Spread())

    assert failed.value.outcome is Outcome.CRASHED
    assert "n64" in failed.value.reason


def test_a_model_that_gives_another_figure_each_time_is_no_baseline(lab: Lab) -> None:
    with pytest.raises(GateClosed, match="and then") as closed:
        comparing.learn_noise(lab, built(lab, "unsteady: yes"))

    assert closed.value.outcome is Outcome.PROFILE_INVALID


def test_a_model_against_itself_is_exactly_one(lab: Lab) -> None:
    found, spread = comparing.learn_noise(lab, built(lab))

    assert (found.ratio.low, found.ratio.high) == (1.0, 1.0)
    assert spread.record() == {}


def test_a_run_by_a_model_adopts_and_delivers_the_exact_speed_up(tmp_path: Path) -> None:
    operator = make_operator(tmp_path, backend=NAME)
    points = [[edit("fast", time=200), edit("wrong", "run: wrong", time=1)], [edit("same")]]
    rules = StopRules(max_rounds=2)
    with lab_for(operator, PATIENT) as lab, start(lab, tmp_path / "out", rules) as ledger:
        state = tune(assemble(lab, ledger, points, rules, Asked()))

    assert state.final is not None
    assert state.final.ratio.value == 2.0
    assert state.outcomes[Outcome.ADOPTED] == 1
    assert state.outcomes[Outcome.ACCURACY_FAILED] == 1
    assert not state.checks, "a model does not grow slower: there is no machine to check"


def test_two_runs_by_a_model_decide_alike(tmp_path: Path) -> None:
    def decisions(name: str) -> list[tuple[str, object, object]]:
        operator = make_operator(tmp_path / name, backend=NAME)
        points = [[edit("fast", time=200), edit("faster", time=150)], [edit("slow", time=900)]]
        rules = StopRules(max_rounds=2)
        with lab_for(operator, PATIENT) as lab, start(lab, tmp_path / name / "o", rules) as ledger:
            state = tune(assemble(lab, ledger, points, rules, Asked()))
        return [(t.edit, t.outcome, t.ratio and t.ratio.value) for t in state.trials.values()]

    assert decisions("one") == decisions("two")
