"""The words of the design as types: metric kinds, outcomes, stop reasons and the figures that carry them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator


class MetricKind(str, Enum):
    """Where a latency comes from. Kinds are never compared with one another or mixed."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    ESTIMATED = "estimated"


class Outcome(str, Enum):
    """How a trial ended. A trial ends in exactly one of these."""

    ADOPTED = "adopted"
    NO_GAIN = "no_gain"
    REGRESSED = "regressed"
    ACCURACY_FAILED = "accuracy_failed"
    LAYOUT_FAILED = "layout_failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    COMPILE_FAILED = "compile_failed"
    CRASHED = "crashed"
    CHEATED = "cheated"
    PROFILE_INVALID = "profile_invalid"
    PRUNED = "pruned"

    @property
    def is_judged(self) -> bool:
        """True when the trial reached the performance gate and was compared with the incumbent."""
        return self in (Outcome.ADOPTED, Outcome.NO_GAIN, Outcome.REGRESSED)


class StopReason(str, Enum):
    """Why a run ended."""

    TARGET_REACHED = "target_reached"
    MAX_ROUNDS = "max_rounds"
    NO_GAIN = "no_gain"
    MAX_EXPERIMENTS = "max_experiments"
    TIME_BUDGET = "time_budget"
    NOTHING_LEFT = "nothing_left"
    USER_STOP = "user_stop"


class WorkloadKind(str, Enum):
    """`tune` decides, `smoke` is checked for accuracy only, `skipped` carries its reason."""

    TUNE = "tune"
    SMOKE = "smoke"
    SKIPPED = "skipped"


class Record(BaseModel):
    """Base of everything that is written to the ledger: frozen, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


# What a figure that enters a statistic has to be: a number and no text or bool, finite, over zero.
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]


def require_order(low: float, centre: float, high: float) -> None:
    """The ends of an interval lie around its centre, or upon it.

    Raises:
        ValueError: they do not.
    """
    if not low <= centre <= high:
        raise ValueError(f"{centre} does not lie within [{low}, {high}]")


class Latency(Record):
    """One latency with what it takes to believe it. It cannot hold an impossible one: zero, negative, not finite.

    Attributes:
        kind: Metric kind.
        us: Central value in microseconds a call.
        low_us: Lower end of the interval, microseconds.
        high_us: Upper end of the interval, microseconds.
        samples: Number of timed batches behind it.
    """

    kind: MetricKind
    us: Positive
    low_us: Positive
    high_us: Positive
    samples: Count

    @model_validator(mode="after")
    def _ordered(self) -> Latency:
        require_order(self.low_us, self.us, self.high_us)
        return self

    def scaled(self, factor: float) -> Latency:
        """The same latency where a call takes `factor` times as long."""
        ends = ("us", "low_us", "high_us")
        return self.model_copy(update={end: getattr(self, end) * factor for end in ends})


class Ratio(Record):
    """Speed-up of a candidate over its reference (over 1 is faster), with its confidence interval.

    Like a latency it is finite and over zero, at both ends too: an end that is not known is a very small or a very
    large figure.

    Attributes:
        value: Central ratio, reference time over candidate time.
        low: Lower end of the interval.
        high: Upper end of the interval.
        pairs: Interleaved pairs behind it.
        processes: Fresh process pairs behind it.
        confidence: Two-sided confidence of the interval, e.g. 0.999.
    """

    value: Positive
    low: Positive
    high: Positive
    pairs: Count
    processes: Count = 1
    confidence: float

    @model_validator(mode="after")
    def _ordered(self) -> Ratio:
        require_order(self.low, self.value, self.high)
        return self


class Conditions(Record):
    """What the machine did while something was timed. None where the system does not tell.

    Attributes:
        cpu: Number of the CPU that the measurement was meant for.
        cpus: CPUs online.
        seconds: Wall time that was watched.
        pinned: Whether every worker was bound to that CPU.
        steal: Share of that CPU's time that the hypervisor gave to others, 0 to 1.
        load: Load average of the last minute at the end, in runnable tasks of the whole machine. The tool's own work is in
            it: one task while timing, more while building.
        mhz_before: Frequency of that CPU at the start, MHz.
        mhz_after: Frequency of that CPU at the end, MHz.
        throttled: Times that the CPU was slowed down because of its temperature.
        preempted: Times that a worker had to leave the CPU to something else (involuntary context switches of the main
            threads, all workers together).
        migrations: Times that a worker was moved to another CPU, all workers together. Where only the CPU of the start and
            of the end are told, each worker counts at most once.
    """

    cpu: int | None = None
    cpus: int | None = None
    seconds: float | None = None
    pinned: bool | None = None
    steal: float | None = None
    load: float | None = None
    mhz_before: float | None = None
    mhz_after: float | None = None
    throttled: int | None = None
    preempted: int | None = None
    migrations: int | None = None


class Variance(Record):
    """A pooled variance.

    Attributes:
        excess: Sum of weights times variance; it can be below zero by chance.
        freedom: Sum of the weights: degrees of freedom, fewer where a comparison was noisier than most.
        doubt: Sum of weights times the square of the whole variance, that of the samples included: what the error of the
            pooled variance comes from.
    """

    excess: float
    freedom: float
    doubt: float


class Accuracy(Record):
    """Comparison of one output with the golden.

    Attributes:
        workload: Workload id.
        output: Name of the output tensor.
        passed: Whether every element is within `atol + rtol * |expected|`.
        max_abs: Largest absolute error; `inf` when a value is NaN or infinite where the golden is not.
        max_rel: Largest relative error over elements whose golden is not zero.
        worst_index: Index of the worst element.
        out_of_tolerance: Share of elements out of tolerance, 0 to 1.
        rtol: Relative tolerance used.
        atol: Absolute tolerance used.
    """

    workload: str
    output: str
    passed: bool
    max_abs: float
    max_rel: float
    worst_index: tuple[int, ...]
    out_of_tolerance: float
    rtol: float
    atol: float


class WorkloadRecord(Record):
    """A workload as it stood when the run began.

    Attributes:
        id: Name, unique within the operator.
        shape: Shape parameters by name.
        dtype: Element type.
        params: Further arguments of the kernel factory and the golden.
        kind: `tune`, `smoke` or `skipped`.
        reason: Why it is skipped; empty otherwise.
        weight: How much it counts in averages over the tune workloads; only the proportions matter.
        tensors: Shape of each input by name, where the workload says these instead of shape parameters.
    """

    id: str
    shape: dict[str, int]
    dtype: str
    params: dict[str, Any] = Field(default_factory=dict)
    kind: WorkloadKind
    reason: str = ""
    weight: Positive = 1.0
    tensors: dict[str, list[int]] = Field(default_factory=dict)


class TargetRecord(Record):
    """The performance target of a run.

    Attributes:
        metric: `latency_us` (at most), `throughput` (at least, calls a second) or `speedup` (at least).
        value: The figure; for "better than the baseline" it is `speedup` with the value 1.
        source: Where it was read: command line, manifest key or file and line.
        workload: Workload it speaks of; empty means each tune workload.
    """

    metric: str
    value: float
    source: str
    workload: str = ""


class Bottleneck(Record):
    """One finding of the diagnosis: its name, how strongly the evidence points at it (0 to 1), and the evidence."""

    name: str
    score: float
    evidence: str
