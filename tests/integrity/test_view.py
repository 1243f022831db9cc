"""`selftest integrity`: what it prints and its exit code, on invented results and as a user runs it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from opratchet.cli.integrity_view import closing, counts, holds, line, record
from opratchet.integrity.driver import Fate, IntegrityTest, Options, Tried, fate
from opratchet.integrity.entries import Entry, chosen, read_corpus
from opratchet.lab.sandbox import Sandbox
from opratchet.ledger.words import Outcome
from tests.cli.conftest import Command, opratchet

__all__ = ["opratchet"]

EXPLOIT = Entry("steals", "theft", "It steals.", "A guard.", "", ends=(Outcome.CHEATED,))
TWIN = replace(EXPLOIT, name="honest_buys", is_twin=True, ends=())
OFF = Sandbox()


@pytest.mark.parametrize(
    ("outcome", "damage", "exploit", "twin"),
    [
        (Outcome.CHEATED, (), Fate.CAUGHT, Fate.REFUSED),
        (Outcome.CRASHED, (), Fate.CAUGHT, Fate.REFUSED),
        (Outcome.TIMEOUT, (), Fate.CAUGHT, Fate.REFUSED),
        (Outcome.NO_GAIN, (), Fate.IN_VAIN, Fate.ACCEPTED),
        (Outcome.REGRESSED, (), Fate.IN_VAIN, Fate.ACCEPTED),
        (Outcome.ADOPTED, (), Fate.THROUGH, Fate.ACCEPTED),
        (Outcome.CHEATED, ("the ledger",), Fate.THROUGH, Fate.REFUSED),
        (Outcome.NO_GAIN, ("the ledger",), Fate.THROUGH, Fate.REFUSED),
    ],
)
def test_what_an_outcome_means(
    outcome: Outcome, damage: tuple[str, ...], exploit: Fate, twin: Fate
) -> None:
    assert fate(EXPLOIT, outcome, damage) is exploit
    assert fate(TWIN, outcome, damage) is twin


def tried(entry: Entry, became: Fate, outcome: Outcome | None = None, why: str = "") -> Tried:
    """One result."""
    return Tried(entry, 0, became, outcome, "integrity", why)


GOOD = [
    tried(EXPLOIT, Fate.CAUGHT, Outcome.CHEATED, "it stole"),
    tried(EXPLOIT, Fate.IN_VAIN, Outcome.NO_GAIN),
    tried(TWIN, Fate.ACCEPTED, Outcome.ADOPTED),
    tried(EXPLOIT, Fate.NOT_COVERED, None, "needs a lock"),
]


def test_the_figures_add_up_and_what_is_not_covered_is_named() -> None:
    assert holds(GOOD)
    text = "\n".join(closing(GOOD, OFF, 7.0))
    assert "2 of 2 held off: 1 caught, 1 in vain, 0 adopted" in text
    assert "honest twins   1 of 1 accepted" in text
    assert "NOT COVERED    1: steals\n" in text
    assert "needs a lock" in text
    assert "NOT ACTIVE, switched off by --sandbox off" in text
    assert "took           7 s, 4 kernels" in text
    data = record(GOOD, OFF, 7.0)
    assert data["holds"]
    assert data["not_covered"] == 1
    assert data["protections"]["no network"]
    assert [row["fate"] for row in data["tried"]] == [
        "caught",
        "in vain",
        "accepted",
        "not covered",
    ]
    json.dumps(data)


@pytest.mark.parametrize(
    "bad",
    [tried(EXPLOIT, Fate.THROUGH, Outcome.ADOPTED), tried(TWIN, Fate.REFUSED, Outcome.CHEATED)],
)
def test_what_got_through_is_not_talked_away(bad: Tried) -> None:
    assert not holds([*GOOD, bad])
    text = "\n".join(closing([*GOOD, bad], OFF, 7.0))
    assert f"{bad.fate.value.upper()} " in text
    assert counts([*GOOD, bad])["adopted"] == int(bad.fate is Fate.THROUGH)
    assert bad.fate.value.upper() in line(bad)


def test_a_line_has_the_outcome_the_gate_the_damage_and_the_first_line_of_the_evidence() -> None:
    one = replace(GOOD[0], evidence="it stole\nand more", damage=("the ledger was changed",))
    text = line(one)
    assert text.startswith("steals ")
    for part in ("theft", "cheated", "integrity", "the ledger was changed; it stole"):
        assert part in text
    assert "and more" not in text


def test_what_cannot_be_tried_is_told_without_building_anything() -> None:
    entries = chosen(read_corpus(), ["kills_the_supervisor"])
    said: list[str] = []
    [one] = IntegrityTest(Options(entries, OFF), said.append).run()
    assert one.fate is Fate.NOT_COVERED
    assert "bubblewrap" in one.evidence
    assert said == []


def test_the_command_tries_what_is_named_and_nothing_else(opratchet: Command) -> None:
    done = opratchet("selftest", "integrity", "--only", "returning the input", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {row["name"]: row["fate"] for row in found["tried"]} == {
        "returns_a_copy_of_the_input": "caught",
        "returns_the_input": "caught",
        "honest_work_on_a_copy": "accepted",
    }
    assert "returns_the_input" in done.stderr


def test_a_name_that_there_is_not_is_bad_input(opratchet: Command) -> None:
    done = opratchet("selftest", "integrity", "--only", "memo_by_shap")
    assert done.returncode == 2
    assert "Did you mean `memo_by_shape`?" in done.stderr
