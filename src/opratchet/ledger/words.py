"""The words of the design as types: metric kinds, outcomes, stop reasons and the figures that carry them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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


class Latency(Record):
    """One latency with what it takes to believe it.

    Attributes:
        kind: Metric kind.
        us: Central value in microseconds a call.
        low_us: Lower end of the interval, microseconds.
        high_us: Upper end of the interval, microseconds.
        samples: Number of timed batches behind it.
    """

    kind: MetricKind
    us: float
    low_us: float
    high_us: float
    samples: int


class Ratio(Record):
    """Speed-up of a candidate over its reference (over 1 is faster), with its confidence interval.

    Attributes:
        value: Central ratio, reference time over candidate time.
        low: Lower end of the interval.
        high: Upper end of the interval.
        pairs: Interleaved pairs behind it.
        processes: Fresh process pairs behind it.
        confidence: Two-sided confidence of the interval, e.g. 0.999.
    """

    value: float
    low: float
    high: float
    pairs: int
    processes: int = 1
    confidence: float


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
    """A workload as it stood when the run began."""

    id: str
    shape: dict[str, int]
    dtype: str
    params: dict[str, Any] = Field(default_factory=dict)
    kind: WorkloadKind
    reason: str = ""


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
