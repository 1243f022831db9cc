"""A whole recorded run, written by the store and the delivery as a run does it, with real sources and real edits.

Nothing is built and nothing is timed: the figures are invented, and everything else is what a run leaves. The first round
adopts another block size, the second one rolls back what it tried, the third adopts a rewrite.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opratchet import session
from opratchet.audit.edits import Bench
from opratchet.delivery import deliver, version_name, write_version
from opratchet.edit.model import Edit, NotApplicable
from opratchet.edit.registry import STRATEGIES
from opratchet.edit.source import KernelSource
from opratchet.flow.model import StopRules
from opratchet.ledger.events import (
    BaselineMeasured,
    Diagnosed,
    Event,
    FinalMeasured,
    GatePassed,
    MachineChecked,
    RoundFinished,
    RoundStarted,
    RunStarted,
    Stopped,
    StrategySkipped,
    TrialFinished,
    TrialPassed,
    TrialStarted,
)
from opratchet.ledger.state import RunState, apply, fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines, seal, unseal
from opratchet.ledger.words import (
    Bottleneck,
    Latency,
    MetricKind,
    Outcome,
    StopReason,
    WorkloadKind,
)
from opratchet.operator.model import Operator, Workload
from opratchet.report.views import rebuild
from tests.builders import accuracy, latency, ratio

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "norm" / "rmsnorm" / "rmsnorm.py"
TUNE = ("small", "large")
FACTORS = {Outcome.ADOPTED: 2.0, Outcome.NO_GAIN: 1.0, Outcome.REGRESSED: 0.5}


def make_operator(root: Path) -> Operator:
    """The shipped rmsnorm in a folder of its own."""
    root.mkdir(parents=True)
    source = root / "rmsnorm.py"
    source.write_bytes(SOURCE.read_bytes())
    shapes = {"small": {"M": 64, "N": 512}, "large": {"M": 512, "N": 1024}}
    tuned = [Workload(name, shapes[name]) for name in TUNE]
    smoke = Workload("odd", {"M": 5, "N": 100}, kind=WorkloadKind.SMOKE)
    return Operator(
        name="rmsnorm",
        project="norm",
        root=root,
        source=source,
        text=source.read_text(),
        kernel="rmsnorm",
        golden="golden_rmsnorm",
        workloads=(*tuned, smoke),
        tolerances={},
        inputs={},
        backend="tilelang-c",
        flow="tilelang",
    )


@dataclass
class Recording:
    """Writes a run.

    Attributes:
        operator: What is tuned.
        ledger: Open for writing.
        state: Its fold so far.
        us: Latency of the incumbent, microseconds.
    """

    operator: Operator
    ledger: Ledger
    state: RunState = field(default_factory=RunState)
    us: float = 400.0

    def add(self, event: Event) -> None:
        """Record an event."""
        apply(self.state, self.ledger.append(event))

    def open(self, rules: StopRules, language: str = "zh") -> None:
        """Header, gate, baseline, diagnosis."""
        self.add(
            RunStarted(
                run_id="run-1",
                tool_version="0.1.0",
                operator=self.operator.name,
                project=self.operator.project,
                source=self.operator.source.name,
                source_sha256=self.ledger.keep(self.operator.text),
                backend=self.operator.backend,
                flow=self.operator.flow,
                metric_kind=MetricKind.MEASURED,
                machine={"model": "Test CPU", "mhz": 2000, "vector_sets": ["avx2"]},
                toolchain={},
                options=session.Options(rules, language=language).record(),
                workloads=[w.record() for w in self.operator.workloads],
            )
        )
        self.add(GatePassed(accuracy=self.checks()))
        self.add(BaselineMeasured(latency=self.latencies(self.us), noise=ratio(1.0)))
        found = Bottleneck(name="memory", score=0.5, evidence="invented")
        self.add(Diagnosed(incumbent=self.state.incumbent, bottlenecks=[found], facts={}))

    def checks(self) -> list[Any]:
        """Every workload compared with the golden."""
        return [accuracy(workload.id) for workload in self.operator.checked]

    def latencies(self, us: float) -> dict[str, Latency]:
        """The same latency on every workload."""
        return {name: latency(us) for name in TUNE}

    def edits(self, strategy: str) -> list[Edit]:
        """What a strategy offers on the incumbent."""
        text = (self.ledger.folder / "objects" / f"{self.state.incumbent}.py").read_text()
        bench = Bench(self.state.run, self.operator.text)
        offered = STRATEGIES[strategy].edits(bench.situation(KernelSource(text, "rmsnorm")))
        assert not isinstance(offered, NotApplicable)
        return list(offered)

    def round(self, strategy: str, *outcomes: Outcome) -> None:
        """A round of one trial for each outcome."""
        edits = self.edits(strategy)[: len(outcomes)]
        number = len(self.state.rounds) + 1
        self.add(
            RoundStarted(
                round=number,
                strategy=STRATEGIES[strategy].row,
                reason="invented",
                incumbent=self.state.incumbent,
                documents=["docs/strategies.md"],
                planned=[edit.id for edit in edits],
            )
        )
        trials = [self._start(number, edit) for edit in edits]
        for trial, outcome in zip(trials, outcomes, strict=True):
            self._end(trial, outcome)
        self._finish(number, trials, outcomes)

    def _start(self, number: int, edit: Edit) -> int:
        trial = len(self.state.trials) + 1
        self.add(
            TrialStarted(
                trial=trial,
                round=number,
                strategy=edit.strategy,
                edit=edit.id,
                title=edit.title,
                source=self.ledger.keep(edit.text),
                parent=self.state.incumbent,
            )
        )
        return trial

    def _end(self, trial: int, outcome: Outcome) -> None:
        factor = FACTORS.get(outcome, 0.0)
        result = TrialFinished(
            trial=trial,
            outcome=outcome,
            reason="invented",
            ratio=ratio(factor) if factor else None,
            ratios={name: ratio(factor) for name in TUNE} if factor else {},
            latency=self.latencies(self.us / factor) if factor else {},
            accuracy=self._compared(outcome),
            seconds={"build": 1.0},
        )
        if outcome is Outcome.ADOPTED:
            self.add(TrialPassed(trial=trial, result=result))
        self.add(result)

    def _compared(self, outcome: Outcome) -> list[Any]:
        if outcome is Outcome.ACCURACY_FAILED:
            return [accuracy("small", passed=False)]
        return self.checks() if outcome.is_judged else []

    def _finish(self, number: int, trials: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        won = [t for t, outcome in zip(trials, outcomes, strict=True) if outcome is Outcome.ADOPTED]
        shown = self.state.trials[won[0] if won else trials[0]]
        if won:
            self.us /= FACTORS[Outcome.ADOPTED]
        name = version_name(self.operator, number)
        source = self.ledger.folder / "objects" / f"{shown.source}.py"
        write_version(self.ledger.folder, name, source.read_text())
        self.add(
            RoundFinished(
                round=number,
                adopted=won[0] if won else None,
                shown=shown.number,
                version=name,
                incumbent=shown.source if won else self.state.incumbent,
            )
        )
        rebuild(self.ledger.folder, self.state)

    def close(self) -> None:
        """Stop, measure again, deliver, write the reports."""
        rounds = len(self.state.rounds)
        self.add(Stopped(reason=StopReason.MAX_ROUNDS, detail=f"{rounds} rounds"))
        won = ratio(400.0 / self.us)
        self.add(
            FinalMeasured(
                source=self.state.incumbent,
                baseline=self.latencies(400.0),
                final=self.latencies(self.us),
                ratios=dict.fromkeys(TUNE, won),
                ratio=won,
                accuracy=self.checks(),
                seconds={"measure": 3.0},
            )
        )
        seconds = {"total": 60.0, "build": 20.0, "measure": 38.0, "own": 2.0}
        self.add(deliver(self.ledger.folder, self.operator, self.state, seconds))
        rebuild(self.ledger.folder, self.state)


def record(root: Path, *, close: bool = True) -> Path:
    """A run of three rounds in `root/norm/rmsnorm`; the folder that it leaves.

    Args:
        root: Where the operator is to lie.
        close: False for a run that broke off after its second round.
    """
    operator = make_operator(root / "norm" / "rmsnorm")
    with Ledger(operator.root / "perf_opt", create=True) as ledger:
        run = Recording(operator, ledger)
        run.open(StopRules(max_rounds=3))
        run.round("block_size", Outcome.NO_GAIN, Outcome.ADOPTED, Outcome.COMPILE_FAILED)
        run.add(StrategySkipped(strategy="v_prefix", incumbent=run.state.incumbent, why="invented"))
        run.round("lanes", Outcome.REGRESSED, Outcome.ACCURACY_FAILED, Outcome.PRUNED)
        if close:
            run.add(MachineChecked(latency=run.latencies(400.0), change=1.0, anchored=False))
            run.round("drop-copy-in", Outcome.ADOPTED)
            run.close()
    return operator.root / "perf_opt"


Events = list[dict[str, Any]]


def forge(folder: Path, change: Callable[[Events], object], *, reports: bool = True) -> None:
    """Change the events of a ledger and hash it anew, so that nothing but sense can tell that it was changed.

    Args:
        folder: The folder of the run.
        change: Changes the list of events in place.
        reports: Whether the reports are made to say the same.
    """
    path = folder / LEDGER
    bodies = [json.loads(unseal(raw)[0]) for raw in path.read_bytes().splitlines()]
    at = {json.dumps(body["event"]): body["at"] for body in bodies}
    events: Events = [body["event"] for body in bodies]
    change(events)
    write_chain(path, events, at)
    if reports:
        try:
            rebuild(folder, fold(read_lines(path)))
        except Exception:  # a contradiction cannot be shown
            return


def write_chain(path: Path, events: Events, at: dict[str, str]) -> None:
    """A ledger of these events, chained as the store does it."""
    previous, lines, last = "", [], "2026-01-01T00:00:00.000+00:00"
    for number, event in enumerate(events):
        last = at.get(json.dumps(event), last)
        body = {"seq": number, "at": last, "prev": previous, "event": event}
        sealed = seal(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
        previous = unseal(sealed)[1]
        lines.append(sealed + b"\n")
    path.write_bytes(b"".join(lines))


def first(events: Events, kind: str, place: int = 0) -> dict[str, Any]:
    """The event of a type."""
    return [event for event in events if event["type"] == kind][place]
