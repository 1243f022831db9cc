"""The commands that look: `measure`, `diagnose`, `status`, `stop`, `report`, `doctor`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from opratchet import session
from opratchet.backend.registry import BACKENDS, get_backend
from opratchet.cli.tune import require_backend
from opratchet.cli.view import View, microseconds, ratio_text
from opratchet.errors import BadInput, GateRefused
from opratchet.lab.bench import Lab
from opratchet.lab.sandbox import Sandbox, choose
from opratchet.ledger.plural import counted
from opratchet.ledger.state import RunState, apply, fold
from opratchet.ledger.store import LEDGER, holder, read_lines
from opratchet.operator.model import Operator
from opratchet.proof import Proved, needs_activation, prove
from opratchet.report.summary import summary
from opratchet.report.views import rebuild
from opratchet.run import Clock


def print_json(data: Any) -> None:
    """One JSON object on stdout."""
    json.dump(data, sys.stdout, ensure_ascii=False, allow_nan=False, default=str)
    sys.stdout.write("\n")


def measure_operator(operator: Operator, sandbox: Sandbox, *, as_json: bool) -> None:
    """Gate and baseline, without a run."""
    require_backend(operator)
    clock, console = Clock(), Console(stderr=as_json)
    with Lab(operator, sandbox=sandbox, tell=console.print) as lab:
        build, accuracy = session.open_gate(lab, clock)
        baseline = session.measure_baseline(lab, build, clock)
    if as_json:
        print_json(
            {
                "operator": operator.name,
                "metric_kind": lab.backend.metric_kind.value,
                "accuracy": [record.model_dump(mode="json") for record in accuracy],
                "latency": {n: v.model_dump(mode="json") for n, v in baseline.latency.items()},
                "noise": baseline.noise.model_dump(mode="json") if baseline.noise else None,
            }
        )
        return
    console.print(f"{operator.name}   {operator.backend}   {lab.backend.metric_kind.value}")
    for record in accuracy:
        console.print(
            f"accuracy  {record.workload}   {record.output} pass, largest absolute error {record.max_abs:.1e}",
            highlight=False,
        )
    for name, value in baseline.latency.items():
        console.print(
            f"latency   {name}   {microseconds(value.us)}  \\[{value.low_us:.1f}, {value.high_us:.1f}], "
            f"{value.samples} batches",
            highlight=False,
        )
    if baseline.noise is not None:
        text = ratio_text(baseline.noise).replace("[", "\\[")
        console.print(f"noise     against itself {text}", highlight=False, soft_wrap=True)


def diagnose_operator(operator: Operator, sandbox: Sandbox, *, as_json: bool) -> None:
    """Gate, baseline and what binds it, without a run."""
    require_backend(operator)
    clock, console = Clock(), Console(stderr=as_json)
    with Lab(operator, sandbox=sandbox, tell=console.print) as lab:
        build, _accuracy = session.open_gate(lab, clock)
        baseline = session.measure_baseline(lab, build, clock)
        bottlenecks, facts = lab.backend.diagnose(
            operator, operator.text, build.artifacts, baseline.latency
        )
    if as_json:
        found = [bottleneck.model_dump(mode="json") for bottleneck in bottlenecks]
        print_json({"operator": operator.name, "bottlenecks": found, "facts": facts})
        return
    for name, workload in facts["workloads"].items():
        console.print(
            f"{name}   {microseconds(baseline.latency[name].us)}   {workload['headline']}",
            highlight=False,
        )
    for bottleneck in bottlenecks:
        console.print(
            f"{bottleneck.score:5.2f}  {bottleneck.name:<16} {bottleneck.evidence}",
            highlight=False,
            markup=False,
        )


def prove_operator(operator: Operator, sandbox: Sandbox, *, as_json: bool) -> int:
    """Make both proofs of activation and put them on record; gives the exit code: 0 both are there, 3 one is not.

    Raises:
        BadInput: the operator's procedure has no such proofs.
    """
    if not needs_activation(operator):
        raise BadInput(
            f"the flow `{operator.flow}` asks for no proofs: its gate makes its own check in each run",
            where=str(operator.root),
            fix="Leave --prove out.",
        )
    require_backend(operator)
    console = Console(stderr=as_json)
    with Lab(operator, sandbox=sandbox, tell=console.print) as lab:
        proved = prove(lab)
    if as_json:
        print_json(
            {
                "operator": operator.name,
                "all_close": not proved.failure,
                "failure": proved.failure,
                "accuracy": [record.model_dump(mode="json") for record in proved.accuracy],
                "layout_exit": int(bool(proved.findings)),
                "findings": [vars(finding) for finding in proved.findings],
            }
        )
    else:
        _show_proofs(proved, console)
    return 0 if proved.ok else GateRefused.exit_code


def _show_proofs(proved: Proved, console: Console) -> None:
    for record in proved.accuracy:
        word = "pass" if record.passed else "FAIL"
        error = f"largest absolute error {record.max_abs:.1e} (allowed {record.atol:.0e} + {record.rtol:.0e} relative)"
        console.print(
            f"compare   {record.workload}   {record.output}   {word}   {error}",
            highlight=False,
            soft_wrap=True,
        )
    if proved.failure:
        console.print(f"compare   FAIL   {proved.failure}", highlight=False, markup=False)
    for finding in proved.findings:
        text = f"layout    {finding.file}:{finding.line}  {finding.rule}  {finding.message}"
        console.print(text, highlight=False, markup=False)
    console.print(f"layout    exit {int(bool(proved.findings))}", highlight=False)


def show_status(folder: Path, *, as_json: bool) -> None:
    """A run as its ledger tells it, and whether it is running now."""
    state = fold(read_lines(folder / LEDGER))
    running = holder(folder)
    if as_json:
        print_json({**summary(state, folder), "running": running is not None, "process": running})
        return
    console = Console()
    view = View(console, int(state.options["max_rounds"]), None)
    replayed = RunState()
    for line in read_lines(folder / LEDGER):
        apply(replayed, line)
        view.event(line, replayed)
    where = f"running (process {running})" if running else "not running"
    rounds = counted(len(state.finished_rounds), "round")
    console.print(f"{where}: {rounds}, {counted(state.experiments, 'experiment')}")


def stop_run(folder: Path) -> None:
    """Send a running run what Ctrl-C would.

    Raises:
        BadInput: no run is running there.
    """
    pid = holder(folder)
    if pid is None:
        raise BadInput(
            "no run is running here", where=str(folder), fix="`status` shows how it ended."
        )
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    print(f"asked process {pid} to finish its step and deliver the best so far")


def write_reports(folder: Path, lang: str, *, as_json: bool) -> None:
    """All views anew from the ledger."""
    state = fold(read_lines(folder / LEDGER))
    written = rebuild(folder, state, lang)  # type: ignore[arg-type]
    if as_json:
        print_json({"written": [str(path) for path in written]})
    else:
        print("\n".join(str(path) for path in written))


def doctor(*, as_json: bool) -> None:
    """Each backend, whether it can run here, and what is missing with the command that installs it."""
    found = {name: get_backend(name) for name in sorted(BACKENDS)}
    sandbox = choose()
    if as_json:
        backends = {
            name: {
                "ready": not backend.missing(),
                "metric_kind": backend.metric_kind.value,
                "requirements": [vars(need) for need in backend.requirements()],
            }
            for name, backend in found.items()
        }
        print_json({**backends, "sandbox": {"ready": sandbox.active, **sandbox.record()}})
        return
    console = Console()
    for name, backend in found.items():
        ready = "[red]missing[/]" if backend.missing() else "[green]ready[/]"
        console.print(
            f"{name:<14} {ready}   {backend.metric_kind.value}   {backend.summary}", highlight=False
        )
        for need in backend.requirements():
            state = need.found or f"MISSING: {need.install}"
            console.print(
                f"    {need.what:<18} {state}", highlight=False, markup=False, soft_wrap=True
            )
    _show_sandbox(console, sandbox)


def _show_sandbox(console: Console, sandbox: Sandbox) -> None:
    """Whether candidates can be shut in, and which protections are not active."""
    ready = "[green]ready[/]" if sandbox.active else "[red]missing[/]"
    what = "bubblewrap, optional: shuts candidates in"
    console.print(f"{'sandbox':<14} {ready}   {what}", highlight=False)
    if not sandbox.active:
        console.print(f"    {sandbox.why_not}", highlight=False, markup=False, soft_wrap=True)
    for one in sandbox.protections:
        state = f"not active: {one.why_not}" if one.why_not else "active"
        if sandbox.active or one.why_not != sandbox.why_not:
            line = f"    {one.name}: {state}"
        else:
            line = f"    {one.name}: not active"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
