"""`opratchet compare`: the judge of a run as a tool of its own, for two versions of an operator.

B is to A what a candidate is to the incumbent, except that it may differ in anything, and that it matters as much whether it is
slower as whether it is faster. A's operator gives golden, inputs, workloads and tolerances; both versions are checked
against its golden first, as a comparison with wrong results is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opratchet.comparing import contest, learn_noise
from opratchet.contest import Comparison
from opratchet.errors import BadInput
from opratchet.gates import GateClosed, check_signature, verify
from opratchet.judge.decision import Rule, Verdict
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.means import geometric_mean
from opratchet.ledger.words import Conditions, Latency, MetricKind, Ratio

# Chance to call two versions different, either way, that are not.
ERROR = 0.01
SAME_CODE = "the generated code is the same"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Version:
    """One of the two: its name `A` or `B`, its file, and the text of it."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True)
class Figure:
    """A latency or time with its 95 % interval, in the unit of its answer, and the number of timings behind it."""

    value: float
    low: float
    high: float
    samples: int

    def record(self) -> dict[str, Any]:
        """As it stands in the JSON."""
        return {"value": self.value, "interval": [self.low, self.high], "samples": self.samples}


@dataclass(frozen=True)
class Side:
    """One of the two: what it is (a path, a command), and its figure where it was timed."""

    what: str
    figure: Figure | None = None

    def record(self) -> dict[str, Any]:
        """As it stands in the JSON."""
        empty = {"value": None, "interval": None, "samples": 0}
        return {"what": self.what, **(self.figure.record() if self.figure else empty)}


@dataclass(frozen=True)
class WorkloadAnswer:
    """What one workload gave."""

    id: str
    ratio: Ratio
    a: Figure
    b: Figure


@dataclass(frozen=True)
class Answer:
    """How B compares with A.

    Attributes:
        verdict: `faster`, `slower`, `tie` or `inconclusive`; never `blocked`.
        metric_kind: Kind of the figures.
        unit: Unit of the figures; empty when nobody named it.
        a: The reference.
        b: What is compared with it.
        seconds: Wall time of the whole comparison.
        ratio: Speed-up of B over A, over 1 is faster; None where nothing was timed.
        reason: What else there is to say; empty when the figures say all.
        by_workload: Each tune workload; empty for commands.
        blocked_by: Workloads on which B is slower, where that is what keeps the verdict from being clear.
        noise: A against itself.
        conditions: What the machine did besides.
    """

    verdict: Verdict
    metric_kind: MetricKind
    unit: str
    a: Side
    b: Side
    seconds: float
    ratio: Ratio | None = None
    reason: str = ""
    by_workload: Sequence[WorkloadAnswer] = ()
    blocked_by: Sequence[str] = ()
    noise: Ratio | None = None
    conditions: Conditions | None = None

    def record(self) -> dict[str, Any]:
        """As it is printed by `--json`."""
        return {
            "verdict": self.verdict.value,
            **ratio_record(self.ratio),
            "metric_kind": self.metric_kind.value,
            "unit": self.unit or None,
            "a": self.a.record(),
            "b": self.b.record(),
            "by_workload": [
                {"id": w.id, **ratio_record(w.ratio), "a": w.a.record(), "b": w.b.record()}
                for w in self.by_workload
            ],
            "reason": self.reason,
            "blocked_by": list(self.blocked_by),
            "noise": ratio_record(self.noise) if self.noise else None,
            "conditions": self.conditions.model_dump(mode="json") if self.conditions else None,
            "seconds": self.seconds,
        }


def ratio_record(ratio: Ratio | None) -> dict[str, Any]:
    """A ratio as it stands in the JSON; all of it null where there is none."""
    if ratio is None:
        empty = dict.fromkeys(("ratio", "interval", "confidence"))
        return {**empty, "pairs": 0, "processes": 0}
    return {
        "ratio": ratio.value,
        "interval": [ratio.low, ratio.high],
        "confidence": ratio.confidence,
        "pairs": ratio.pairs,
        "processes": ratio.processes,
    }


def rule_for(minimum_effect: float) -> Rule:
    """The rule of one comparison: both sides count alike, and it goes on while it may find a difference worth telling."""
    return Rule(
        minimum_effect=minimum_effect,
        run_error=ERROR / 2,
        trials=1,
        worthwhile=minimum_effect,
        two_sided=True,
    )


def compare_files(lab: Lab, a: Version, b: Version, minimum_effect: float, tell: Tell) -> Answer:
    """Compare two versions of the lab's operator.

    Args:
        lab: Where they run; its operator gives golden, inputs, workloads and tolerances.
        a: The reference.
        b: What is compared with it.
        minimum_effect: Smallest difference worth telling, as a fraction.
        tell: Told what is being done.

    Raises:
        BadInput: one of them does not build, is inaccurate, or is caught; it says which.
    """
    start = time.monotonic()
    tell("building both")
    builds = built(lab, a), built(lab, b)
    require_accurate(lab, a, builds[0])
    if builds[0].code == builds[1].code:
        return _answer(lab, a, b, Verdict.TIE, start, reason=SAME_CODE)
    with blamed(b):
        check_signature(*builds)
    require_accurate(lab, b, builds[1])
    tell("measuring A against itself")
    with blamed(a):
        noise, spread = learn_noise(lab, builds[0])
    tell("measuring B against A")
    with blamed(b):
        result = contest(lab, *builds, rule_for(minimum_effect), spread)
    verdict, reason, blocked_by = word(result, minimum_effect)
    weights = {w.id: w.weight for w in lab.operator.tuned}
    return _answer(
        lab,
        a,
        b,
        verdict,
        start,
        figures=(_overall(result.incumbent, weights), _overall(result.candidate, weights)),
        ratio=result.ratio,
        reason=reason,
        by_workload=_by_workload(result),
        blocked_by=blocked_by,
        noise=noise.ratio,
        conditions=result.conditions,
    )


def _answer(
    lab: Lab,
    a: Version,
    b: Version,
    verdict: Verdict,
    start: float,
    figures: tuple[Figure | None, Figure | None] = (None, None),
    **known: Any,
) -> Answer:
    return Answer(
        verdict=verdict,
        metric_kind=lab.backend.metric_kind,
        unit="us",
        a=Side(str(a.path), figures[0]),
        b=Side(str(b.path), figures[1]),
        seconds=time.monotonic() - start,
        **known,
    )


def built(lab: Lab, version: Version) -> Build:
    """A version, built for every workload.

    Raises:
        BadInput: it does not build.
    """
    with blamed(version):
        return lab.build(version.text, lab.operator.checked)


def require_accurate(lab: Lab, version: Version, build: Build) -> None:
    """Check a version against the golden on every workload.

    Raises:
        BadInput: it is inaccurate, or crashes.
    """
    with blamed(version), lab.caller(build) as rig:
        verify(lab, rig)


@contextmanager
def blamed(version: Version) -> Iterator[None]:
    """What goes wrong inside is this version's fault.

    Raises:
        BadInput: something did.
    """
    try:
        yield
    except (GateClosed, WorkerFailed) as failure:
        outcome = failure.outcome.value.replace("_", " ")
        raise BadInput(
            f"{version.name} cannot be compared: {outcome}: {failure.reason}",
            where=str(version.path),
            fix=f"A comparison with wrong results is none: mend {version.name} first.",
        ) from None


def word(result: Comparison, minimum_effect: float) -> tuple[Verdict, str, list[str]]:
    """The verdict on B in one of the four words, what else there is to say, and the workloads that block a clear one."""
    if result.verdict is Verdict.BLOCKED:
        return (
            Verdict.INCONCLUSIVE,
            f"faster over all workloads, but {_on(result)}",
            _slower(result),
        )
    if result.verdict is Verdict.SLOWER and result.ratio.high >= 1.0:
        what = f"{_on(result)}, but not credibly over all workloads"
        return Verdict.INCONCLUSIVE, what, _slower(result)
    if result.verdict is Verdict.TIE:
        return Verdict.TIE, below(minimum_effect), []
    if result.verdict is Verdict.INCONCLUSIVE:
        return (
            Verdict.INCONCLUSIVE,
            "no difference could be told from noise in the time there is",
            [],
        )
    return result.verdict, "", []


def below(minimum_effect: float) -> str:
    """Why it is a tie."""
    return f"any difference is below the minimum effect of {100 * minimum_effect:g} %"


def _slower(result: Comparison) -> list[str]:
    return list(result.slower)


def _on(result: Comparison) -> str:
    named = ", ".join(f"{name} ({result.ratios[name].value:.2f}x)" for name in result.slower)
    return f"slower on {named}"


def _by_workload(result: Comparison) -> list[WorkloadAnswer]:
    return [
        WorkloadAnswer(n, ratio, _figure(result.incumbent[n]), _figure(result.candidate[n]))
        for n, ratio in result.ratios.items()
    ]


def _figure(latency: Latency) -> Figure:
    return Figure(latency.us, latency.low_us, latency.high_us, latency.samples)


def _overall(latencies: Mapping[str, Latency], weights: Mapping[str, float]) -> Figure:
    """Weighted geometric mean over the workloads, of the ends of their intervals too."""

    def mean(end: str) -> float:
        values = [getattr(latency, end) for latency in latencies.values()]
        return geometric_mean(values, [weights[name] for name in latencies])

    samples = sum(latency.samples for latency in latencies.values())
    return Figure(mean("us"), mean("low_us"), mean("high_us"), samples)
