"""Synthetic runs: event sequences as the engine writes them, with figures that a test can work out in its head.

    story = Story()
    story.open(baseline_us=400.0)
    story.round("adopted", speedup=2.0)          # 200 us from here on
    story.round("accuracy_failed", "no_gain")    # a round of two trials
    story.close()
    state = fold(story.lines)

Every workload has the same latency, so averages over workloads equal it. The chain of hashes is not built here:
that is the store's work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from opratchet.ledger.events import (
    BaselineMeasured,
    Delivered,
    Diagnosed,
    Event,
    FinalMeasured,
    GatePassed,
    Line,
    RoundFinished,
    RoundStarted,
    RunStarted,
    Stopped,
    TrialFinished,
    TrialStarted,
)
from opratchet.ledger.words import (
    Accuracy,
    Bottleneck,
    Latency,
    MetricKind,
    Outcome,
    Ratio,
    StopReason,
    TargetRecord,
    WorkloadKind,
    WorkloadRecord,
)

RATIO = {Outcome.NO_GAIN: 1.0, Outcome.REGRESSED: 0.5}


def sha(text: str) -> str:
    """A well-formed source hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def latency(us: float, kind: MetricKind = MetricKind.MEASURED) -> Latency:
    """A latency with an interval of one percent to either side."""
    return Latency(kind=kind, us=us, low_us=us * 0.99, high_us=us * 1.01, samples=30)


def ratio(value: float) -> Ratio:
    """A speed-up with an interval of one percent to either side."""
    return Ratio(value=value, low=value * 0.99, high=value * 1.01, pairs=30, confidence=0.999)


def accuracy(workload: str, passed: bool = True) -> Accuracy:
    """One comparison, with an error of 2e-7 when it passed and of 1 when not."""
    error = 2e-7 if passed else 1.0
    return Accuracy(
        workload=workload,
        output="Y",
        passed=passed,
        max_abs=error,
        max_rel=error,
        worst_index=(0, 0),
        out_of_tolerance=0.0 if passed else 0.5,
        rtol=1e-4,
        atol=1e-4,
    )


def workload(id: str, kind: WorkloadKind = WorkloadKind.TUNE, reason: str = "") -> WorkloadRecord:
    """A workload of 512 by 1024 float32."""
    return WorkloadRecord(
        id=id, shape={"M": 512, "N": 1024}, dtype="float32", kind=kind, reason=reason
    )


class Story:
    """Writes a run event by event and keeps the numbers straight.

    Args:
        operator: Name of the operator.
        tune: Ids of its tune workloads; a smoke workload `odd` and a skipped one `huge` are always there.
        kind: Metric kind of every latency.
        machine: Identity of the machine.
        target: Performance target.
    """

    def __init__(
        self,
        operator: str = "rmsnorm",
        tune: Sequence[str] = ("small", "large"),
        kind: MetricKind = MetricKind.MEASURED,
        machine: dict[str, Any] | None = None,
        target: TargetRecord | None = None,
    ) -> None:
        self.operator = operator
        self.tune = tuple(tune)
        self.kind = kind
        self.machine = {"model": "Test CPU", "mhz": 2000} if machine is None else machine
        self.target = target
        self.lines: list[Line] = []
        self.baseline = self.incumbent = sha("baseline")
        self.baseline_us = self.us = 0.0
        self.rounds = self.trials = 0

    def add(self, event: Event) -> Line:
        """Append any event."""
        number = len(self.lines)
        at = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
        line = Line(seq=number, at=at, prev="", event=event)
        self.lines.append(line)
        return line

    def latencies(self, us: float) -> dict[str, Latency]:
        """The same latency on every tune workload."""
        return {name: latency(us, self.kind) for name in self.tune}

    def start(self) -> None:
        """The header."""
        self.add(
            RunStarted(
                run_id="run-1",
                tool_version="0.1.0",
                operator=self.operator,
                project="norm",
                source=f"examples/norm/{self.operator}/{self.operator}.py",
                source_sha256=self.baseline,
                backend="tilelang-c",
                flow="tilelang",
                metric_kind=self.kind,
                machine=self.machine,
                toolchain={"tilelang": "0.1.15"},
                options={"max_rounds": 10, "max_experiments": 120},
                workloads=[
                    *(workload(name) for name in self.tune),
                    workload("odd", WorkloadKind.SMOKE),
                    workload("huge", WorkloadKind.SKIPPED, "does not fit in memory"),
                ],
                target=self.target,
            )
        )

    def open(self, baseline_us: float = 400.0) -> None:
        """Header, activation gate, baseline and first diagnosis."""
        self.start()
        self.add(GatePassed(accuracy=[accuracy(name) for name in (*self.tune, "odd")]))
        self.baseline_us = self.us = baseline_us
        self.add(BaselineMeasured(latency=self.latencies(baseline_us)))
        self.diagnose("compute_density", 0.8)

    def diagnose(self, name: str, score: float) -> None:
        """A diagnosis of the incumbent with one bottleneck."""
        found = Bottleneck(name=name, score=score, evidence=f"evidence of {name}")
        self.add(Diagnosed(incumbent=self.incumbent, bottlenecks=[found], facts={}))

    def begin_round(
        self,
        strategy: str = "lanes",
        document: str = "docs/strategies.md",
        planned: Sequence[str] = (),
    ) -> int:
        """A round from the incumbent; its number."""
        self.rounds += 1
        self.add(
            RoundStarted(
                round=self.rounds,
                strategy=strategy,
                reason=f"{strategy} eases compute_density",
                incumbent=self.incumbent,
                documents=[document],
                planned=list(planned),
            )
        )
        return self.rounds

    def begin_trial(self, strategy: str = "lanes", edit: str = "") -> TrialStarted:
        """A trial in the round begun last."""
        self.trials += 1
        event = TrialStarted(
            trial=self.trials,
            round=self.rounds,
            strategy=strategy,
            edit=edit or f"{strategy}/key={self.trials}",
            title=f"change {self.trials}",
            source=sha(f"candidate {self.trials}"),
            parent=self.incumbent,
        )
        self.add(event)
        return event

    def end_trial(
        self, trial: int, outcome: Outcome, speedup: float = 1.0, no_effect: bool = False
    ) -> None:
        """The end of a trial, with the figures that its outcome has."""
        timed = outcome.is_judged
        checked = timed or outcome is Outcome.ACCURACY_FAILED
        self.add(
            TrialFinished(
                trial=trial,
                outcome=outcome,
                reason=f"reason of {outcome.value}",
                ratio=ratio(speedup) if timed else None,
                ratios={name: ratio(speedup) for name in self.tune} if timed else {},
                latency=self.latencies(self.us / speedup) if timed else {},
                accuracy=[accuracy(name, timed) for name in self.tune] if checked else [],
                seconds={} if outcome is Outcome.PRUNED else {"build": 1.0, "accuracy": 0.5},
                no_effect=no_effect,
            )
        )

    def round(self, *outcomes: str, strategy: str = "lanes", speedup: float = 2.0) -> None:
        """A whole round of one trial for each outcome; an adopted one becomes the incumbent."""
        number = self.begin_round(strategy)
        adopted = shown = None
        for outcome in map(Outcome, outcomes):
            trial = self.begin_trial(strategy)
            factor = speedup if outcome is Outcome.ADOPTED else RATIO.get(outcome, 1.0)
            self.end_trial(trial.trial, outcome, factor)
            shown = trial.trial
            if outcome is Outcome.ADOPTED:
                adopted = trial
                break
        if adopted is not None:
            self.incumbent = adopted.source
            self.us /= speedup
        self.add(
            RoundFinished(
                round=number,
                adopted=None if adopted is None else adopted.trial,
                shown=shown,
                version=f"{self.operator}_opt_v{number}.py" if shown is not None else "",
                incumbent=self.incumbent,
            )
        )

    def stop(self, reason: StopReason = StopReason.NO_GAIN, detail: str = "") -> None:
        """A stop rule holds."""
        self.add(Stopped(reason=reason, detail=detail))

    def measure_final(self, baseline_us: float, final_us: float, source: str = "") -> None:
        """The fresh pair of figures; `source` is what is delivered, the incumbent unless named."""
        won = ratio(baseline_us / final_us)
        self.add(
            FinalMeasured(
                source=source or self.incumbent,
                baseline=self.latencies(baseline_us),
                final=self.latencies(final_us),
                ratios=dict.fromkeys(self.tune, won),
                ratio=won,
                accuracy=[accuracy(name) for name in (*self.tune, "odd")],
                seconds={"measure": 3.0},
            )
        )

    def deliver(self, source: str = "") -> None:
        """The last event."""
        source = source or self.incumbent
        seconds = {"total": 60.0, "build": 20.0, "accuracy": 10.0, "measure": 28.0, "own": 2.0}
        files = {f"{self.operator}.py": source, "baseline.py": self.baseline}
        self.add(Delivered(source=source, files=files, seconds=seconds))

    def close(self, reason: StopReason = StopReason.NO_GAIN, detail: str = "") -> None:
        """Stop, measure again with the same figures as before, deliver."""
        self.stop(reason, detail)
        self.measure_final(self.baseline_us, self.us)
        self.deliver()


def full_story() -> Story:
    """A run with a gain, a tie, a slower version and a failure: 400 -> 200 -> 100 us."""
    story = Story()
    story.open(400.0)
    story.round("adopted")
    story.diagnose("memory_bound", 0.6)
    story.round("no_gain", strategy="fast_math")
    story.round("accuracy_failed", "adopted", strategy="hoist")
    story.round("regressed", strategy="block")
    story.round("compile_failed", strategy="block")
    story.close()
    return story


@lru_cache(maxsize=1)
def long_story() -> tuple[Line, ...]:
    """The lines of a complete run of 10,000 trials."""
    story = Story()
    story.open()
    for _ in range(2500):
        story.round("no_gain", "compile_failed", "no_gain", "regressed")
    story.close()
    return tuple(story.lines)
