"""The rates and the critical path, against small runs by hand and against slow ways to compute the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.profile.swimlane import honest, upstream
from opratchet.profile.swimlane.bubble_log import CoreFigures
from opratchet.profile.swimlane.dependencies import critical_path
from opratchet.profile.swimlane.timeline import Cores, Timeline
from tests.profile.swimlane.build import timeline

CORES = Cores(2, 3)


@st.composite
def runs(draw: st.DrawFn) -> Timeline:
    """Tasks on whole microseconds; each starts when all it waits for has ended, or later. Task 0 does no work."""
    count = draw(st.integers(1, 8))
    lanes: dict[str, list[tuple[int, float, float]]] = {
        name: [] for name in ("AIC_1", "AIC_2", "AIV_3", "AIV_4")
    }
    after: dict[int, list[int]] = {0: [], **{n: [] for n in range(1, count + 1)}}
    ends = {0: 0}
    for number in range(1, count + 1):
        before = draw(st.sets(st.integers(0, number - 1), max_size=3))
        for other in before:
            after[other].append(number)
        ready = max((ends[other] for other in before), default=0)
        start = ready + draw(st.integers(0, 4))
        ends[number] = start + draw(st.integers(1, 5))
        lanes[draw(st.sampled_from(sorted(lanes)))].append((number, start, ends[number]))
    return timeline(lanes, after)


def ready_by_search(run: Timeline, number: int) -> float:
    """When a task could start, by asking all it waits for; task 0 is passed through."""
    times = {slot.key[1]: (slot.start, slot.end) for slot in run.slots()}
    assert run.successors is not None
    before = [key[1] for key, others in run.successors.items() if (0, number) in others]
    first = min(start for start, _ in times.values())
    return max((times[n][1] if n in times else first for n in before), default=first)


@given(run=runs())
def test_bubbles_are_what_counting_every_microsecond_gives(run: Timeline) -> None:
    first, last = run.span
    for use in honest.kind_uses(run, CORES):
        lanes = run.of(use.kind)
        waiting = [(ready_by_search(run, s.key[1]), s.start) for lane in lanes for s in lane.slots]
        busy = lost = 0
        for now in range(int(first), int(last)):
            at_work = sum(any(s.start <= now < s.end for s in lane.slots) for lane in lanes)
            ready = sum(since <= now < start for since, start in waiting)
            busy += at_work
            lost += min(use.cores - at_work, ready)
        assert use.busy_us == pytest.approx(busy)
        assert use.bubble_us == pytest.approx(lost)


@given(run=runs())
def test_honest_rates_are_shares_of_a_whole(run: Timeline) -> None:
    rates = honest.rates(honest.kind_uses(run, CORES))
    assert 0 < rates.core_utilisation <= 1
    assert 0 <= rates.bubble <= 1 - rates.core_utilisation + 1e-9
    assert 0 < rates.load_balance <= 1 + 1e-9


@given(run=runs())
def test_the_critical_path_is_the_longest_of_all_chains(run: Timeline) -> None:
    assert run.successors is not None
    us = {slot.key: slot.us for slot in run.slots()}
    successors = run.successors

    def longest(key: tuple[int, int]) -> float:
        return us.get(key, 0.0) + max((longest(other) for other in successors[key]), default=0.0)

    path = critical_path(run)
    assert path is not None
    assert path.us == pytest.approx(max(longest(key) for key in successors))
    assert path.us == pytest.approx(sum(step.us for step in path.steps))
    assert 0 < path.share <= 1 + 1e-9
    for one, other in pairwise(path.steps):
        assert one.start_us + one.us <= other.start_us + 1e-9


def test_a_circle_is_refused() -> None:
    run = timeline({"AIC_1": [(1, 0, 1), (2, 1, 2)]}, {1: [2], 2: [1]})
    with pytest.raises(BadInput, match="run in a circle"):
        critical_path(run)


def test_idle_cores_and_the_tail_lower_the_honest_rate_only() -> None:
    """One core works 0-1 and stops, one 0-10, one never: upstream sees two cores at 100 %."""
    run = timeline({"AIV_1": [(1, 0, 1)], "AIV_2": [(2, 0, 10)]}, {})
    assert upstream.rates(upstream.figures(run)).core_utilisation == pytest.approx(1.0)
    rates = honest.rates(honest.kind_uses(run, Cores(0, 3)))
    assert rates.core_utilisation == pytest.approx(11 / 30)
    assert rates.load_balance == pytest.approx(11 / 3 / 10)


def test_an_idle_core_in_the_list_counts_as_0_for_upstream() -> None:
    run = timeline({"AIV_1": [(1, 0, 10)], "AIV_2": []}, {})
    assert upstream.rates(upstream.figures(run)).core_utilisation == pytest.approx(0.5)


def test_overlap_makes_a_core_vanish_for_upstream() -> None:
    """The second task starts at 6, although the first ends at 10: a wait of -4. The core worked 0-12 for all that."""
    run = timeline({"AIC_1": [(1, 0, 10), (2, 6, 12)], "AIC_2": [(3, 3, 12)]}, {})
    overlapping, plain = upstream.figures(run)
    assert (overlapping.wait, overlapping.schedule) == (-4, -4)
    assert not upstream.is_counted(overlapping) and upstream.is_counted(plain)
    rates = upstream.rates([overlapping, plain])
    assert rates.core_utilisation == pytest.approx(9 / 12)
    assert rates.load_balance == 1.0  # one AIC core is left
    both = honest.kind_uses(run, Cores(2, 0))[0]
    assert both.busy_us == pytest.approx(12 + 9)


PLAIN = CoreFigures("AIV_1", 1, 5.0, 1.0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ({}, True),
        ({"work": 5e-16}, False),
        ({"wait": -0.0}, False),
        ({"schedule": 1e-05}, False),
        ({"predecessor": 5.5e-17}, True),  # its pattern is content with the `5.5`
        ({"predecessor": -5.5e-17}, False),
        ({"name": "HUB_80"}, False),
        ({"name": "Fake Core_0"}, False),
    ],
)
def test_which_cores_upstream_finds(change: dict[str, float], counted: bool) -> None:
    assert upstream.is_counted(replace(PLAIN, **change)) is counted


def test_where_upstream_finds_no_core_there_are_no_rates() -> None:
    rates = upstream.rates([replace(PLAIN, wait=-1.0)])
    assert (rates.core_utilisation, rates.bubble) == (0.0, 0.0)


def test_upstream_load_balance_falls_below_0() -> None:
    """Times 12, 0, 0, 0: mean 3, deviation sqrt(27) = 5.196."""
    cores = [CoreFigures(f"AIC_{n}", 1, 12.0, 12.0 if n else 0.0, 0.0, 0.0) for n in range(4)]
    assert upstream.rates(cores).load_balance == pytest.approx(1 - 27**0.5 / 3)


def test_tasks_that_no_core_executed_end_where_upstream_draws_them() -> None:
    """The first ends at the start of the earliest task behind it, so that task waits 0; the second, with nothing
    behind it, changes nothing; both are no work of a core."""
    run = timeline({"AIV_1": [(1, 2, 4)], "AIV_2": [(2, 5, 6)]}, {0: [1, 2], 1: [9], 2: [9], 9: []})
    one, two = upstream.figures(run)
    assert (one.wait, one.schedule) == (0, 0)
    assert (two.wait, two.schedule) == (3, 3)  # 0 ends at 2, when task 1 starts
