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
from opratchet.report.stage_result import stage_result
from opratchet.report.summary import summary
from opratchet.report.views import rebuild
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
    session.require_usable(folder, operator)
    session.require_free(folder, fresh=fresh)

    def open_ledger(lab: Lab, clock: Clock, view: View) -> Ledger:
        return session.begin(lab, folder, options, clock, view.progress, fresh=fresh)

    return _drive(operator, folder, options, sandbox, console, open_ledger, as_json)


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
    lang = "en" if options.language == "en" else "zh"

    def listen(line: Line, state: RunState) -> None:
        view.event(line, state)
        if isinstance(line.event, (RoundFinished, Delivered)):
            rebuild(folder, state, lang)  # type: ignore[arg-type]

    try:
        with (
            Lab(operator, sandbox=sandbox) as lab,
            view,
            Interrupts(view.notice) as stop_asked,
            open_ledger(lab, clock, view) as ledger,
        ):
            run = session.assemble(lab, ledger, options, clock, listen, view.progress, stop_asked)
            replay(ledger, view)
            state = tune(run)
    except KeyboardInterrupt:
        raise _stopped_at_once(folder) from None
    _close(state, folder, lang, as_json)
    stopped = state.stop is not None and state.stop.reason is StopReason.USER_STOP
    return USER_STOP_EXIT if stopped else 0


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


def _close(state: RunState, folder: Path, lang: str, as_json: bool) -> None:
    """The completion report comes last."""
    if as_json:
        json.dump(summary(state, folder), sys.stdout, ensure_ascii=False, allow_nan=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n" + stage_result(state, lang, folder))  # type: ignore[arg-type]


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
