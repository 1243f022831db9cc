"""Whether what each event says can be: outcomes with their facts, figures that fit one another, times that passed.

Figures that were computed from others are computed again. Those that were measured apart from one another, such as the
latencies of a version and its speed-up, have to agree within their intervals and `ROUNDING`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from opratchet.audit.findings import Finding, shown
from opratchet.audit.replay import complaint
from opratchet.ledger.events import (
    BaselineMeasured,
    Delivered,
    FinalMeasured,
    GatePassed,
    Line,
    MachineChecked,
    TrialFinished,
    TrialPassed,
)
from opratchet.ledger.means import geometric_mean
from opratchet.ledger.state import RunState
from opratchet.ledger.words import (
    Accuracy,
    Latency,
    Outcome,
    Ratio,
    Record,
    WorkloadKind,
)
from opratchet.recheck import change

ROUNDING = 0.01
"""How far a figure may lie from the one that it is computed from, as a fraction, where one of them was rounded."""
Rule = Callable[[RunState, Any], Iterator[Finding]]


def facts(state: RunState, line: Line) -> Iterator[Finding]:
    """What is wrong with what a line says."""
    event = line.event
    yield from _durations(event)
    yield from _kinds(state, event)
    for rule in _RULES.get(type(event), ()):
        yield from rule(state, event)


class Time:
    """Follows the time of writing from line to line. A clock that was set back is worth a remark and no more."""

    def __init__(self) -> None:
        self._last: datetime | None = None

    def __call__(self, _state: RunState, line: Line) -> Iterator[Finding]:
        """What is wrong with the time of a line."""
        at = moment(line.at)
        if at is None:
            yield complaint("figures", "this is no time", "at", shown(line.at), "UTC, ISO 8601")
            return
        if self._last is not None and at < self._last:
            back = (self._last - at).total_seconds()
            text = f"the clock of the machine was set back before this line, by {back:.3g} s"
            yield Finding("figures", "ledger.jsonl", text, key="at", remark=True)
        self._last = at


def moment(text: str) -> datetime | None:
    """A time of writing; None when the text is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def _figures(what: str, key: str, found: object, expected: object) -> Finding:
    return complaint("figures", what, key, _number(found), _number(expected))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _durations(event: Record) -> Iterator[Finding]:
    for owner, prefix in ((event, ""), (getattr(event, "result", None), "result.")):
        for kind, seconds in (getattr(owner, "seconds", None) or {}).items():
            if not 0 <= seconds < math.inf:
                what = "this is no duration"
                yield _figures(what, f"{prefix}seconds.{kind}", seconds, "at least 0 s")


def _kinds(state: RunState, event: Record) -> Iterator[Finding]:
    """Every latency of a run is of one metric kind."""
    wanted = state.run.metric_kind
    for key, latency in _latencies(event):
        if latency.kind is not wanted:
            what = "this latency is of another metric kind than the run"
            yield _figures(what, f"{key}.kind", latency.kind.value, wanted.value)


def _latencies(event: Record) -> Iterator[tuple[str, Latency]]:
    for name in ("latency", "baseline", "final"):
        for workload, latency in (getattr(event, name, None) or {}).items():
            yield f"{name}.{workload}", latency
    if isinstance(event, TrialPassed):
        yield from ((f"result.{key}", latency) for key, latency in _latencies(event.result))


def _workloads(state: RunState, *kinds: WorkloadKind) -> list[str]:
    return [w.id for w in state.run.workloads if w.kind in kinds]


def _complete(state: RunState, key: str, given: Mapping[str, object]) -> Iterator[Finding]:
    """Figures by workload name each tune workload and no other."""
    wanted = _workloads(state, WorkloadKind.TUNE)
    if set(given) != set(wanted):
        what = "the workloads are not the tune workloads of the run"
        yield _figures(what, key, ", ".join(given) or "none", ", ".join(wanted))


def _accurate(state: RunState, checks: Iterable[Accuracy]) -> Iterator[Finding]:
    """Every output of every workload was compared with the golden, and passed."""
    checks = list(checks)
    for check in checks:
        if not check.passed:
            what = (
                f"{shown(check.output)} of {shown(check.workload)} did not pass the accuracy gate"
            )
            yield _figures(what, "accuracy", "failed", "passed")
    wanted = _workloads(state, WorkloadKind.TUNE, WorkloadKind.SMOKE)
    missing = [name for name in wanted if name not in {check.workload for check in checks}]
    if missing:
        what = f"the accuracy of {', '.join(missing)} was not checked"
        yield _figures(what, "accuracy", "nothing", "a comparison with the golden")


def _verdicts(
    _state: RunState, event: GatePassed | TrialFinished | FinalMeasured
) -> Iterator[Finding]:
    """An output passes when none of its elements is out of tolerance."""
    for check in event.accuracy:
        if check.passed != (check.out_of_tolerance == 0):
            what = f"{shown(check.workload)}: passed does not fit the share of elements out of tolerance"
            yield _figures(what, "accuracy", check.passed, check.out_of_tolerance == 0)


def _gate(state: RunState, event: GatePassed) -> Iterator[Finding]:
    yield from _accurate(state, event.accuracy)


def _baseline(state: RunState, event: BaselineMeasured) -> Iterator[Finding]:
    yield from _complete(state, "latency", event.latency)


def _outcome(state: RunState, event: TrialFinished) -> Iterator[Finding]:
    """A trial has the facts of its outcome: as far as it came in the gates, and no further."""
    timed = event.ratio is not None
    if event.outcome.is_judged and not event.no_effect:
        yield from _timed(state, event)
    elif timed:
        what = f"it has a speed-up and ends as {event.outcome.value}"
        yield _figures(what, "ratio", "a figure", "none")
    failed = [check for check in event.accuracy if not check.passed]
    if event.outcome is Outcome.ACCURACY_FAILED and event.accuracy and not failed:
        yield _figures("every comparison passed", "outcome", event.outcome.value, "another one")
    if event.outcome in (Outcome.COMPILE_FAILED, Outcome.PRUNED) and event.accuracy:
        what = f"its outputs were compared, and it ends as {event.outcome.value}"
        yield _figures(what, "accuracy", "comparisons", "none")
    if event.no_effect and event.outcome is not Outcome.NO_GAIN:
        yield _figures("it has no effect", "outcome", event.outcome.value, "no_gain")


def _timed(state: RunState, event: TrialFinished) -> Iterator[Finding]:
    ratio = event.ratio
    if ratio is None:
        what = f"it ends as {event.outcome.value} and was never timed"
        yield _figures(what, "ratio", "none", "a figure")
        return
    yield from _complete(state, "ratios", event.ratios)
    yield from _complete(state, "latency", event.latency)
    yield from _accurate(state, event.accuracy)
    yield from _aggregate(state, ratio, event.ratios)
    slower = [name for name, found in event.ratios.items() if found.value < 1]
    if event.outcome is Outcome.ADOPTED:
        yield from _adopted(state, event, ratio)
    if event.outcome is Outcome.REGRESSED and ratio.value >= 1 and not slower:
        yield _figures("it is called slower and is not", "ratio.value", ratio.value, "below 1")
    for name in event.blocked_by:
        if name not in slower:
            what = f"adoption is said to be blocked by {shown(name)}, on which it is not slower"
            yield _figures(what, "blocked_by", shown(name), ", ".join(slower) or "none")


def _adopted(state: RunState, event: TrialFinished, ratio: Ratio) -> Iterator[Finding]:
    """Adopted is only what is faster beyond noise and minimum effect, and slower on no workload."""
    if ratio.low <= 1:
        what = "it was adopted, and its interval reaches down to not faster"
        yield _figures(what, "ratio.low", ratio.low, "above 1")
    worth = state.options.get("minimum_effect")
    if isinstance(worth, (int, float)) and ratio.value < (1 + worth) * (1 - 1e-9):
        what = "it was adopted, and its gain is below the minimum effect"
        yield _figures(what, "ratio.value", ratio.value, f"at least {1 + worth:g}")
    for name, found in event.ratios.items():
        if found.high < 1:
            what = f"it was adopted, and it is slower on {shown(name)}"
            yield _figures(what, f"ratios.{name}.high", found.high, "at least 1")


def _aggregate(state: RunState, total: Ratio, ratios: Mapping[str, Ratio]) -> Iterator[Finding]:
    """The speed-up is the weighted geometric mean over the workloads, as far as their noise allows."""
    weights = {w.id: w.weight for w in state.run.workloads if w.id in ratios}
    if not ratios or weights.keys() != ratios.keys():
        return
    ends = [
        geometric_mean((getattr(ratios[n], end) for n in weights), weights.values())
        for end in ("low", "value", "high")
    ]
    if _apart(total, ends[0], ends[2]):
        what = "the speed-up is not the mean of those of the workloads"
        yield _figures(what, "ratio.value", total.value, ends[1])


def _apart(ratio: Ratio, low: float, high: float) -> bool:
    """Whether two intervals have no point in common, by more than rounding."""
    return ratio.high * (1 + ROUNDING) < low or high * (1 + ROUNDING) < ratio.low


def _final(state: RunState, event: FinalMeasured) -> Iterator[Finding]:
    for key in ("baseline", "final", "ratios"):
        yield from _complete(state, key, getattr(event, key))
    yield from _accurate(state, event.accuracy)
    yield from _aggregate(state, event.ratio, event.ratios)
    for name, ratio in event.ratios.items():
        before, after = event.baseline.get(name), event.final.get(name)
        if before is None or after is None:
            continue
        if _apart(ratio, before.low_us / after.high_us, before.high_us / after.low_us):
            what = "the speed-up is not that of the latencies"
            yield _figures(what, f"ratios.{name}.value", ratio.value, before.us / after.us)
    yield from _steps(state, event)


def _steps(state: RunState, event: FinalMeasured) -> Iterator[Finding]:
    """The steps multiply to what the whole gained, or to more, as a winner's first figure flatters."""
    steps = [trial for trial in state.lineage if trial.ratio is not None]
    sources = [trial.source for trial in steps]
    taken = steps[: sources.index(event.source) + 1] if event.source in sources else []
    product = math.prod(trial.ratio.value for trial in taken if trial.ratio is not None)
    low = math.prod(trial.ratio.low for trial in taken if trial.ratio is not None)
    high = math.prod(trial.ratio.high for trial in taken if trial.ratio is not None)
    if _apart(event.ratio, low, high):
        text = (
            f"the adopted steps multiply to {product:.3g}x, and measured again it is "
            f"{event.ratio.value:.3g}x: the latter is the figure to quote"
        )
        yield Finding("figures", "ledger.jsonl", text, key="ratio.value", remark=True)


def _checked(state: RunState, event: MachineChecked) -> Iterator[Finding]:
    """The machine's change is that of the latencies since the last anchor."""
    if not state.anchor:
        return
    expected = change(state.anchor, event.latency)
    if abs(event.change / expected - 1) > ROUNDING:
        yield _figures("the change is not that of the latencies", "change", event.change, expected)


def _spent(_state: RunState, event: Delivered) -> Iterator[Finding]:
    """The parts of the time that a run took are no more than the whole, and `own` is the rest."""
    total, own = event.seconds.get("total"), event.seconds.get("own")
    if total is None or own is None:
        return
    parts = sum(event.seconds.values()) - total - own
    expected = max(0.0, total - parts)
    if abs(own - expected) > ROUNDING * max(total, 1.0):
        yield _figures("the parts of the time do not add up", "seconds.own", own, expected)


def _passed(state: RunState, event: TrialPassed) -> Iterator[Finding]:
    for found in (*_verdicts(state, event.result), *_outcome(state, event.result)):
        yield complaint(found.check, found.what, f"result.{found.key}", found.found, found.expected)


_RULES: Mapping[type[Record], tuple[Rule, ...]] = {
    GatePassed: (_verdicts, _gate),
    BaselineMeasured: (_baseline,),
    MachineChecked: (_checked,),
    TrialPassed: (_passed,),
    TrialFinished: (_verdicts, _outcome),
    FinalMeasured: (_verdicts, _final),
    Delivered: (_spent,),
}
