"""Whatever is changed of a run's limits on the way, the error of all its comparisons together stays within the bound."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.judge.allowance import Stretch, stretches, trials_for
from opratchet.ledger.events import RunResumed, TrialFinished, TrialPassed
from opratchet.ledger.words import Outcome
from tests.builders import Story, ratio

START = Stretch(compared=0, to_come=120)


@pytest.mark.parametrize("compared", [0, 1, 60, 119])
def test_a_run_that_only_goes_on_divides_as_before(compared: int) -> None:
    assert trials_for([START]) == 120
    assert trials_for([START, Stretch(compared, 120 - compared)]) == 120


def test_a_raised_limit_divides_what_is_left() -> None:
    # Half of the error is left for 240 comparisons: each may use 1 / 480 of all of it.
    assert trials_for([START, Stretch(60, 240)]) == 480


def test_a_lowered_limit_makes_no_comparison_more_lenient() -> None:
    assert trials_for([START, Stretch(60, 1)]) == 120
    assert trials_for([START, Stretch(60, 1), Stretch(61, 59)]) == 120


def test_nothing_can_be_raised_when_all_is_used_up() -> None:
    assert trials_for([START, Stretch(120, 80)]) is None


RUN = st.lists(st.tuples(st.integers(0, 200), st.floats(0.0, 1.0)), min_size=1, max_size=8)


@given(RUN)
def test_the_shares_of_all_comparisons_never_exceed_the_whole(
    limits: list[tuple[int, float]],
) -> None:
    """Each stretch makes some share of the comparisons that it may."""
    run: list[Stretch] = []
    compared, used = 0, Fraction(0)
    for to_come, share in limits:
        run.append(Stretch(compared, to_come))
        divisor = trials_for(run)
        if divisor is None:
            assert used == 1
            return
        made = int(to_come * share)
        assert used + Fraction(to_come, divisor) <= 1
        compared += made
        used += Fraction(made, divisor)


def resumed(story: Story, **options: int) -> Story:
    """The story goes on under other limits."""
    story.add(RunResumed(tool_version="0", options=options))
    return story


def test_a_ledger_tells_what_was_compared_and_what_may_come() -> None:
    story = Story()
    story.open()
    story.round("adopted")
    story.round("no_gain", "compile_failed", "pruned", "regressed")
    story.stop()
    resumed(story, max_experiments=20)
    story.round("accuracy_failed", "no_gain")
    resumed(story)
    # Of 7 trials one was pruned (no experiment), two more were never timed.
    assert stretches(story.lines) == [Stretch(0, 120), Stretch(3, 16), Stretch(4, 14)]


def test_an_interrupted_round_is_finished_even_beyond_the_limit() -> None:
    story = Story()
    story.open()
    story.begin_round(planned=["a", "b", "c", "d"])
    story.end_trial(story.begin_trial(edit="a").trial, Outcome.NO_GAIN)
    number = story.begin_trial(edit="b").trial
    result = TrialFinished(trial=number, outcome=Outcome.ADOPTED, ratio=ratio(2.0))
    story.add(TrialPassed(trial=number, result=result))
    story.begin_trial(edit="c")
    resumed(story, max_experiments=2)
    assert stretches(story.lines)[-1] == Stretch(compared=2, to_come=2)
