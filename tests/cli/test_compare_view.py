"""The verdict of `compare` in a word, and how people see it."""

from __future__ import annotations

import pytest

from opratchet.cli.compare_view import lines
from opratchet.compare import Answer, Figure, Side, WorkloadAnswer, word
from opratchet.contest import Comparison
from opratchet.judge.decision import Verdict
from opratchet.ledger.words import MetricKind, Ratio


def ratio(value: float, low: float, high: float) -> Ratio:
    """A speed-up."""
    return Ratio(value=value, low=low, high=high, pairs=144, processes=6, confidence=0.999)


def compared(verdict: Verdict, total: Ratio, *slower: str) -> Comparison:
    """What a contest gave."""
    ratios = {"n64": ratio(1.5, 1.4, 1.6), "n512": ratio(0.9, 0.88, 0.92)}
    return Comparison(verdict, total, ratios, slower, {}, {}, [], None, {})


def test_slower_on_a_workload_is_no_clear_verdict() -> None:
    blocked = word(compared(Verdict.BLOCKED, ratio(1.2, 1.1, 1.3), "n512"), 0.01)
    assert blocked[0] is Verdict.INCONCLUSIVE
    assert "n512 (0.90x)" in blocked[1]
    assert blocked[2] == ["n512"]
    mixed = word(compared(Verdict.SLOWER, ratio(0.99, 0.95, 1.02), "n512"), 0.01)
    assert mixed[0] is Verdict.INCONCLUSIVE
    assert mixed[2] == ["n512"]


@pytest.mark.parametrize("verdict", [Verdict.FASTER, Verdict.SLOWER, Verdict.TIE])
def test_a_clear_verdict_stays(verdict: Verdict) -> None:
    assert word(compared(verdict, ratio(0.9, 0.8, 0.95), "n512"), 0.01)[0] is verdict


def test_people_see_the_verdict_first_then_each_workload() -> None:
    a, b = Figure(100.0, 99.0, 101.0, 144), Figure(70.0, 69.0, 71.0, 144)
    given = Answer(
        Verdict.FASTER,
        MetricKind.MEASURED,
        "us",
        Side("a.py", a),
        Side("b.py", b),
        1.0,
        ratio(1.42, 1.39, 1.45),
        by_workload=[WorkloadAnswer("n[64]", ratio(1.42, 1.39, 1.45), a, b)],
        noise=ratio(1.0, 0.99, 1.01),
    )
    assert lines(given) == [
        "B is faster: 1.42x [1.39, 1.45], measured, 144 pairs in 6 pairs of processes",
        "  n[64]   100.0 us [99.0, 101.0] -> 70.0 us [69.0, 71.0]   1.42x [1.39, 1.45]",
        "  A   a.py",
        "  B   b.py",
        "  noise   A against itself 1.00x [0.99, 1.01]",
    ]
