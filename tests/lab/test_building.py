"""Files of a build besides the artefact: taken out of the job's folder like it, and watched like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.backend.base import Artifact
from opratchet.lab.building import require_untouched, take
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.words import Outcome


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "op.py").write_text("source")
    (folder / "swim.json").write_text("[]")
    return folder


def described(job: Path, report: str) -> Artifact:
    return Artifact(str(job / "op.py"), "s", (), "0", reports={"swim": report})


def test_reports_are_taken_under_the_hash_of_their_content(job: Path, tmp_path: Path) -> None:
    taken = take(described(job, str(job / "swim.json")), job, tmp_path / "store", 1024)

    kept = Path(taken.reports["swim"])
    assert kept.is_relative_to(tmp_path / "store")
    assert kept.read_text() == "[]"
    require_untouched(taken)


def test_a_report_that_lies_elsewhere_is_refused(job: Path, tmp_path: Path) -> None:
    (tmp_path / "golden.json").write_text("secret")
    with pytest.raises(WorkerFailed) as failed:
        take(described(job, str(tmp_path / "golden.json")), job, tmp_path / "store", 1024)
    assert failed.value.outcome is Outcome.CHEATED


def test_a_report_that_was_changed_after_it_was_taken_is_found(job: Path, tmp_path: Path) -> None:
    taken = take(described(job, str(job / "swim.json")), job, tmp_path / "store", 1024)
    kept = Path(taken.reports["swim"])
    kept.chmod(0o644)
    kept.write_text("[1]")
    with pytest.raises(WorkerFailed, match="changed after"):
        require_untouched(taken)
