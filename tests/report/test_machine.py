"""A machine that changed while the run measured, in the pages for people."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from opratchet.ledger.events import BaselineMeasured, MachineChecked
from opratchet.ledger.state import fold
from opratchet.ledger.words import Conditions
from opratchet.report.opt_log import opt_log
from opratchet.report.stage_result import stage_result
from opratchet.report.words import Lang
from tests.builders import Story, full_story

FOLDER = PurePath("perf_opt")
SPEED = {"zh": "测量期间机器速度变化", "en": "the machine's speed changed"}
DISTURBED = {"zh": "受干扰的测量: 1/2", "en": "disturbed measurements: 1 of 2"}
QUIET, LOADED = Conditions(load=0.3, cpus=2), Conditions(load=3.2, cpus=2)


def check(story: Story, us: float, change: float, anchored: bool = True) -> None:
    story.add(MachineChecked(latency=story.latencies(us), change=change, anchored=anchored))


def changed_story() -> Story:
    """400 us; slower by 1.5; a version of 300 us there, twice as fast; then as fast as at first."""
    story = Story()
    story.open(400.0)
    check(story, 600.0, 1.5)
    story.us = 600.0
    story.round("adopted", speedup=2.0)
    check(story, 400.0, 2 / 3)
    story.stop()
    story.measure_final(400.0, 200.0)
    story.deliver()
    return story


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_both_pages_tell_each_change_by_its_factor_since_the_beginning(lang: Lang) -> None:
    state = fold(changed_story().lines)
    page = opt_log(state, lang, FOLDER)
    (line,) = [line for line in page.splitlines() if line.startswith(f"- {SPEED[lang]}: ")]
    assert line.index("1.50") < line.index("1.00")
    report = stage_result(state, lang, FOLDER)
    (summary,) = [line for line in report.splitlines() if line.startswith("- summary: ")]
    assert SPEED[lang] in summary
    assert "1.50" in summary


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_machine_that_stayed_the_same_is_not_mentioned(lang: Lang) -> None:
    story = full_story()
    check(story, 404.0, 1.01, anchored=False)
    state = fold(story.lines)
    for view in (opt_log, stage_result):
        assert SPEED[lang] not in view(state, lang, FOLDER)


def test_the_improvement_of_a_round_is_not_what_the_machine_did() -> None:
    page = opt_log(fold(changed_story().lines), "en", FOLDER)
    (row,) = [line for line in page.splitlines() if line.startswith("| 1 | lanes: ")]
    latency, gain = row.split("|")[3:5]
    assert latency.strip() == "300.00"
    assert gain.strip() == "50.0%"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_disturbed_measurements_are_counted(lang: Lang) -> None:
    story = Story()
    story.start()
    latency = story.latencies(400.0)
    story.add(BaselineMeasured(latency=latency, conditions=QUIET))
    assert DISTURBED[lang].split(":")[0] not in opt_log(fold(story.lines), lang, FOLDER)
    story.add(MachineChecked(latency=latency, change=1.0, anchored=False, conditions=LOADED))
    assert DISTURBED[lang] in opt_log(fold(story.lines), lang, FOLDER)
