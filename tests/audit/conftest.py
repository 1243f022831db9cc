"""One recorded run for all tests of a module, and a copy of it for each test.

To find out an edit again takes most of an audit's time and depends on nothing but the sources, so the tests do it once for
each pair of sources.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from opratchet.audit import edits
from opratchet.ledger.rounds import Trial
from tests.audit.recorded import record
from tests.cli.conftest import opratchet as opratchet

_KNOWN: set[tuple[str, ...]] = set()


@pytest.fixture(autouse=True)
def known_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found to be one edit is not looked at again."""
    find_out = edits.require_one_edit

    def remembered(bench: edits.Bench, before: str, after: str, trial: Trial) -> None:
        key = (bench.text, before, after, trial.edit)
        if key not in _KNOWN:
            find_out(bench, before, after, trial)
            _KNOWN.add(key)

    monkeypatch.setattr(edits, "require_one_edit", remembered)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a recorded run; not to be changed."""
    return record(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    """The folder of a run of its own, with its operator beside it."""
    place = tmp_path / "norm" / "rmsnorm"
    shutil.copytree(original.parent, place, symlinks=True)
    relocate(original, place / "perf_opt")
    return place / "perf_opt"


def relocate(original: Path, folder: Path) -> None:
    """The report names the folder that it was written in; so does that of a copy from here on."""
    report = folder / "stage_result.md"
    report.write_text(report.read_text().replace(original.as_posix(), folder.as_posix()))
