"""Setting a run up: the activation gate and the baseline of a new run, or the state of an interrupted one.

A new run writes nothing until the operator has proven itself: it builds, it is accurate on every workload, and it can
be timed. Only then the ledger is created, with these three facts as its first lines.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from opratchet import __version__
from opratchet.comparing import learn_noise
from opratchet.edit.model import Situation
from opratchet.edit.registry import STRATEGIES
from opratchet.edit.source import KernelSource, sha256
from opratchet.engine import require_same_source
from opratchet.errors import BadInput, BaselineFailed, GateRefused, LedgerError, OpratchetError
from opratchet.flow.model import StopRules
from opratchet.flow.registry import get_flow
from opratchet.gates import GateClosed, verify
from opratchet.judge.allowance import stretches, trials_for
from opratchet.judge.decision import Rule
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.events import (
    BaselineMeasured,
    GatePassed,
    Line,
    Noted,
    RunResumed,
    RunStarted,
)
from opratchet.ledger.state import RunState, fold
from opratchet.ledger.store import LEDGER, Ledger, holder
from opratchet.ledger.words import Accuracy
from opratchet.operator.model import Operator
from opratchet.profile.machine import read_machine
from opratchet.propose.catalogue import Catalogue
from opratchet.run import Clock, Listener, Run


@dataclass(frozen=True)
class Options:
    """What the user chose for a run.

    Attributes:
        rules: Stop rules.
        minimum_effect: Smallest gain worth a change, as a fraction.
        seed: Seed of whatever the proposer draws; inputs never come from it.
        language: Language of the files left behind.
        trials: Comparisons over which the error of the run is divided; None is the limit of experiments.
    """

    rules: StopRules
    minimum_effect: float = 0.01
    seed: int = 0
    language: str = "zh"
    trials: int | None = None

    @property
    def rule(self) -> Rule:
        """The decision rule; its error is shared by all trials that the run may hold."""
        trials = self.trials or max(1, self.rules.max_experiments)
        return Rule(minimum_effect=self.minimum_effect, trials=trials)

    def record(self) -> dict[str, Any]:
        """As it is written to the ledger."""
        return {
            **asdict(self.rules),
            "minimum_effect": self.minimum_effect,
            "seed": self.seed,
            "language": self.language,
        }

    @classmethod
    def from_record(cls, data: Mapping[str, Any]) -> Options:
        """The inverse of `record`."""
        rest = {k: data[k] for k in ("minimum_effect", "seed", "language")}
        rules = {k: v for k, v in data.items() if k not in rest}
        return cls(rules=StopRules(**rules), **rest)


Progress = Callable[[str], None]


def open_gate(lab: Lab, clock: Clock) -> tuple[Build, list[Accuracy]]:
    """Build the operator as given and check its accuracy on every workload.

    Raises:
        BadInput: it does not build.
        GateRefused: it builds and is not accurate, or crashes.
    """
    operator = lab.operator
    build = build_baseline(lab, clock)
    try:
        with clock.on("accuracy"), lab.caller(build) as rig:
            return build, verify(lab, rig)
    except (GateClosed, WorkerFailed) as closed:
        raise GateRefused(
            f"the operator does not pass its own accuracy check: {closed.reason}",
            where=str(operator.source),
            fix="Only an accurate operator is tuned. Mend it (or its tolerance in the manifest) first.",
        ) from None


def build_baseline(lab: Lab, clock: Clock) -> Build:
    """Build the operator as given, one workload after another so that a failure names its workload.

    Raises:
        BadInput: it does not build.
    """
    operator = lab.operator
    try:
        with clock.on("build"):
            return lab.build(operator.text, operator.checked)
    except WorkerFailed as failure:
        raise BadInput(
            f"the operator does not build: {failure.reason}",
            where=str(operator.source),
            fix="Check that the kernel accepts every workload's shape: "
            + ", ".join(f"{w.id} {dict(w.shape)}" for w in operator.checked),
        ) from None


def measure_baseline(lab: Lab, build: Build, clock: Clock) -> BaselineMeasured:
    """Time the baseline against itself: its latency, and what "no change" looks like on this machine.

    Raises:
        BaselineFailed: it cannot be timed.
    """
    try:
        result, spread = learn_noise(lab, build)
    except (GateClosed, WorkerFailed) as failure:
        raise BaselineFailed(
            f"the baseline could not be measured: {failure.reason}",
            where=str(lab.operator.source),
            fix="Run `opratchet measure` on it to see more.",
        ) from None
    for kind, seconds in result.seconds.items():
        clock.book(kind, seconds)
    return BaselineMeasured(
        latency=result.candidate,
        noise=result.ratio,
        work={name: dict(artifact.work) for name, artifact in build.artifacts.items()},
        conditions=result.conditions,
        spread=spread.record(),
    )


def header(lab: Lab, options: Options) -> RunStarted:
    """The first line of a ledger."""
    operator = lab.operator
    return RunStarted(
        run_id=f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}",
        tool_version=__version__,
        operator=operator.name,
        project=operator.project,
        source=operator.source.name,
        source_sha256=sha256(operator.text),
        backend=operator.backend,
        flow=operator.flow,
        metric_kind=lab.backend.metric_kind,
        machine=read_machine().record(),
        toolchain=lab.backend.toolchain(),
        options=options.record(),
        workloads=[w.record() for w in operator.workloads],
        target=operator.target,
        protections=lab.sandbox.record(),
    )


def situation_of(lab: Lab, source: KernelSource) -> Situation:
    """A source as strategies see it."""
    operator = lab.operator
    shapes = tuple(dict(workload.shape) for workload in operator.checked)
    return Situation(source, lab.backend.target(), shapes, operator.knobs)


def begin(
    lab: Lab, folder: Path, options: Options, clock: Clock, tell: Progress, *, fresh: bool = False
) -> Ledger:
    """A new run: gate, baseline, then the ledger with these as its first lines.

    Args:
        lab: The lab.
        folder: Where the run is to leave its files.
        options: What the user chose.
        clock: Where time is booked.
        tell: Told what is being done.
        fresh: Whether an earlier run's folder is moved out of the way, once the operator has proven itself.

    Raises:
        BadInput: the folder cannot be used, or the operator does not build.
        GateRefused: it is not accurate.
        BaselineFailed: it cannot be timed.
        LedgerError: a run is recorded in the folder already, or is running there.
        OpratchetError: the folder cannot be written to any more.
    """
    require_usable(folder, lab.operator)
    require_free(folder, fresh=fresh)
    tell("building the operator as given")
    build, accuracy = open_gate(lab, clock)
    tell("measuring the baseline")
    baseline = measure_baseline(lab, build, clock)
    if fresh:
        require_free(folder, fresh=True)  # another run may have begun there meanwhile
        moved = set_aside(folder)
        tell(f"the earlier run is kept as {moved}" if moved else "there was no earlier run")
    ledger = Ledger(folder, create=True)
    try:
        ledger.keep(lab.operator.text)
        notes = [Noted(text=text) for text in lab.operator.remarks]
        ledger.append_all([header(lab, options), GatePassed(accuracy=accuracy), baseline, *notes])
    except OpratchetError:
        ledger.close()
        raise
    return ledger


def require_usable(folder: Path, operator: Operator) -> None:
    """Refuse a folder in which a run would touch anything of the user's.

    Raises:
        BadInput: it is the operator's own folder or above it, it is no folder, it cannot be written, or it holds files that
            no run has left.
    """
    place, source = folder.resolve(), operator.source.resolve()
    existing = next(parent for parent in (place, *place.parents) if parent.exists())
    what = ""
    if source.is_relative_to(place):
        what = "the operator itself lies in this folder"
    elif not existing.is_dir():
        what = f"{existing} is a file"
    elif not os.access(existing, os.W_OK | os.X_OK):
        what = f"{existing} cannot be written to"
    elif place.exists() and any(place.iterdir()) and not (place / LEDGER).exists():
        what = "this folder holds files that no run has left"
    if what:
        fix = "Name another folder with --out; the default is perf_opt beside the source."
        raise BadInput(what, where=str(folder), fix=fix)


def require_free(folder: Path, *, fresh: bool) -> None:
    """Refuse a folder in which a run is recorded (unless it is to be moved aside) or running.

    Raises:
        LedgerError: it is.
    """
    owner = holder(folder)
    if owner is not None:
        raise LedgerError(
            f"another run (process {owner}) is writing here",
            where=str(folder),
            fix="Wait for it, end it with `stop`, or name another folder with --out.",
        )
    if not fresh and (folder / LEDGER).exists() and (folder / LEDGER).stat().st_size:
        raise LedgerError(
            "a run is recorded here already",
            where=str(folder),
            fix="Continue it with `resume`, start anew with `tune --fresh` (the old folder is kept), "
            "or name another folder with --out.",
        )


def set_aside(folder: Path) -> Path | None:
    """Move an earlier run's folder out of the way, under the first free name; nothing is ever deleted."""
    if not folder.exists():
        return None
    number = 1
    while (other := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    folder.rename(other)
    return other


def assemble(
    lab: Lab,
    ledger: Ledger,
    options: Options,
    clock: Clock,
    listener: Listener,
    progress: Progress,
    stop_asked: Callable[[], bool],
) -> Run:
    """A run ready for `tune`: the parts that the chosen flow and backend ask for."""
    operator = lab.operator
    flow = get_flow(operator.flow)
    language = "zh" if options.language == "zh" else "en"
    return Run(
        lab=lab,
        ledger=ledger,
        flow=flow,
        proposer=Catalogue(flow, STRATEGIES.values(), language),
        rules=options.rules,
        rule=options.rule,
        listener=listener,
        progress=progress,
        stop_asked=stop_asked,
        clock=clock,
        situation=partial(situation_of, lab),
    )


def reopen(
    folder: Path,
    operator: Operator,
    limits: Mapping[str, Any] | None = None,
    protections: Mapping[str, str] | None = None,
) -> tuple[Ledger, Options]:
    """The ledger of an interrupted (or stopped) run, and the options it goes on with.

    Args:
        folder: Where the run left its files.
        operator: Its operator.
        limits: Stop rules that hold from here on instead of the recorded ones, by their names in `StopRules`.
        protections: What candidates are kept from from here on; see `RunStarted`.

    Raises:
        LedgerError: there is none, it is in use, or it is damaged.
        BadInput: the source has changed since, or the limits cannot be raised any more.
    """
    ledger = Ledger(folder, create=False)
    event = RunResumed(
        tool_version=__version__, options=dict(limits or {}), protections=dict(protections or {})
    )
    try:
        state = fold(ledger.lines)
        require_begun(state, folder)
        require_same_source(state, sha256(operator.text), str(operator.source))
        options = _options_from_here(ledger.lines, event)
    except OpratchetError:
        ledger.close()
        raise
    ledger.append(event)
    note_other_machine(ledger, state)
    return ledger, options


def note_other_machine(ledger: Ledger, state: RunState) -> None:
    """Say so when a run goes on elsewhere than it began. How fast the machine is now is checked before the first round."""
    began, now = state.run.machine, read_machine()
    if began.get("fingerprint", now.fingerprint) != now.fingerprint:
        text = f"the run goes on on another machine, or on one that is set up differently: {now}"
        ledger.append(Noted(text=f"{text}; it began on {began.get('model', 'an unknown one')}"))


def _options_from_here(lines: Sequence[Line], event: RunResumed) -> Options:
    """Recorded options with what is changed now, and what is left of the error that the run may make."""
    resumed = [*lines, Line(seq=len(lines), at="", prev="", event=event)]
    run = stretches(resumed)
    trials = trials_for(run)
    if trials is None and run[-1].to_come:
        raise BadInput(
            "this run has compared as many candidates as its limit allowed when it began, so that no more may be adopted "
            "without a greater chance of adopting one by mistake",
            where="--max-experiments",
            fix="Go on from the delivered file as a new run, or start anew with `tune --fresh` and the higher limit.",
        )
    return replace(Options.from_record(fold(resumed).options), trials=trials)


def require_begun(state: RunState, folder: Path) -> None:
    """A run that died before its baseline was on record has nothing to go on with.

    Raises:
        LedgerError: it did.
    """
    if state.header is None or not state.baseline:
        raise LedgerError(
            "the run recorded here ended before its baseline was measured",
            where=str(folder),
            fix="Start it anew with `tune --fresh`.",
        )
