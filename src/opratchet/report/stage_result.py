"""`stage_result.md`: the seed's completion report, every key of it in the seed's order.

Its keys are the same in every language, because tools read them; only the words behind them change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from opratchet.ledger.state import RunState
from opratchet.report import figures, words
from opratchet.report.render import render
from opratchet.report.words import Lang

STAGES = {"tilelang": 4, "pypto": 7}
"""Number of the tuning stage in the whole development procedure, by flow."""
COMPLETED = "TUNING_COMPLETED"
UNFINISHED = "TUNING_UNFINISHED"


def verdict(state: RunState) -> str:
    """`TUNING_COMPLETED` once a stop rule holds and the best version stands; `TUNING_UNFINISHED` before."""
    return COMPLETED if state.is_complete else UNFINISHED


def stage_result(state: RunState, lang: Lang, folder: PurePath) -> str:
    """The report. `improvement` and both latencies are the fresh figures taken together at the end."""
    return render("stage_result.md", lang, _values(state, lang, folder))


def _values(state: RunState, lang: Lang, folder: PurePath) -> Mapping[str, Any]:
    return {
        "run": state.run,
        "stage": STAGES.get(state.run.flow, STAGES["tilelang"]),
        "origin": words.origin(state.run, lang),
        "protections": words.protections(state, lang),
        "output": (folder / f"{state.run.operator}.py").as_posix(),
        "verdict": verdict(state),
        "iterations": len(state.finished_rounds),
        "adopted": len(state.lineage),
        "experiments": state.experiments,
        "base": figures.average(state, figures.fresh_baseline(state)),
        "final": figures.average(state, figures.fresh_final(state)),
        "gain": figures.total_gain(state),
        "ratio": state.final.ratio if state.final is not None else None,
        "complete": state.is_complete,
        "keeps_baseline": figures.delivers_baseline(state),
        "stop_reason": words.stop_reason(state, lang),
        "machine": words.machine_changes(state, lang),
        "documents": figures.documents(state.rounds.values()),
        "issues": state.notes,
    }
