"""The fold: what the engine, the stop rules and the reports are told about a run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.errors import LedgerError
from opratchet.ledger.events import (
    BaselineMeasured,
    MachineChecked,
    Noted,
    RoundFinished,
    RunResumed,
    StrategySkipped,
    TrialFinished,
    TrialPassed,
)
from opratchet.ledger.state import fold
from opratchet.ledger.words import Conditions, Outcome, StopReason
from tests.builders import Story, full_story, sha

FAILED = [o.value for o in Outcome if not o.is_judged and o is not Outcome.PRUNED]
OUTCOMES = st.sampled_from([o.value for o in Outcome])
RUNS = st.lists(st.lists(OUTCOMES, max_size=4), max_size=8)


def tell(rounds: list[list[str]]) -> Story:
    """A run of these rounds. A round ends at its first adopted trial."""
    story = Story()
    story.open()
    for outcomes in rounds:
        story.round(*outcomes)
    story.close()
    return story


def tried_outcomes(rounds: list[list[str]]) -> list[list[str]]:
    return [r[: r.index("adopted") + 1] if "adopted" in r else r for r in rounds]


@given(RUNS, st.data())
@settings(max_examples=60, deadline=None)
def test_any_prefix_of_a_run_folds(rounds: list[list[str]], data: st.DataObject) -> None:
    lines = tell(rounds).lines
    length = data.draw(st.integers(0, len(lines)))
    state = fold(lines[:length])
    ended = sum(line.event.type == "trial_finished" for line in lines[:length])
    begun = sum(line.event.type == "trial_started" for line in lines[:length])
    assert sum(state.outcomes.values()) == ended
    assert len(state.trials) == begun
    assert len(state.open_trials) == begun - ended


@given(RUNS)
@settings(max_examples=60, deadline=None)
def test_counts_and_lineage(rounds: list[list[str]]) -> None:
    state = fold(tell(rounds).lines)
    tried = [outcome for r in tried_outcomes(rounds) for outcome in r]
    for outcome in Outcome:
        assert state.outcomes[outcome] == tried.count(outcome.value)
    assert state.experiments == len([o for o in tried if o != "pruned"])
    assert [t.outcome for t in state.lineage] == [Outcome.ADOPTED] * tried.count("adopted")
    chain = [state.run.source_sha256, *(t.source for t in state.lineage)]
    assert [t.parent for t in state.lineage] == chain[:-1]
    assert state.incumbent == state.best == chain[-1]


@pytest.mark.parametrize(
    ("rounds", "streak"),
    [
        ([["no_gain"], ["regressed"]], 2),
        ([["no_gain"], ["adopted"]], 0),
        ([["adopted"], ["no_gain"], ["regressed", "no_gain"]], 2),
        ([["no_gain"], ["pruned"], ["no_gain"]], 2),
        ([["no_gain"], [], ["no_gain"]], 2),
        ([["compile_failed", "no_gain"]], 1),
        ([[outcome] for outcome in FAILED], 0),
    ],
)
def test_only_timed_rounds_count_as_without_gain(rounds: list[list[str]], streak: int) -> None:
    assert fold(tell(rounds).lines).rounds_without_gain == streak


def test_failed_trials_are_experiments_and_pruned_ones_are_not() -> None:
    assert fold(tell([FAILED]).lines).experiments == len(FAILED)
    assert fold(tell([["pruned", "pruned"]]).lines).experiments == 0


def test_an_open_trial_is_counted_nowhere_until_it_ends() -> None:
    story = Story()
    story.open()
    story.begin_round()
    trial = story.begin_trial()
    state = fold(story.lines)
    assert [t.number for t in state.open_trials] == [trial.trial]
    assert state.open_round is not None and state.open_round.number == 1
    assert state.experiments == 0
    assert (trial.parent, trial.edit) not in state.tried
    assert trial.source not in state.judged

    story.end_trial(trial.trial, Outcome.TIMEOUT)
    state = fold(story.lines)
    assert state.open_trials == []
    assert (trial.parent, trial.edit) in state.tried
    assert trial.source in state.judged


def test_the_baseline_counts_as_judged() -> None:
    story = Story()
    story.start()
    assert fold(story.lines).judged == {story.baseline}


def test_an_edit_without_effect_is_known_by_its_id() -> None:
    story = Story()
    story.open()
    story.begin_round()
    trial = story.begin_trial(edit="pipeline/num_stages=2")
    story.end_trial(trial.trial, Outcome.NO_GAIN, no_effect=True)
    assert fold(story.lines).no_effect == {"pipeline/num_stages=2"}


def test_each_round_knows_the_diagnosis_it_began_with() -> None:
    rounds = fold(full_story().lines).rounds
    names = [r.diagnosis.bottlenecks[0].name if r.diagnosis else "" for r in rounds.values()]
    assert names == ["compute_density"] + ["memory_bound"] * 4


def test_skipped_strategies_notes_and_time_are_kept() -> None:
    story = full_story()
    for why in ("first reason", "second reason"):
        story.add(StrategySkipped(strategy="double_buffer", incumbent=story.incumbent, why=why))
    story.add(Noted(text="the machine was busy"))
    state = fold(story.lines)
    assert state.skipped == {(story.incumbent, "double_buffer"): "second reason"}
    assert state.notes == ["the machine was busy"]
    assert state.seconds == {"build": 6.0, "accuracy": 3.0, "measure": 3.0}


def test_resuming_lifts_the_stop_and_adopting_voids_the_final_figures() -> None:
    story = full_story()
    assert fold(story.lines).is_complete
    story.add(RunResumed(tool_version="0.1.0"))
    state = fold(story.lines)
    assert (state.stop, state.delivered) == (None, None)
    assert state.final is not None
    assert not state.is_complete
    story.round("adopted")
    state = fold(story.lines)
    assert state.final is None
    assert state.best == story.incumbent
    story.close(StopReason.MAX_ROUNDS)
    assert fold(story.lines).is_complete


def test_the_baseline_is_best_when_the_final_measurement_says_so() -> None:
    story = Story()
    story.open()
    story.round("adopted", speedup=1.02)
    story.stop()
    story.measure_final(400.0, 400.0, source=story.baseline)
    state = fold(story.lines)
    assert state.incumbent != story.baseline
    assert state.best == story.baseline
    assert state.best_trial is None


def finish(story: Story, adopted: int | None, incumbent: str) -> None:
    story.add(
        RoundFinished(
            round=story.rounds, adopted=adopted, shown=adopted, version="", incumbent=incumbent
        )
    )


def adopt_a_failure(story: Story) -> None:
    story.begin_round()
    trial = story.begin_trial()
    story.end_trial(trial.trial, Outcome.CRASHED)
    finish(story, trial.trial, trial.source)


def change_incumbent_without_adoption(story: Story) -> None:
    story.begin_round()
    finish(story, None, sha("elsewhere"))


def finish_a_trial_twice(story: Story) -> None:
    story.begin_round()
    for _ in range(2):
        story.end_trial(1 if story.trials else story.begin_trial().trial, Outcome.CRASHED)


def use_a_trial_number_twice(story: Story) -> None:
    story.begin_round()
    story.begin_trial()
    story.trials = 0
    story.begin_trial()


def start_from_something_else(story: Story) -> None:
    story.begin_round()
    story.incumbent = sha("elsewhere")
    story.begin_trial()


def adopt_a_stranger(story: Story) -> None:
    story.begin_round()
    finish(story, 7, story.incumbent)


@pytest.mark.parametrize(
    "spoil",
    [
        Story.start,
        Story.begin_trial,
        adopt_a_failure,
        adopt_a_stranger,
        change_incumbent_without_adoption,
        finish_a_trial_twice,
        use_a_trial_number_twice,
        start_from_something_else,
    ],
)
def test_a_contradiction_is_an_error_that_names_its_line(spoil) -> None:  # type: ignore[no-untyped-def]
    story = Story()
    story.open()
    fold(story.lines)
    spoil(story)
    with pytest.raises(LedgerError, match="contradicts") as caught:
        fold(story.lines)
    assert caught.value.where == f"ledger line {len(story.lines)}"


def test_a_ledger_without_a_run_has_no_header() -> None:
    with pytest.raises(LedgerError, match="holds no run"):
        _ = fold([]).run


def check_machine(story: Story, us: float, change: float, anchored: bool) -> None:
    """The baseline takes `us` now, `change` times as long as at the last anchor."""
    seconds = {"measure": 0.5}
    now = story.latencies(us)
    story.add(MachineChecked(latency=now, change=change, anchored=anchored, seconds=seconds))


def test_a_change_of_the_machine_scales_what_was_measured_before_it_and_not_what_comes_after() -> (
    None
):
    story = Story()
    story.open(400.0)
    story.round("adopted")
    check_machine(story, 600.0, 1.5, anchored=True)
    state = fold(story.lines)
    assert state.slowdown == 1.5
    assert state.anchor == story.latencies(600.0)
    assert state.baseline == story.latencies(400.0)
    assert state.incumbent_latency == story.latencies(300.0)
    assert state.lineage[-1].latency == story.latencies(200.0)

    story.us = 300.0
    story.round("adopted", speedup=3.0)
    assert fold(story.lines).incumbent_latency == story.latencies(100.0)
    check_machine(story, 400.0, 2 / 3, anchored=True)
    state = fold(story.lines)
    assert state.slowdown == pytest.approx(1.0)
    assert state.incumbent_latency["small"].us == pytest.approx(100 * 2 / 3)
    assert state.lineage[0].slowdown == 1.0


def test_the_baseline_is_scaled_while_it_is_the_incumbent() -> None:
    story = Story()
    story.open(400.0)
    check_machine(story, 200.0, 0.5, anchored=True)
    assert fold(story.lines).incumbent_latency == story.latencies(200.0)


def test_a_check_that_finds_no_change_moves_nothing() -> None:
    story = Story()
    story.open(400.0)
    check_machine(story, 410.0, 1.025, anchored=False)
    state = fold(story.lines)
    assert (state.slowdown, len(state.checks)) == (1.0, 1)
    assert state.anchor == state.incumbent_latency == story.latencies(400.0)
    assert state.seconds == {"measure": 0.5}


def test_a_trial_that_passed_before_a_change_keeps_the_speed_it_was_timed_at() -> None:
    story = Story()
    story.open(400.0)
    story.begin_round()
    trial = story.begin_trial()
    result = TrialFinished(
        trial=trial.trial, outcome=Outcome.ADOPTED, latency=story.latencies(200.0)
    )
    story.add(TrialPassed(trial=trial.trial, result=result))
    check_machine(story, 800.0, 2.0, anchored=True)
    story.add(result)
    finish(story, trial.trial, trial.source)
    assert fold(story.lines).incumbent_latency == story.latencies(400.0)


def test_a_resumed_run_has_to_check_the_machine() -> None:
    story = full_story()
    assert not fold(story.lines).must_check
    story.add(RunResumed(tool_version="0.1.0"))
    assert fold(story.lines).must_check
    check_machine(story, 400.0, 1.0, anchored=False)
    assert not fold(story.lines).must_check


def test_the_conditions_of_each_measurement_are_kept_in_order() -> None:
    story = Story()
    story.start()
    seen = [Conditions(load=0.5), Conditions(load=1.5)]
    latency = story.latencies(400.0)
    story.add(BaselineMeasured(latency=latency, conditions=seen[0]))
    story.begin_round()
    trial = story.begin_trial().trial
    story.add(TrialFinished(trial=trial, outcome=Outcome.NO_GAIN, conditions=seen[1]))
    story.add(MachineChecked(latency=latency, change=1.0, anchored=False))
    assert fold(story.lines).conditions == seen


def test_a_machine_cannot_be_checked_before_its_baseline_is_known() -> None:
    story = Story()
    story.start()
    check_machine(story, 400.0, 1.0, anchored=False)
    with pytest.raises(LedgerError, match="first latency"):
        fold(story.lines)
