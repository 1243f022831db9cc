"""`--remeasure`: the recorded speed-up is found again, or it is not. Real processes on the fake backend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from opratchet import contest
from opratchet.audit.again import measured_again
from opratchet.audit.examine import examine
from opratchet.audit.findings import Finding
from opratchet.engine import tune
from opratchet.flow.model import StopRules
from opratchet.lab.bench import Lab
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import LEDGER, read_lines
from opratchet.ledger.words import Ratio
from opratchet.report.views import rebuild
from tests.engine.scripted import Asked, assemble, edit, lab_for, make_operator, start

RULES = StopRules(max_rounds=1)
# So wide that it is not the machine's mood that is tested.
WIDE = Ratio(value=4.0, low=1.5, high=20.0, pairs=90, confidence=0.999)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """A finished run that made a call four times as fast, and its lab."""
    folder = tmp_path_factory.mktemp("again")
    with pytest.MonkeyPatch.context() as patch, lab_for(make_operator(folder)) as lab:
        patch.setattr(contest, "CALIBRATION", 3)
        patch.setattr(contest, "FINAL_BOUTS", 3)
        with start(lab, folder / "out", RULES) as ledger:
            tune(assemble(lab, ledger, [[edit("fast", time=100)]], RULES, Asked()))
        yield lab, folder / "out"


def state_of(folder: Path) -> RunState:
    """The fold of its ledger."""
    return fold(read_lines(folder / LEDGER))


def claim(state: RunState, ratio: Ratio, source: str = "") -> None:
    """Have the final measurement say that this was won, with this source."""
    assert state.final is not None
    changes = {"ratio": ratio, "source": source or state.final.source}
    state.final = state.final.model_copy(update=changes)


def findings(folder: Path, state: RunState, lab: Lab) -> tuple[list[Finding], list[Finding]]:
    """Findings and remarks."""
    found = list(measured_again(folder, state, lab))
    return [f for f in found if not f.remark], [f for f in found if f.remark]


def test_what_the_engine_writes_is_clean(done: tuple[Lab, Path]) -> None:
    _lab, folder = done
    rebuild(folder, state_of(folder))
    # The script's edits are no rewrites that the tool knows.
    assert {f.check for f in examine(folder).findings} <= {"edits"}


@pytest.mark.timing
def test_a_gain_that_is_there_is_found_again(done: tuple[Lab, Path]) -> None:
    lab, folder = done
    state = state_of(folder)
    claim(state, WIDE)
    wrong, remarks = findings(folder, state, lab)
    assert wrong == []
    assert "measured again" in remarks[0].what
    assert "another machine" not in remarks[0].what


def test_a_gain_that_is_not_there_is_named_and_so_is_the_machine(done: tuple[Lab, Path]) -> None:
    lab, folder = done
    state = state_of(folder)
    claim(state, Ratio(value=40.0, low=39.0, high=41.0, pairs=90, confidence=0.999))
    state.header = state.run.model_copy(update={"machine": {"model": "Other", "fingerprint": "x"}})
    wrong, remarks = findings(folder, state, lab)
    assert "do not overlap" in wrong[0].what
    assert "40.000x" in wrong[0].found
    assert "another machine than the recorded one (Other)" in remarks[0].what


@pytest.mark.timing
def test_what_is_no_faster_is_named(done: tuple[Lab, Path]) -> None:
    lab, folder = done
    state = state_of(folder)
    slow = (folder / "baseline.py").read_text().replace("400", "800")
    digest = hashlib.sha256(slow.encode()).hexdigest()
    (folder / "objects" / f"{digest}.py").write_text(slow)
    claim(state, WIDE, digest)
    wrong, _remarks = findings(folder, state, lab)
    assert any("not credibly faster" in f.what for f in wrong)


def test_what_fails_now_is_named(done: tuple[Lab, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    lab, folder = done
    monkeypatch.setenv("FAKE_RUN", "wrong")
    wrong, _remarks = findings(folder, state_of(folder), lab)
    assert "fails when it is measured again" in wrong[0].what
    assert wrong[0].file == "double.py"


def test_without_a_final_measurement_there_is_nothing_to_repeat(done: tuple[Lab, Path]) -> None:
    lab, folder = done
    state = state_of(folder)
    state.final = None
    wrong, remarks = findings(folder, state, lab)
    assert wrong == []
    assert "no final measurement" in remarks[0].what
