"""The one object that `--json` prints: what was won, whether to believe it, and where the proof lies.

A figure that does not exist is null, never zero: an interrupted run has no final latency.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from opratchet.ledger.state import RunState
from opratchet.ledger.store import LEDGER
from opratchet.ledger.words import Outcome
from opratchet.report import figures
from opratchet.report.figures import WorkloadFigures
from opratchet.report.stage_result import verdict

SECONDS = ("total", "build", "accuracy", "measure", "own")


def summary(state: RunState, folder: PurePath) -> dict[str, Any]:
    """The object, ready for `json.dumps`. Latencies are microseconds a call, averaged over the tune workloads by weight."""
    before = figures.average(state, figures.fresh_baseline(state))
    after = figures.average(state, figures.fresh_final(state))
    ratio = state.final.ratio if state.final is not None else None
    return {
        "verdict": verdict(state),
        "stop_reason": state.stop.reason.value if state.stop is not None else None,
        "metric_kind": state.run.metric_kind.value,
        "baseline_us": before.us if before is not None else None,
        "final_us": after.us if after is not None else None,
        "speedup": figures.total_speedup(state),
        "speedup_ci": [ratio.low, ratio.high] if ratio is not None else None,
        "rounds": len(state.finished_rounds),
        "experiments": state.experiments,
        "outcomes": {outcome.value: state.outcomes[outcome] for outcome in Outcome},
        "by_workload": [_workload(w) for w in figures.by_workload(state)],
        "output": (folder / f"{state.run.operator}.py").as_posix(),
        "ledger": (folder / LEDGER).as_posix(),
        "seconds": seconds(state),
    }


def _workload(workload: WorkloadFigures) -> dict[str, Any]:
    return {
        "id": workload.id,
        "baseline_us": workload.baseline.us if workload.baseline is not None else None,
        "final_us": workload.final.us if workload.final is not None else None,
        "speedup": workload.speedup,
        "weight": workload.weight,
    }


def seconds(state: RunState) -> dict[str, float | None]:
    """Where the time went, seconds. Before delivery only the kinds that trials record are known."""
    known = state.delivered.seconds if state.delivered is not None else state.seconds
    return {kind: known.get(kind) for kind in SECONDS}
