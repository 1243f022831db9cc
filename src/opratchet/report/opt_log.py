"""`opt_log.md`: the tuning log after the seed's template.

The seed's headings, keys and table columns stand as they are; what is added stands after them: further columns to
the right, further lines below, and an appendix with every trial, every diagnosis and every strategy left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from opratchet.ledger.events import Diagnosed
from opratchet.ledger.rounds import Round, Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Accuracy, Ratio
from opratchet.report import figures, words
from opratchet.report.figures import Interval
from opratchet.report.records import candidate_id
from opratchet.report.render import render
from opratchet.report.words import Lang


@dataclass(frozen=True)
class RoundRow:
    """One line of the iteration table."""

    number: int
    strategy: str
    latency: Interval | None
    gain: float | None
    accuracy: list[Accuracy]
    outcome: str
    ratio: Ratio | None
    version: str
    reason: str
    diagnosis: Diagnosed | None


@dataclass(frozen=True)
class TrialRow:
    """One line of the appendix."""

    trial: Trial
    outcome: str
    reason: str


@dataclass(frozen=True)
class SkippedRow:
    """A strategy that was left out, why, and how many incumbents that held for."""

    strategy: str
    why: str
    times: int


def opt_log(state: RunState, lang: Lang, _folder: PurePath) -> str:
    """The page. Figures that do not exist yet are dashes."""
    return render("opt_log.md", lang, {**_head(state, lang), **_body(state, lang)})


def _head(state: RunState, lang: Lang) -> Mapping[str, Any]:
    run = state.run
    return {
        "run": run,
        "source": PurePath(run.source).name,
        "origin": words.origin(run, lang),
        "protections": words.protections(state, lang),
        "target": words.target(run.target, lang),
        "weights": words.weights(state),
        "base": figures.average(state, state.baseline),
        "baseline": state.baseline,
        "gate": state.gate or [],
        "worst": max((a.max_abs for a in state.gate or []), default=None),
        "noise": state.noise,
        "process_spread": figures.process_spread(state),
        "minimum_effect": run.options.get("minimum_effect"),
    }


def _body(state: RunState, lang: Lang) -> Mapping[str, Any]:
    again = state.final
    return {
        "rounds": [_round_row(state, r, lang) for r in state.rounds.values()],
        "best_round": figures.best_round(state),
        "complete": state.is_complete,
        "keeps_baseline": figures.delivers_baseline(state),
        "final": figures.average(state, figures.fresh_final(state)),
        "fresh": figures.average(state, again.baseline) if again is not None else None,
        "ratio": again.ratio if again is not None else None,
        "gain": figures.total_gain(state),
        "machine": words.machine_changes(state, lang),
        "disturbed": figures.disturbed(state),
        "watched": len(state.conditions),
        "stop_reason": words.stop_reason(state, lang),
        "stop_detail": state.stop.detail if state.stop is not None else "",
        "workloads": figures.by_workload(state),
        "candidate": candidate_id(state.best_trial),
        "trials": [_trial_row(trial, lang) for trial in state.trials.values()],
        "skipped": _skipped(state),
        "notes": state.notes,
    }


def _round_row(state: RunState, taken: Round, lang: Lang) -> RoundRow:
    shown = taken.representative
    base = figures.average(state, state.baseline)
    latency = figures.average(state, shown.latency) if shown is not None else None
    return RoundRow(
        number=taken.number,
        strategy=taken.strategy if shown is None else f"{taken.strategy}: {shown.title}",
        latency=latency,
        gain=_gain(base, latency, shown),
        accuracy=shown.accuracy if shown is not None else [],
        outcome=_round_outcome(taken, lang),
        ratio=shown.ratio if shown is not None else None,
        version=taken.version,
        reason=taken.reason,
        diagnosis=taken.diagnosis,
    )


def _gain(base: Interval | None, latency: Interval | None, shown: Trial | None) -> float | None:
    """Percent gained on the first baseline, as that would have been on the machine as it was when this was timed."""
    if base is None or latency is None or shown is None:
        return None
    return figures.percent_gain(base.us * shown.slowdown, latency.us)


def _trial_row(trial: Trial, lang: Lang) -> TrialRow:
    return TrialRow(trial, words.outcome(trial.outcome, lang), words.trial_reason(trial, lang))


def _round_outcome(taken: Round, lang: Lang) -> str:
    if taken.is_open:
        return words.UNFINISHED[lang]
    shown = taken.representative
    return words.NO_CANDIDATE[lang] if shown is None else words.outcome(shown.outcome, lang)


def _skipped(state: RunState) -> list[SkippedRow]:
    times: dict[tuple[str, str], int] = {}
    for (_incumbent, strategy), why in state.skipped.items():
        times[strategy, why] = times.get((strategy, why), 0) + 1
    return [SkippedRow(strategy, why, count) for (strategy, why), count in times.items()]
