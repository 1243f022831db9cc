"""Every event that a run can record. One event is one line of `ledger.jsonl`.

The events are facts, never opinions that could be recomputed: reports, state and statistics are folds over them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from opratchet.ledger.words import (
    Accuracy,
    Bottleneck,
    Conditions,
    Latency,
    MetricKind,
    Outcome,
    Positive,
    Ratio,
    Record,
    StopReason,
    TargetRecord,
    Variance,
    WorkloadRecord,
)


class RunStarted(Record):
    """A run begins: what is tuned, with what, on what, under which options.

    Attributes:
        protections: What keeps a candidate from doing harm, each with why it is not active, empty where it is.
    """

    type: Literal["run_started"] = "run_started"
    run_id: str
    tool_version: str
    operator: str
    project: str
    source: str
    source_sha256: str
    backend: str
    flow: str
    metric_kind: MetricKind
    machine: dict[str, Any]
    toolchain: dict[str, str]
    options: dict[str, Any]
    workloads: list[WorkloadRecord]
    target: TargetRecord | None = None
    protections: dict[str, str] = Field(default_factory=dict)


class RunResumed(Record):
    """The run goes on after a stop or a crash.

    Attributes:
        options: Limits that hold from here on instead of those in force before; the rest stays.
        protections: As of `RunStarted`, from here on.
    """

    type: Literal["run_resumed"] = "run_resumed"
    tool_version: str
    options: dict[str, Any] = Field(default_factory=dict)
    protections: dict[str, str] = Field(default_factory=dict)


class GatePassed(Record):
    """The activation gate is open: the baseline is accurate on every workload."""

    type: Literal["gate_passed"] = "gate_passed"
    accuracy: list[Accuracy]


class BaselineMeasured(Record):
    """First latency of the operator as it was given, by tune workload.

    Attributes:
        noise: The baseline against itself in the same way as any candidate: what "no change" looks like here.
        work: Counted work of a call by workload: `flops`, `transcendentals`, `bytes`.
        conditions: What the machine did meanwhile.
        spread: What a fresh pair of processes alone does to a log ratio, by workload and, under "", for the aggregate.
    """

    type: Literal["baseline_measured"] = "baseline_measured"
    latency: dict[str, Latency]
    noise: Ratio | None = None
    work: dict[str, dict[str, int]] = Field(default_factory=dict)
    conditions: Conditions | None = None
    spread: dict[str, Variance] = Field(default_factory=dict)


class MachineChecked(Record):
    """The baseline was timed again, alone: how fast the machine is now.

    Attributes:
        latency: Latency of the baseline now by tune workload.
        change: Factor by which a call takes longer than at the last anchor (over 1: the machine is slower now); geometric
            mean over the workloads. The first anchor is the first latency of the baseline.
        anchored: The change is beyond noise and threshold: these latencies are the anchor from here on.
        seconds: Wall time spent by kind: `measure`.
        conditions: What the machine did meanwhile.
    """

    type: Literal["machine_checked"] = "machine_checked"
    latency: dict[str, Latency]
    change: Positive
    anchored: bool
    seconds: dict[str, float] = Field(default_factory=dict)
    conditions: Conditions | None = None


class Diagnosed(Record):
    """What binds the incumbent now. `facts` holds the numbers the findings were computed from."""

    type: Literal["diagnosed"] = "diagnosed"
    incumbent: str
    bottlenecks: list[Bottleneck]
    facts: dict[str, Any]


class StrategySkipped(Record):
    """A strategy does not apply to this source on this target, and why."""

    type: Literal["strategy_skipped"] = "strategy_skipped"
    strategy: str
    incumbent: str
    why: str


class StageEntered(Record):
    """A stage of the procedure begins.

    Attributes:
        stage: The stage.
        cycle: How often the stages that may be repeated have begun, from 1.
        rounds: Rounds that were finished before.
        why: Why it begins: what ended the stage before.
    """

    type: Literal["stage_entered"] = "stage_entered"
    stage: str
    cycle: int
    rounds: int
    why: str


class RoundStarted(Record):
    """One optimisation point is taken up. All its trials start from `incumbent`.

    Attributes:
        strategy: Row of the flow's strategy table.
        planned: Ids of the edits to try, so that a round cut short in its first moments loses none.
    """

    type: Literal["round_started"] = "round_started"
    round: int
    strategy: str
    reason: str
    incumbent: str
    documents: list[str] = Field(default_factory=list)
    planned: list[str] = Field(default_factory=list)


class TrialStarted(Record):
    """A candidate enters the gates. Its source is stored by `source`, its SHA-256."""

    type: Literal["trial_started"] = "trial_started"
    trial: int
    round: int
    strategy: str
    edit: str
    title: str
    source: str
    parent: str


class TrialFinished(Record):
    """A candidate left the gates with exactly one outcome.

    Attributes:
        ratio: Aggregate speed-up over the incumbent, when it was timed.
        ratios: Speed-up by workload.
        latency: Candidate latency by workload.
        seconds: Wall time spent by kind: `build`, `accuracy`, `measure`.
        no_effect: The generated code equals the incumbent's, so the edit cannot matter on this target.
        blocked_by: Ids of the workloads that keep it from adoption: it is credibly faster in the aggregate, and
            credibly slower on each of these.
        conditions: What the machine did while it was timed.
        spread: What fresh processes alone do to a timing here, as far as it was known after this trial; see `BaselineMeasured`.
            Empty where nothing new was learned.
    """

    type: Literal["trial_finished"] = "trial_finished"
    trial: int
    outcome: Outcome
    reason: str = ""
    ratio: Ratio | None = None
    ratios: dict[str, Ratio] = Field(default_factory=dict)
    latency: dict[str, Latency] = Field(default_factory=dict)
    accuracy: list[Accuracy] = Field(default_factory=list)
    seconds: dict[str, float] = Field(default_factory=dict)
    no_effect: bool = False
    log: str = ""
    blocked_by: list[str] = Field(default_factory=list)
    conditions: Conditions | None = None
    spread: dict[str, Variance] = Field(default_factory=dict)


class TrialPassed(Record):
    """A candidate passed every gate and is credibly faster; which of its round is adopted is not decided yet.

    Written as soon as it is known, so that a crash before the round's end loses no measurement.
    """

    type: Literal["trial_passed"] = "trial_passed"
    trial: int
    result: TrialFinished


class RoundFinished(Record):
    """A round ends: at most one of its trials was adopted and is the new incumbent."""

    type: Literal["round_finished"] = "round_finished"
    round: int
    adopted: int | None
    shown: int | None
    version: str
    incumbent: str


class Stopped(Record):
    """A stop rule holds; nothing more is tried."""

    type: Literal["stopped"] = "stopped"
    reason: StopReason
    detail: str = ""


class FinalMeasured(Record):
    """Delivered source against the baseline, measured afresh on every tune workload."""

    type: Literal["final_measured"] = "final_measured"
    source: str
    baseline: dict[str, Latency]
    final: dict[str, Latency]
    ratios: dict[str, Ratio]
    ratio: Ratio
    accuracy: list[Accuracy]
    seconds: dict[str, float] = Field(default_factory=dict)
    conditions: Conditions | None = None


class Delivered(Record):
    """The run is complete: the files it left, by name, with their SHA-256, and where its time went."""

    type: Literal["delivered"] = "delivered"
    source: str
    files: dict[str, str]
    seconds: dict[str, float]


class Noted(Record):
    """A remark for people, e.g. a workload that could not be run, a machine that changed."""

    type: Literal["noted"] = "noted"
    text: str


Event = Annotated[
    RunStarted
    | RunResumed
    | GatePassed
    | BaselineMeasured
    | MachineChecked
    | Diagnosed
    | StrategySkipped
    | StageEntered
    | RoundStarted
    | TrialStarted
    | TrialFinished
    | TrialPassed
    | RoundFinished
    | Stopped
    | FinalMeasured
    | Delivered
    | Noted,
    Field(discriminator="type"),
]


class Line(Record):
    """One line of the ledger: an event with its place in the chain.

    Attributes:
        seq: Number of the line, from 0.
        at: UTC time of writing, ISO 8601.
        prev: Hash of the line before, `""` for the first.
        event: The event.
    """

    seq: int
    at: str
    prev: str
    event: Event


LINE: TypeAdapter[Line] = TypeAdapter(Line)
