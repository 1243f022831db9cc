"""Ledgers that are chained without a flaw and cannot be right: what was forged in them is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opratchet.audit.examine import examine
from opratchet.ledger.store import LEDGER
from tests.audit.recorded import Events, first, forge


def drop(kind: str, place: int = 0) -> Callable[[Events], None]:
    """Take one event out."""
    return lambda events: events.remove(first(events, kind, place))


def put(kind: str, place: int = 0, **changes: Any) -> Callable[[Events], None]:
    """Change fields of one event; `a__b` is field `b` of field `a`."""

    def change(events: Events) -> None:
        for path, value in changes.items():
            *way, last = path.split("__")
            found = first(events, kind, place)
            for key in way:
                found = found[key]
            found[last] = value

    return change


def both(*changes: Callable[[Events], None]) -> Callable[[Events], None]:
    """Several changes."""

    def change(events: Events) -> None:
        for one in changes:
            one(events)

    return change


def move(kind: str, after: str, place: int = 0) -> Callable[[Events], None]:
    """Put an event behind another one."""

    def change(events: Events) -> None:
        moved = first(events, kind, place)
        events.remove(moved)
        events.insert(events.index(first(events, after)) + 1, moved)

    return change


def doubled(kind: str, place: int = 0) -> Callable[[Events], None]:
    """Have an event twice."""

    def change(events: Events) -> None:
        found = first(events, kind, place)
        events.insert(events.index(found) + 1, found)

    return change


def adopted(**changes: Any) -> Callable[[Events], None]:
    """Change the trial that the first round adopted, where it passed and where it finished."""
    return both(
        put("trial_passed", **{f"result__{key}": value for key, value in changes.items()}),
        put("trial_finished", 1, **changes),
    )


ORDER = {
    "a gate after the baseline": (move("gate_passed", "baseline_measured"), "before the gate"),
    "no gate": (drop("gate_passed"), "before the gate"),
    "no baseline": (drop("baseline_measured"), "before the baseline"),
    "two gates": (doubled("gate_passed"), "opened before"),
    "two baselines": (doubled("baseline_measured"), "measured before"),
    "a trial outside its round": (drop("round_started", 1), "round 2 is not open"),
    "a trial of another round": (put("trial_started", 3, round=1), "round 1 is not open"),
    "a trial that was not planned": (put("trial_started", edit="block_size/x=1"), "set out to try"),
    "a trial from another version": (put("trial_started", 3, parent="0" * 64), "round's incumbent"),
    "an outcome without a trial": (drop("trial_started"), "is not open"),
    "a trial without an outcome": (drop("trial_finished"), "has no outcome"),
    "two outcomes": (doubled("trial_finished"), "is not open"),
    "adopted without the gates": (drop("trial_passed"), "passed the gates"),
    "adopted with other figures": (
        put("trial_finished", 1, ratio__value=2.001),
        "with which it passed",
    ),
    "another outcome after passing": (
        put("trial_finished", 1, outcome="regressed"),
        "ends as regressed",
    ),
    "a round that ends twice": (doubled("round_finished"), "is not open"),
    "a round that never ends": (drop("round_finished", 1), "still open"),
    "rounds out of number": (put("round_started", 1, round=5), "next one is 2"),
    "an adoption that is not named": (put("round_finished", adopted=None), "names None"),
    "a foreign version file": (put("round_finished", version="x.py"), "version file is"),
    "a diagnosis of another version": (put("diagnosed", incumbent="0" * 64), "not the incumbent"),
    "a round after the stop": (move("stopped", "machine_checked"), "nothing more may be tried"),
    "no stop": (drop("stopped"), "before any stop rule held"),
    "no final measurement": (drop("final_measured"), "without a final measurement"),
    "another version measured": (put("final_measured", source="0" * 64), "no adopted version"),
    "another version delivered": (put("delivered", source="0" * 64), "measured last"),
    "something after the delivery": (move("strategy_skipped", "delivered"), "only a resumption"),
}
FACTS = {
    "adopted within noise": (adopted(ratio__low=0.9), "not faster"),
    "adopted below the minimum effect": (
        adopted(ratio={"value": 1.005, "low": 1.001, "high": 1.01, "pairs": 9, "confidence": 0.9}),
        "minimum effect",
    ),
    "adopted and slower somewhere": (
        adopted(
            ratios__small={"value": 0.5, "low": 0.4, "high": 0.6, "pairs": 9, "confidence": 0.9}
        ),
        "slower on small",
    ),
    "adopted and inaccurate": (
        both(
            lambda events: first(events, "trial_finished", 1)["accuracy"][0].update(passed=False),
            lambda events: first(events, "trial_passed")["result"]["accuracy"][0].update(
                passed=False
            ),
        ),
        "accuracy gate",
    ),
    "adopted and not compared": (adopted(accuracy=[]), "was not checked"),
    "a gate without a workload": (
        lambda events: first(events, "gate_passed")["accuracy"].pop(),
        "odd was not checked",
    ),
    "a workload without a figure": (
        lambda events: first(events, "baseline_measured")["latency"].pop("small"),
        "not the tune workloads",
    ),
    "no gain without a figure": (put("trial_finished", ratio=None), "never timed"),
    "a figure of what was not timed": (
        lambda events: first(events, "trial_finished", 2).update(
            ratio=first(events, "trial_finished", 1)["ratio"]
        ),
        "ends as compile_failed",
    ),
    "slower and faster": (
        put("trial_finished", 3, ratio__low=1.9, ratio__value=2.0, ratio__high=2.1),
        "not the mean",
    ),
    "accurate and failed": (
        lambda events: first(events, "trial_finished", 4)["accuracy"][0].update(
            passed=True, out_of_tolerance=0.0
        ),
        "every comparison passed",
    ),
    "passed and out of tolerance": (
        lambda events: first(events, "gate_passed")["accuracy"][0].update(out_of_tolerance=0.5),
        "share of elements",
    ),
    "a total that is no mean": (
        put("final_measured", ratio__value=8.0, ratio__low=7.9, ratio__high=8.1),
        "not the mean",
    ),
    "a speed-up that is not that of the latencies": (
        put(
            "final_measured",
            ratios__small__value=4.4,
            ratios__small__low=4.3,
            ratios__small__high=4.5,
        ),
        "not that of the latencies",
    ),
    "another metric kind": (
        put("final_measured", final__small__kind="simulated"),
        "another metric kind",
    ),
    "a negative duration": (put("final_measured", seconds__measure=-3.0), "no duration"),
    "times that do not add up": (put("delivered", seconds__own=30.0), "add up"),
    "a change of the machine": (put("machine_checked", change=1.5), "not that of the latencies"),
}
STOPS = {
    "a limit that held before": (
        put("run_started", options__max_rounds=2),
        "stop rule held before",
    ),
    "a limit that did not hold": (put("run_started", options__max_rounds=9), "did not hold"),
    "another reason": (put("stopped", reason="no_gain"), "another one held"),
    "nothing left, and yet a limit": (put("stopped", reason="nothing_left"), "another one held"),
    "a target reached before": (
        put(
            "run_started",
            target={"metric": "speedup", "value": 1.5, "source": "command line", "workload": ""},
        ),
        "stop rule held before",
    ),
    "options of another kind": (put("run_started", options__patience="three"), "cannot be judged"),
}


@pytest.mark.parametrize("name", [*ORDER, *FACTS, *STOPS])
def test_what_cannot_be_right_is_named(run: Path, name: str) -> None:
    change, expected = {**ORDER, **FACTS, **STOPS}[name]
    forge(run, change)
    found = [f for f in examine(run).findings if f.file == LEDGER]
    assert any(expected in f.what for f in found), [f.what for f in found]
    assert all(f.check != "ledger" for f in found)
    assert all(f.line for f in found)


def test_a_stop_on_a_budget_that_was_not_spent(run: Path) -> None:
    budget = put("run_started", options__budget_seconds=3600.0, options__max_rounds=9)
    forge(run, both(budget, put("stopped", reason="time_budget")))
    assert any("had not spent it" in f.what for f in examine(run).findings)
    forge(run, put("delivered", seconds={"total": 3700.0}))
    assert not any(f.check == "stop" for f in examine(run).findings)


def test_a_clock_may_be_off_by_some_seconds(run: Path) -> None:
    def late(events: Events) -> None:
        first(events, "run_started")["options"]["budget_seconds"] = 1e-9

    forge(run, late)
    assert examine(run).is_clean
