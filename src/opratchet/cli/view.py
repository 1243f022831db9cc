"""What a person sees of a run: one line for each thing that is decided, and on a terminal a status line below.

The view only reads events and state; it decides nothing and computes no figure of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from opratchet.cli.pace import Pace, about
from opratchet.flow.registry import FLOWS
from opratchet.flow.stop import total_speedup
from opratchet.ledger.events import (
    BaselineMeasured,
    Delivered,
    Diagnosed,
    FinalMeasured,
    GatePassed,
    Line,
    Noted,
    RoundFinished,
    RoundStarted,
    RunResumed,
    RunStarted,
    StageEntered,
    Stopped,
    TrialFinished,
    TrialPassed,
)
from opratchet.ledger.plural import counted
from opratchet.ledger.state import RunState
from opratchet.ledger.words import MetricKind, Outcome, Ratio

LABELS = {
    Outcome.ADOPTED: "[green]adopted[/]",
    Outcome.NO_GAIN: "no gain",
    Outcome.REGRESSED: "slower, rolled back",
    Outcome.PRUNED: "[dim]pruned[/]",
}


HUGE = 1000.0  # a speed-up over which an upper end says nothing


def microseconds(value: float) -> str:
    """A latency for people."""
    return f"{value:.1f} us" if value < 1e5 else f"{value / 1e3:.1f} ms"


def ratio_text(ratio: Ratio) -> str:
    """A speed-up with its interval."""
    return f"{ratio.value:.2f}x [{_end(ratio.low)}, {_end(ratio.high)}]"


def _end(value: float) -> str:
    """End of an interval; on a machine that is too noisy it lies anywhere."""
    return f"{value:.2f}" if value < HUGE else "any"


class View:
    """Prints a run as it happens. A context manager; on a terminal it keeps a status line."""

    def __init__(self, console: Console, max_rounds: int, budget: float | None) -> None:
        self.console = console
        self.max_rounds = max_rounds
        self.budget = budget
        self.started = time.monotonic()
        self._doing = "starting"
        self._notice = ""
        self._pace = Pace()
        self._state: RunState | None = None
        self._status: Status | None = None

    def __enter__(self) -> View:
        if self.console.is_terminal:
            self._status = self.console.status("")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def progress(self, text: str) -> None:
        """What is being done now."""
        self._doing = text
        if self._status is not None:
            self._status.update(escape(self.status_line()))

    def notice(self, text: str) -> None:
        """What stands in the status line from now on, whatever is being done."""
        self._notice = text
        self.progress(self._doing)

    def status_line(self) -> str:
        """What stands below the lines on a terminal: what is being done, how far the run is, how long it may take."""
        now = time.monotonic()
        parts = [self._doing]
        if self._state is not None and self._state.baseline:
            done = len(self._state.finished_rounds)
            parts.append(f"{done}/{counted(self.max_rounds, 'round')}")
            parts.append(f"incumbent {total_speedup(self._state):.2f}x")
        parts.append(f"{now - self.started:.0f} s")
        parts.append(self._notice or self._left(now))
        return "   ".join(filter(None, parts))

    def _left(self, now: float) -> str:
        """How long it may still take; empty when nobody can tell. The budget is a limit, the rounds give an estimate."""
        state = self._state
        estimate = None
        if state is not None and state.stop is None:
            estimate = self._pace.left(self.max_rounds - len(state.finished_rounds), now)
        budget = None if self.budget is None else max(0.0, self.started + self.budget - now)
        if estimate is not None and (budget is None or estimate < budget):
            return f"{about(estimate)} left at most"
        return "" if budget is None else f"{budget:.0f} s left"

    def event(self, line: Line, state: RunState) -> None:
        """Print what this event decided."""
        self._state = state
        self._pace.see(line, time.monotonic())
        show = _SHOW.get(type(line.event))
        if show is not None:
            for text in show(line.event, state):
                self.console.print(text, highlight=False, soft_wrap=True)
        self.progress(self._doing)


def _run_started(event: RunStarted, _state: RunState) -> list[str]:
    goal = "better than the baseline"
    if event.target is not None and not (
        event.target.metric == "speedup" and event.target.value <= 1
    ):
        goal = f"{event.target.metric} {event.target.value:g} ({event.target.source})"
    rounds = f", at most {counted(int(event.options['max_rounds']), 'round')}"
    flow = FLOWS.get(event.flow)
    limit = "" if flow is not None and flow.stages else rounds  # stages end by their own rules
    return [
        f"[bold]{escape(event.operator)}[/]   {event.backend}   {event.metric_kind.value}: {escape(_device(event))}"
        f"   goal: {escape(goal)}{limit}"
    ]


def _device(event: RunStarted) -> str:
    """What the latencies are those of: a core of this machine, or the chip that is modelled."""
    if event.metric_kind is MetricKind.MEASURED:
        return f"1 core of {event.machine.get('model', 'this machine')}"
    return event.toolchain.get("chip", "a model")


def _stage_entered(event: StageEntered, _state: RunState) -> list[str]:
    again = f" (cycle {event.cycle})" if event.cycle > 1 else ""
    return [f"[bold]stage     {escape(event.stage)}{again}[/]   {escape(event.why)}"]


def _run_resumed(event: RunResumed, _state: RunState) -> list[str]:
    limits = "   ".join(f"{name.replace('_', ' ')} {v:g}" for name, v in event.options.items())
    return [f"resumed   {limits}".rstrip()]


def _gate_passed(event: GatePassed, state: RunState) -> list[str]:
    worst = max(event.accuracy, key=lambda record: record.max_abs, default=None)
    workloads = counted(len({record.workload for record in event.accuracy}), "workload")
    error = ""
    if worst is not None:
        error = f", largest absolute error {worst.max_abs:.1e} (allowed {worst.atol:.0e} + {worst.rtol:.0e} relative)"
    return [f"gate      accuracy pass   {workloads}{error}"]


def _baseline(event: BaselineMeasured, _state: RunState) -> list[str]:
    texts = [
        f"{name} {microseconds(value.us)} ±{(value.high_us - value.low_us) / 2 / value.us:.1%}"
        for name, value in event.latency.items()
    ]
    noise = f"   against itself {ratio_text(event.noise)}" if event.noise is not None else ""
    return [f"baseline  {escape('   '.join(texts))}{escape(noise)}"]


def _diagnosed(event: Diagnosed, _state: RunState) -> list[str]:
    if not event.bottlenecks:
        return ["diagnosis  none: the work of a call could not be counted"]
    top = event.bottlenecks[0]
    return [
        f"[dim]diagnosis {top.name.replace('_', ' ')} ({top.score:.2f}): {escape(top.evidence)}[/]"
    ]


def _round_started(event: RoundStarted, _state: RunState) -> list[str]:
    return [
        f"[bold]round {event.round}[/]   {event.strategy.replace('_', ' ')}   [dim]{escape(event.reason)}[/]"
    ]


def _trial_line(
    number: int, state: RunState, verdict: str, ratio: Ratio | None, reason: str
) -> str:
    title = escape(state.trials[number].title)
    figures = ratio_text(ratio) if ratio is not None else ""
    tail = f"   [dim]{escape(reason.splitlines()[0][:110])}[/]" if reason else ""
    return f"{number:4d}  {title:<46} {escape(figures):<22} {verdict}{tail}"


def _trial_passed(event: TrialPassed, state: RunState) -> list[str]:
    return [_trial_line(event.trial, state, "[green]faster[/]", event.result.ratio, "")]


def _trial_finished(event: TrialFinished, state: RunState) -> list[str]:
    if (
        event.ratio is not None
        and event.outcome in (Outcome.ADOPTED, Outcome.NO_GAIN)
        and (event.outcome is Outcome.ADOPTED or event.reason.startswith("faster"))
    ):
        return []  # shown already when it passed; the round's end says which one was adopted
    verdict = LABELS.get(
        event.outcome, f"[red]discarded: {event.outcome.value.replace('_', ' ')}[/]"
    )
    return [_trial_line(event.trial, state, verdict, event.ratio, event.reason)]


def _round_finished(event: RoundFinished, state: RunState) -> list[str]:
    if event.adopted is None:
        rounds = counted(state.rounds_without_gain, "round")
        return [f"      nothing adopted   {rounds} without gain"]
    trial = state.trials[event.adopted]
    latency = "   ".join(f"{n} {microseconds(v.us)}" for n, v in state.incumbent_latency.items())
    return [
        f"      [green]adopted[/] {escape(trial.title)}   {escape(latency)}   {total_speedup(state):.2f}x so far"
    ]


def _stopped(event: Stopped, _state: RunState) -> list[str]:
    return [f"stop      {event.reason.value.replace('_', ' ')}: {escape(event.detail)}"]


def _final(event: FinalMeasured, state: RunState) -> list[str]:
    lines = [
        f"          {escape(name)}   {microseconds(event.baseline[name].us)} -> "
        f"{microseconds(event.final[name].us)}   {escape(ratio_text(event.ratios[name]))}"
        for name in event.ratios
    ]
    if event.source == state.run.source_sha256:
        return ["[bold]done[/]      nothing was better: the baseline is delivered", *lines]
    return [
        f"[bold]done[/]      {escape(ratio_text(event.ratio))} faster, measured again on every workload",
        *lines,
    ]


def _delivered(event: Delivered, _state: RunState) -> list[str]:
    seconds = event.seconds
    spent = ", ".join(
        f"{k} {seconds[k]:.1f} s" for k in ("build", "accuracy", "measure", "own") if k in seconds
    )
    return [f"[dim]time      {seconds.get('total', 0.0):.0f} s: {spent}[/]"]


def _noted(event: Noted, _state: RunState) -> list[str]:
    return [f"[yellow]note[/]      {escape(event.text)}"]


_SHOW: dict[type[Any], Callable[[Any, RunState], list[str]]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    StageEntered: _stage_entered,
    GatePassed: _gate_passed,
    BaselineMeasured: _baseline,
    Diagnosed: _diagnosed,
    RoundStarted: _round_started,
    TrialPassed: _trial_passed,
    TrialFinished: _trial_finished,
    RoundFinished: _round_finished,
    Stopped: _stopped,
    FinalMeasured: _final,
    Delivered: _delivered,
    Noted: _noted,
}
