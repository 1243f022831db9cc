"""All views are written together, whole, in UTF-8, and can be rebuilt at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opratchet.errors import LedgerError, OpratchetError
from opratchet.ledger.state import RunState, fold
from opratchet.report.views import VIEWS, rebuild
from tests.builders import full_story

NAMES = {"opt_log.md", "stage_result.md", "perf_records.jsonl", "workload_inventory.json"}


def test_writes_every_view(tmp_path: Path) -> None:
    paths = rebuild(tmp_path, fold(full_story().lines))
    assert {p.name for p in paths} == {p.name for p in tmp_path.iterdir()} == NAMES
    assert "性能调优日志" in (tmp_path / "opt_log.md").read_text(encoding="utf-8")
    assert str(tmp_path / "rmsnorm.py") in (tmp_path / "stage_result.md").read_text("utf-8")
    json.loads((tmp_path / "workload_inventory.json").read_text("utf-8"))


def test_the_second_language(tmp_path: Path) -> None:
    rebuild(tmp_path, fold(full_story().lines), "en")
    text = (tmp_path / "opt_log.md").read_text("utf-8")
    assert text.startswith("# rmsnorm tuning log\n")
    assert text.isascii()


def test_rebuilding_gives_the_same_bytes(tmp_path: Path) -> None:
    state = fold(full_story().lines)
    first = {p: p.read_bytes() for p in rebuild(tmp_path, state)}
    for path in first:
        path.write_text("spoiled")
    assert {p: p.read_bytes() for p in rebuild(tmp_path, state)} == first


def test_a_state_without_a_run_leaves_the_old_views(tmp_path: Path) -> None:
    (tmp_path / "opt_log.md").write_text("old")
    with pytest.raises(LedgerError, match="holds no run"):
        rebuild(tmp_path, RunState())
    assert (tmp_path / "opt_log.md").read_text() == "old"


def test_a_missing_folder_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(OpratchetError, match="cannot be written"):
        rebuild(tmp_path / "missing", fold(full_story().lines))


def test_texts_end_with_one_line_end_and_hold_no_gaps(tmp_path: Path) -> None:
    for lang in ("zh", "en"):
        for path in rebuild(tmp_path, fold(full_story().lines), lang):  # type: ignore[arg-type]
            text = path.read_text("utf-8")
            assert text.endswith("\n")
            assert not text.endswith("\n\n")
            assert "\n\n\n" not in text
    assert set(VIEWS) == NAMES
