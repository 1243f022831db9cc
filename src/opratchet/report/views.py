"""All files that are views of the ledger, and the one function that writes them.

A new view is one function and one line in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from opratchet.ledger.files import atomic_write
from opratchet.ledger.state import RunState
from opratchet.report.memory import memory
from opratchet.report.opt_log import opt_log
from opratchet.report.records import perf_records, workload_inventory
from opratchet.report.stage_result import stage_result
from opratchet.report.tuning_report import tuning_report
from opratchet.report.words import Lang

View = Callable[[RunState, Lang, PurePath], str]
"""The text of a view; the path is the folder it goes to, for views that name their neighbours."""

VIEWS: Mapping[str, View] = {
    "opt_log.md": opt_log,
    "stage_result.md": stage_result,
    "perf_records.jsonl": perf_records,
    "workload_inventory.json": workload_inventory,
}


def views_of(state: RunState) -> Mapping[str, View]:
    """The views of a run: those of every run, and those that its procedure asks for."""
    if state.header is None or state.header.flow != "pypto":
        return VIEWS
    return {
        **VIEWS,
        "MEMORY.md": memory,
        f"{state.header.operator}_tuning_report.md": tuning_report,
    }


def rebuild(perf_opt_dir: Path, state: RunState, lang: Lang = "zh") -> list[Path]:
    """Write every view anew, each whole or not at all, and give their paths back.

    All of them are made before the first one is written, so a state that cannot be shown leaves the old views.

    Raises:
        LedgerError: the ledger holds no run.
        OpratchetError: a file cannot be written.
    """
    views = views_of(state).items()
    texts = {perf_opt_dir / name: view(state, lang, perf_opt_dir) for name, view in views}
    for path, text in texts.items():
        atomic_write(path, text)
    return list(texts)
