"""A run whose every decision is known beforehand: the real engine, lab and processes, and a clock that reads from a script.

So a run that was disturbed can be compared with one that was not, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from opratchet import contest, session
from opratchet.engine import tune
from opratchet.flow.model import StopRules
from opratchet.flow.registry import get_flow
from opratchet.lab.bench import Lab
from opratchet.lab.limits import Limits
from opratchet.ledger.events import TrialFinished
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from opratchet.operator.model import Operator
from opratchet.run import Clock, Run
from tests.clock import ScriptedClock
from tests.engine.scripted import PATIENT, Script, edit, lab_for, make_operator
from tests.faults.backend import NAME

RULES = StopRules(max_rounds=5, patience=3, max_experiments=20)
POINTS = [
    [edit("bad", "build: fail"), edit("faster", time=200)],
    [edit("as fast", time=199), edit("slower", time=250)],
]
Event = Callable[[Ledger], None]


@contextmanager
def scripted_clock() -> Iterator[None]:
    """Time comes from the script inside, and comparisons take fewer processes still."""
    with (
        ScriptedClock().ticking(),
        mock.patch.object(contest, "FINAL_BOUTS", 1),
    ):
        yield


def operator_in(folder: Path, workloads: int = 1) -> Operator:
    """The operator of the scene."""
    return make_operator(folder, workloads=workloads, backend=NAME)


def can_resume(out: Path) -> bool:
    """Whether something is on record."""
    return (out / LEDGER).exists() and (out / LEDGER).stat().st_size > 0


def play(
    folder: Path,
    before: Event = lambda _ledger: None,
    after: Event = lambda _ledger: None,
    points: Any = POINTS,
    workloads: int = 1,
    limits: Limits = PATIENT,
) -> RunState:
    """Begin the run in `folder/out`, or go on with it, to its end.

    Args:
        folder: Where the operator lies.
        before: Called right before events are written.
        after: Called right after.
        points: What is proposed, round by round.
        workloads: Tune workloads of the operator.
        limits: Of its workers.
    """
    operator = operator_in(folder, workloads)
    with scripted_clock(), watched(before, after):
        if can_resume(folder / "out"):
            ledger, options = session.reopen(folder / "out", operator)
            with ledger, lab_for(operator, limits) as lab:
                return tune(assembled(lab, ledger, options, points))
        options = session.Options(RULES)
        with lab_for(operator, limits) as lab:
            ledger = session.begin(lab, folder / "out", options, Clock(), lambda _text: None)
            with ledger:
                return tune(assembled(lab, ledger, options, points))


@contextmanager
def watched(before: Event, after: Event) -> Iterator[None]:
    """Be called around each write to the ledger."""
    append = Ledger.append_all

    def watched_append(ledger: Ledger, events: Any) -> Any:
        before(ledger)
        lines = append(ledger, events)
        after(ledger)
        return lines

    with mock.patch.object(Ledger, "append_all", watched_append):
        yield


def assembled(lab: Lab, ledger: Ledger, options: session.Options, points: Any) -> Run:
    """The engine's run with a proposer that reads from a script."""
    return Run(
        lab=lab,
        ledger=ledger,
        flow=get_flow("tilelang"),
        proposer=Script(points),
        rules=options.rules,
        rule=options.rule,
        listener=lambda _line, _state: None,
        progress=lambda _text: None,
        stop_asked=lambda: False,
        clock=Clock(),
        situation=partial(session.situation_of, lab),
    )


def decisions(out: Path) -> dict[str, Any]:
    """All that a run decided, and the files that it left, without what depends on when and where it ran.

    Reading it checks the chain and that no event contradicts the ones before.
    """
    state = fold(read_lines(out / LEDGER))
    final = state.final
    return {
        "trials": [
            (t.number, t.round, t.edit, t.parent, t.source, t.outcome, t.ratio, t.ratios)
            for t in state.trials.values()
        ],
        "rounds": [
            (r.number, r.incumbent, r.adopted and r.adopted.number, r.version, r.is_open)
            for r in state.rounds.values()
        ],
        "best": state.best,
        "stop": state.stop and state.stop.reason,
        "final": final and (final.source, final.ratio, final.ratios),
        "files": {path.name: path.read_bytes() for path in sorted(out.glob("*.py"))},
        "objects": sorted(path.name for path in (out / "objects").iterdir()),
    }


def doubled(out: Path) -> int:
    """Trials that were finished more than once, or taken twice from the same incumbent."""
    events = [line.event for line in read_lines(out / LEDGER)]
    numbers = [event.trial for event in events if isinstance(event, TrialFinished)]
    tried = [(t.parent, t.edit) for t in fold(read_lines(out / LEDGER)).trials.values()]
    return len(numbers) - len(set(numbers)) + len(tried) - len(set(tried))


def lost(out: Path, wanted: dict[str, Any]) -> int:
    """Trials of the undisturbed run that have no outcome here."""
    state = fold(read_lines(out / LEDGER))
    done = {(t.parent, t.edit) for t in state.trials.values() if not t.is_open}
    return sum((trial[3], trial[2]) not in done for trial in wanted["trials"])
