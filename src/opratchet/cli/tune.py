"""`tune` and `resume`: parse, call, show."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from opratchet import session
from opratchet.cli.interrupt import Interrupts
from opratchet.cli.view import View
from opratchet.engine import tune
from opratchet.errors import EnvironmentMissing, UserStopped
from opratchet.lab.bench import Lab
from opratchet.lab.sandbox import Sandbox
from opratchet.ledger.events import Delivered, Line, RoundFinished
from opratchet.ledger.state import RunState, apply
from opratchet.ledger.store import LEDGER, Ledger
from opratchet.ledger.words import StopReason
from opratchet.operator.model import Operator
from opratchet.proof import MEMORY_NAME, NotActivated, needs_activation, require_active
from opratchet.report.memory import remember
from opratchet.report.stage_result import stage_result
from opratchet.report.summary import summary
from opratchet.report.views import rebuild
from opratchet.report.words import Lang
from opratchet.run import Clock

USER_STOP_EXIT = 5
Open = Callable[[Lab, Clock, View], Ledger]


def run_new(
    operator: Operator,
    folder: Path,
    options: session.Options,
    sandbox: Sandbox,
    *,
    fresh: bool,
    as_json: bool,
) -> int:
    """Start a run; gives the exit code."""
    console = Console(stderr=as_json)
    activate(operator, options.language, as_json=as_json)
    session.require_usable(folder, operator)
    session.require_free(folder, fresh=fresh)

    def open_ledger(lab: Lab, clock: Clock, view: View) -> Ledger:
        return session.begin(lab, folder, options, clock, view.progress, fresh=fresh)

    return _drive(operator, folder, options, sandbox, console, open_ledger, as_json)


def activate(operator: Operator, language: str, *, as_json: bool) -> None:
    """Hand control back where the operator's procedure asks for proofs that are not on record.

    Raises:
        NotActivated: they are not; what is handed back is printed.
    """
    if not needs_activation(operator):
        return
    try:
        require_active(operator, "en" if language == "en" else "zh")
    except NotActivated as refused:
        if as_json:
            missing = [vars(one) for one in refused.activation.missing]
            json.dump({"verdict": "NOT_ACTIVATED", "missing": missing}, sys.stdout)
            sys.stdout.write("\n")
        else:
            print(refused.block)
        raise


def run_again(
    operator: Operator, folder: Path, limits: Mapping[str, Any], sandbox: Sandbox, *, as_json: bool
) -> int:
    """Go on with an interrupted run, under other limits where they are given; gives the exit code."""
    console = Console(stderr=as_json)
    ledger, options = session.reopen(folder, operator, limits, sandbox.record())
    return _drive(operator, folder, options, sandbox, console, lambda _l, _c, _v: ledger, as_json)


def _drive(
    operator: Operator,
    folder: Path,
    options: session.Options,
    sandbox: Sandbox,
    console: Console,
    open_ledger: Open,
    as_json: bool,
) -> int:
    require_backend(operator)
    clock = Clock()
    view = View(console, options.rules.max_rounds, options.rules.budget_seconds)
    lang: Lang = "en" if options.language == "en" else "zh"

    def listen(line: Line, state: RunState) -> None:
        view.event(line, state)
        if isinstance(line.event, (RoundFinished, Delivered)):
            leave_behind(operator, folder, state, lang)

    try:
        with (
            view,
            ready_lab(operator, sandbox, clock, view) as lab,
            Interrupts(view.notice) as stop_asked,
            open_ledger(lab, clock, view) as ledger,
        ):
            run = session.assemble(lab, ledger, options, clock, listen, view.progress, stop_asked)
            replay(ledger, view)
            if needs_activation(operator):  # the target sheet stands before any stage begins
                leave_behind(operator, folder, run.state, lang)
            state = tune(run)
    except KeyboardInterrupt:
        raise _stopped_at_once(folder) from None
    _close(state, folder, lang, as_json)
    stopped = state.stop is not None and state.stop.reason is StopReason.USER_STOP
    return USER_STOP_EXIT if stopped else 0


def ready_lab(operator: Operator, sandbox: Sandbox, clock: Clock, view: View) -> Lab:
    """The lab; what its backend makes once for a machine is booked as building."""
    with clock.on("build"):
        return Lab(operator, sandbox=sandbox, tell=view.progress)


def leave_behind(operator: Operator, folder: Path, state: RunState, lang: Lang) -> None:
    """Write all reports anew, and what belongs into the operator's own MEMORY.md, unless the run's folder lies elsewhere."""
    rebuild(folder, state, lang)
    if needs_activation(operator) and folder.resolve().is_relative_to(operator.root):
        remember(operator.root / MEMORY_NAME, state, lang)


def _stopped_at_once(folder: Path) -> UserStopped:
    """What a second Ctrl-C leaves."""
    if not (folder / LEDGER).exists():
        return UserStopped("stopped at once, before anything was recorded")
    return UserStopped(
        "stopped at once; nothing that is on record is lost",
        where=str(folder),
        fix="Go on with `opratchet resume`.",
    )


def replay(ledger: Ledger, view: View) -> None:
    """Show what is on record already: the gate and the baseline of a new run, all of a resumed one."""
    state = RunState()
    for line in ledger.lines:
        apply(state, line)
        view.event(line, state)


def _close(state: RunState, folder: Path, lang: Lang, as_json: bool) -> None:
    """The completion report comes last."""
    if as_json:
        json.dump(summary(state, folder), sys.stdout, ensure_ascii=False, allow_nan=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n" + stage_result(state, lang, folder))


def require_backend(operator: Operator) -> None:
    """Refuse early when the backend cannot run here.

    Raises:
        EnvironmentMissing: something it needs is missing.
    """
    from opratchet.backend.registry import get_backend

    missing = get_backend(operator.backend).missing()
    if missing:
        raise EnvironmentMissing(
            f"backend {operator.backend} needs {', '.join(need.what for need in missing)}",
            fix="Install with: " + "; ".join(dict.fromkeys(need.install for need in missing)),
        )
