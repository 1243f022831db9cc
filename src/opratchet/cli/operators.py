"""Finding what a command speaks of: an operator, its run's folder, the stop rules of its flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opratchet.backend.registry import BACKENDS
from opratchet.errors import BadInput
from opratchet.flow.model import StopRules
from opratchet.flow.registry import FLOWS, get_flow
from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, read_lines
from opratchet.operator.discover import Overrides, load_operator
from opratchet.operator.model import Operator

RUN_FOLDER = "perf_opt"


def load(path: Path, overrides: Overrides) -> Operator:
    """The operator at a path, with what the command line says."""
    return load_operator(
        path, known_backends=BACKENDS.keys(), known_flows=FLOWS.keys(), overrides=overrides
    )


def load_as_recorded(path: Path, out: Path | None) -> tuple[Operator, Path]:
    """The operator of an earlier run with the backend, flow and target that the run began with, and the run's folder."""
    folder = run_folder(path, out)
    run = fold(read_lines(folder / LEDGER)).run
    if folder.resolve() == path.resolve():
        path = folder.resolve().parent
        if not (path / run.source).is_file():
            raise BadInput(
                f"the operator ({run.source}) does not lie beside this folder",
                where=str(folder),
                fix=f"Name both: the operator, and --out {folder}",
            )
    operator = load(path, Overrides(backend=run.backend, flow=run.flow))
    return replace(operator, target=run.target), folder


def run_folder(path: Path, out: Path | None) -> Path:
    """Folder of a run: `--out`, else the path itself, else `perf_opt` beside the operator.

    Raises:
        BadInput: there is no run.
    """
    candidates = [out] if out is not None else [path, path / RUN_FOLDER, path.parent / RUN_FOLDER]
    for folder in candidates:
        if (folder / LEDGER).is_file():
            return folder
    raise BadInput(
        "no run is recorded here", where=str(out or path), fix="Start one with `opratchet tune`."
    )


def given_limits(
    max_rounds: int | None,
    patience: int | None,
    max_experiments: int | None,
    budget: float | None,
) -> dict[str, Any]:
    """The stop rules that the command line names, as the fields of `StopRules`."""
    named: dict[str, Any] = {
        "max_rounds": max_rounds,
        "patience": patience,
        "max_experiments": max_experiments,
        "budget_seconds": budget,
    }
    return {name: value for name, value in named.items() if value is not None}


def stop_rules(flow: str, limits: Mapping[str, Any]) -> StopRules:
    """The flow's stop rules with what the command line says."""
    return replace(get_flow(flow).stop, **limits)
