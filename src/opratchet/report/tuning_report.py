"""`{op}_tuning_report.md`: the report that closes the PyPTO procedure, in its nine sections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from opratchet.ledger.state import RunState
from opratchet.report import figures, words
from opratchet.report.memory import hand_overs
from opratchet.report.render import render
from opratchet.report.words import Lang


def tuning_report(state: RunState, lang: Lang, _folder: PurePath) -> str:
    """The page. Figures that do not exist yet are dashes."""
    return render("tuning_report.md", lang, _values(state, lang))


def _values(state: RunState, lang: Lang) -> Mapping[str, Any]:
    return {
        "run": state.run,
        "origin": words.origin(state.run, lang),
        "target": words.target(state.run.target, lang),
        "toolchain": sorted(state.run.toolchain.items()),
        "base": figures.average(state, state.baseline),
        "gate": state.gate or [],
        "stages": list(hand_overs(state)),
        "adopted": state.lineage,
        "outcomes": [(words.outcome(o, lang), n) for o, n in state.outcomes.most_common()],
        "failed": [t for t in state.trials.values() if t.outcome and not t.outcome.is_judged],
        "words": {t.number: words.outcome(t.outcome, lang) for t in state.trials.values()},
        "final": figures.average(state, figures.fresh_final(state)),
        "fresh": figures.average(state, figures.fresh_baseline(state)),
        "ratio": state.final.ratio if state.final is not None else None,
        "workloads": figures.by_workload(state),
        "stop_reason": words.stop_reason(state, lang),
        "stop_detail": state.stop.detail if state.stop is not None else "",
        "notes": state.notes,
        "rounds": len(state.finished_rounds),
        "experiments": state.experiments,
    }
