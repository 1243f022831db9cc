"""`perf_records.jsonl` and `workload_inventory.json`, after the data contracts of the seed's family.

One record is one latency of one version on one workload. Its phase says what became of it: `baseline` (round 0),
`candidate` (timed, not adopted), `merged` (adopted, so it is part of the delivered line) or `final` (the delivered
file, measured again; exactly one for each tune workload). Only versions that passed the accuracy gate are timed, so
`l0_pass` is always true. `msprof_raw_path` is null, because no event of the ledger names a raw file of `msprof`; where
a figure came from is in `ledger.jsonl`. Two keys follow those of the contract, `metric_kind` and `backend`, so that a
figure which no NPU gave cannot be taken for one that an NPU gave.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from opratchet.ledger.rounds import Round, Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.store import object_path
from opratchet.ledger.words import Latency, Outcome, Ratio, WorkloadKind, WorkloadRecord
from opratchet.report import figures
from opratchet.report.words import Lang

BASELINE = "baseline"


def candidate_id(trial: Trial | None) -> str:
    """Name of a version in the records: `baseline` or `trial-12`."""
    return BASELINE if trial is None else f"trial-{trial.number}"


def perf_records(state: RunState, _lang: Lang, _folder: PurePath) -> str:
    """One JSON object a line, in the order in which things were measured."""
    records = [*_baseline(state), *_candidates(state), *_final(state)]
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)


def _baseline(state: RunState) -> Iterator[dict[str, Any]]:
    version = {
        "round": 0,
        "candidate_id": BASELINE,
        "parent_id": None,
        "phase": "baseline",
        "artifact_path": "baseline.py",
        "artifact_sha256": state.run.source_sha256,
        "timestamp": state.baseline_at,
    }
    return _records(state, version, state.baseline)


def _candidates(state: RunState) -> Iterator[dict[str, Any]]:
    """Versions of finished rounds only: what an unfinished one comes to is not known yet, and records never change."""
    names = _incumbents(state)
    for taken, trial in ((r, t) for r in state.finished_rounds for t in r.trials):
        version = {
            "round": taken.number,
            "candidate_id": candidate_id(trial),
            "parent_id": names[trial.parent],
            "phase": "merged" if taken.adopted is trial else "candidate",
            "artifact_path": _artifact(taken, trial),
            "artifact_sha256": trial.source,
            "timestamp": trial.finished_at,
        }
        yield from _records(state, version, trial.latency)


def _artifact(taken: Round, trial: Trial) -> str:
    """Where the version lies within the folder: its round's version file, else the ledger's own copy."""
    if taken.shown is trial and taken.version:
        return taken.version
    return object_path(Path(), trial.source).as_posix()


def _final(state: RunState) -> Iterator[dict[str, Any]]:
    file = f"{state.run.operator}.py"
    files = state.delivered.files if state.delivered is not None else {}
    best = state.best_trial
    version = {
        "round": figures.best_round(state),
        "candidate_id": candidate_id(best),
        "parent_id": None if best is None else _incumbents(state)[best.parent],
        "phase": "final",
        "artifact_path": file,
        "artifact_sha256": files.get(file, state.best),
        "timestamp": state.final_at or state.baseline_at,
    }
    return _records(state, version, figures.fresh_final(state))


def _incumbents(state: RunState) -> dict[str, str]:
    """Candidate ids of everything that ever was the incumbent, by hash; every parent is one of these."""
    adopted = {trial.source: candidate_id(trial) for trial in state.lineage}
    return {state.run.source_sha256: BASELINE, **adopted}


def _records(
    state: RunState, version: Mapping[str, Any], latency: Mapping[str, Latency]
) -> Iterator[dict[str, Any]]:
    for workload, figure in latency.items():
        yield {
            "round": version["round"],
            "candidate_id": version["candidate_id"],
            "parent_id": version["parent_id"],
            "kernel_id": state.run.operator,
            "workload_id": workload,
            "phase": version["phase"],
            "artifact_path": version["artifact_path"],
            "artifact_sha256": version["artifact_sha256"],
            "duration_us": figure.us,
            "l0_pass": True,
            "msprof_raw_path": None,
            "timestamp": version["timestamp"],
            "metric_kind": figure.kind.value,
            "backend": state.run.backend,
        }


def workload_inventory(state: RunState, _lang: Lang, _folder: PurePath) -> str:
    """All workloads with what became of them: the tune ones by status, the smoke ones by accuracy."""
    entries = [_entry(state, w) for w in state.run.workloads]
    return json.dumps({"workloads": entries}, ensure_ascii=False, indent=2) + "\n"


def _sizes(workload: WorkloadRecord) -> list[str]:
    tensors = [f"{name}{shape}" for name, shape in workload.tensors.items()]
    return tensors or [f"{name}={size}" for name, size in workload.shape.items()]


def _entry(state: RunState, workload: WorkloadRecord) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "benchmark_source": state.run.source,
        "kernel_id": state.run.operator,
        "workload_id": workload.id,
        "label": " ".join([*_sizes(workload), workload.dtype]),
        "marks": [],
        "shape": workload.tensors or workload.shape,
        "dtype": workload.dtype,
        "params": workload.params,
        "kind": workload.kind.value,
        "reason": workload.reason,
    }
    if workload.kind is WorkloadKind.TUNE:
        entry["tuning_status"] = tuning_status(state, workload.id)
    if workload.kind is WorkloadKind.SMOKE:
        entry["precision_pass"] = precision_pass(state, workload.id)
    return entry


def tuning_status(state: RunState, workload: str) -> str:
    """What the run did for one tune workload; the first that holds.

    - `winner_merged`: the delivered version is credibly faster on it than the baseline (the whole interval above 1).
    - `merge_blocked`: a gain was found and could not be merged, because it is a loss elsewhere. Either this workload
      is the loser: a version that was credibly faster over all workloads was not adopted because it is credibly
      slower on this one (`blocked_by`). Or it is the winner: a version that was not adopted is credibly faster on
      this one and credibly slower on another.
    - `no_gain`: neither. Nothing was faster on it beyond noise and minimum effect, or what was did not stay.
    """
    if not figures.delivers_baseline(state) and _delivered_is_faster(state, workload):
        return "winner_merged"
    blocked = any(_is_blocked(trial, workload) for trial in state.trials.values())
    return "merge_blocked" if blocked else "no_gain"


def _delivered_is_faster(state: RunState, workload: str) -> bool:
    """By the final measurement; before that, when an adopted version was faster on it than the one before."""
    if state.final is not None:
        return _is_faster(state.final.ratios.get(workload))
    return any(_is_faster(trial.ratios.get(workload)) for trial in state.lineage)


def _is_blocked(trial: Trial, workload: str) -> bool:
    """Whether this trial was kept out because of this workload, or kept from it because of another one."""
    if trial.outcome is Outcome.ADOPTED:
        return False
    loses_elsewhere = any(ratio.high < 1 for ratio in trial.ratios.values())
    return workload in trial.blocked_by or (
        loses_elsewhere and _is_faster(trial.ratios.get(workload))
    )


def _is_faster(ratio: Ratio | None) -> bool:
    """Whether the whole interval lies above 1."""
    return ratio is not None and ratio.low > 1


def precision_pass(state: RunState, workload: str) -> bool:
    """Whether every comparison of the delivered version on this workload passed; False when there was none."""
    checks = state.final.accuracy if state.final is not None else state.gate or []
    return figures.is_accurate(c for c in checks if c.workload == workload) is True
