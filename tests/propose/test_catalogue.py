"""The catalogue: what it proposes next, and what it never proposes again."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy, Target
from opratchet.edit.source import KernelSource
from opratchet.flow.tilelang import FLOW
from opratchet.ledger.events import (
    Diagnosed,
    RoundFinished,
    RoundStarted,
    RunStarted,
    TrialFinished,
    TrialStarted,
)
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import Ledger
from opratchet.ledger.words import Bottleneck, MetricKind, Outcome, Ratio
from opratchet.propose.catalogue import Catalogue

TEXT = "def kernel(N):\n    return N\n"
SITUATION = Situation(KernelSource(TEXT, "kernel"), Target("tilelang-c"))


class Offers(Strategy):
    """A strategy that offers edits of the given priors."""

    title: ClassVar[dict[str, str]] = {"zh": "x", "en": "x"}
    gain = (0.0, 0.1)

    def __init__(self, name: str, row: str, eases: str, *priors: float) -> None:
        self.id, self.row, self.eases = name, row, frozenset({eases})  # type: ignore[misc]
        self.priors = priors

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        made = [
            Edit(self.id, f"e{n}", f"e{n}", f"{TEXT}# {self.id} {n}\n", prior)
            for n, prior in enumerate(self.priors)
        ]
        return made or NotApplicable("nothing here")


class Story:
    """A ledger in a folder, told round by round."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger(folder, create=True)
        self.ledger.append(
            RunStarted(
                run_id="r",
                tool_version="0",
                operator="op",
                project="p",
                source="op.py",
                source_sha256=SITUATION.source.sha256,
                backend="tilelang-c",
                flow="tilelang",
                metric_kind=MetricKind.MEASURED,
                machine={},
                toolchain={},
                options={},
                workloads=[],
            )
        )

    @property
    def state(self) -> RunState:
        return fold(self.ledger.lines)

    def diagnose(self, name: str) -> None:
        found = Bottleneck(name=name, score=1.0, evidence="it is so")
        digest = SITUATION.source.sha256
        self.ledger.append(Diagnosed(incumbent=digest, bottlenecks=[found], facts={}))

    def round(self, row: str, *trials: tuple[Edit, Outcome]) -> None:
        """A round without adoption."""
        number, digest = len(self.state.rounds) + 1, SITUATION.source.sha256
        started = RoundStarted(round=number, strategy=row, reason="", incumbent=digest)
        self.ledger.append(started)
        for edit, outcome in trials:
            trial = len(self.state.trials) + 1
            self.ledger.append(
                TrialStarted(
                    trial=trial,
                    round=number,
                    strategy=edit.strategy,
                    edit=edit.id,
                    title=edit.title,
                    source=KernelSource(edit.text, "kernel").sha256,
                    parent=digest,
                )
            )
            same = outcome is Outcome.NO_GAIN and edit.key == "e1"
            ratio = Ratio(value=1.0, low=0.99, high=1.01, pairs=24, confidence=0.99)
            timed = ratio if outcome.is_judged else None
            self.ledger.append(
                TrialFinished(trial=trial, outcome=outcome, ratio=timed, no_effect=same)
            )
        self.ledger.append(
            RoundFinished(round=number, adopted=None, shown=None, version="", incumbent=digest)
        )


def ask(story: Story, *strategies: Strategy) -> tuple[str, list[str]]:
    """Row and edits of the next point; empty when nothing is left."""
    answer = Catalogue(FLOW, strategies).ask(story.state, SITUATION)
    point = answer.point
    return (point.row, [edit.id for edit in point.edits]) if point else ("", [])


def test_the_table_decides_when_nothing_else_speaks(tmp_path: Path) -> None:
    reuse = Offers("reuse", "data_reuse", "compute_density", 1.0)
    block = Offers("block", "block_size", "block_size", 1.0)
    assert ask(Story(tmp_path), reuse, block)[0] == "block_size"


def test_the_diagnosis_moves_a_row_to_the_front(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.diagnose("compute_density")
    reuse = Offers("reuse", "data_reuse", "compute_density", 1.0)
    block = Offers("block", "block_size", "block_size", 1.0)
    assert ask(story, reuse, block)[0] == "data_reuse"


def test_edits_come_best_guess_first_and_no_more_than_a_round_holds(tmp_path: Path) -> None:
    many = Offers("reuse", "data_reuse", "memory", *[1.0 + n / 100 for n in range(20)])
    _row, edits = ask(Story(tmp_path), many)
    assert edits == [f"reuse/e{n}" for n in range(19, 19 - FLOW.trials_per_round, -1)]


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.ADOPTED])
def test_what_was_tried_is_never_proposed_again_in_the_same_state(
    tmp_path: Path, outcome: Outcome
) -> None:
    story = Story(tmp_path)
    strategy = Offers("reuse", "data_reuse", "memory", 1.0, 1.0)
    tried, other = strategy.edits(SITUATION)  # type: ignore[misc]
    story.round("data_reuse", (tried, outcome))
    assert ask(story, strategy) == ("data_reuse", [other.id])
    story.round("data_reuse", (other, outcome))
    assert ask(story, strategy) == ("", [])


def test_two_edits_with_the_same_result_are_proposed_once(tmp_path: Path) -> None:
    class Twins(Offers):
        def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
            return [Edit("twins", key, key, TEXT + "# same\n") for key in ("a", "b")]

    assert ask(Story(tmp_path), Twins("twins", "data_reuse", "memory"))[1] == ["twins/a"]


def test_an_edit_without_effect_is_not_proposed_for_any_incumbent(tmp_path: Path) -> None:
    story = Story(tmp_path)
    strategy = Offers("depth", "pipeline_depth", "pipeline_depth", 1.0, 1.0)
    _first, dead = strategy.edits(SITUATION)  # type: ignore[misc]
    story.round("pipeline_depth", (dead, Outcome.NO_GAIN))
    other = Situation(KernelSource(TEXT + "# other\n", "kernel"), SITUATION.target)
    answer = Catalogue(FLOW, [strategy]).ask(story.state, other)
    assert answer.point is not None
    assert dead.id not in [edit.id for edit in answer.point.edits]


def test_a_row_that_disappointed_waits_behind_others(tmp_path: Path) -> None:
    story = Story(tmp_path)
    block = Offers("block", "block_size", "block_size", 1.0, 1.0, 1.0)
    reuse = Offers("reuse", "data_reuse", "compute_density", 1.0)
    first = block.edits(SITUATION)[0]  # type: ignore[index]
    assert ask(story, block, reuse)[0] == "block_size"
    story.round("block_size", (first, Outcome.REGRESSED))
    assert ask(story, block, reuse)[0] == "data_reuse"


def test_what_does_not_apply_is_said_with_its_reason(tmp_path: Path) -> None:
    answer = Catalogue(FLOW, [Offers("none", "v_prefix", "memory")]).ask(
        Story(tmp_path).state, SITUATION
    )
    assert answer.point is None
    assert answer.skipped == {"none": "nothing here"}


def test_the_same_state_gives_the_same_answer(tmp_path: Path) -> None:
    strategy = Offers("reuse", "data_reuse", "memory", 1.2, 1.1, 1.0)
    story = Story(tmp_path)
    assert ask(story, strategy) == ask(story, strategy)
