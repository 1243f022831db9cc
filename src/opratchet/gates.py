"""The gates, in their order, for every candidate: whoever proposed it, nobody can skip one.

1. one change and 2. static legality are checked on the source, before anything is spent; 3. the build, 4. accuracy on
fresh inputs before timing and on what the timed calls left, 5. integrity, 6. performance against the incumbent. The
result is a `TrialFinished` event; the first gate that is not passed decides its outcome.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median

from opratchet.edit.legality import broken_rule
from opratchet.edit.model import Situation
from opratchet.edit.onechange import ChangeRefusedError, require_kernel_only
from opratchet.edit.source import KernelSource
from opratchet.judge.accuracy import compare
from opratchet.judge.decision import LOOKS, Rule, Verdict, aggregate, interval, judge, ratio_of
from opratchet.judge.integrity import (
    changed_input,
    clocks_disagree,
    impossible_clock,
    unwritten_output,
)
from opratchet.lab.bench import Build, CheckedCall, Lab, Rig
from opratchet.lab.pairs import Pair, Timer, device_lock, pairs
from opratchet.lab.supervisor import WorkerFailed
from opratchet.ledger.events import FinalMeasured, TrialFinished
from opratchet.ledger.words import Accuracy, Latency, MetricKind, Outcome, Ratio
from opratchet.operator.model import Operator, Workload


class GateClosed(Exception):
    """A candidate did not pass a gate: its outcome, and why."""

    def __init__(self, outcome: Outcome, reason: str, accuracy: Sequence[Accuracy] = ()) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.accuracy = list(accuracy)


@dataclass
class Comparison:
    """What timing two builds against each other gave.

    Attributes:
        verdict: Answer for the candidate.
        ratio: Aggregate speed-up over the workloads (geometric mean).
        ratios: Speed-up by workload.
        incumbent: Latency of the incumbent by workload.
        candidate: Latency of the candidate by workload.
        accuracy: Comparison with the golden, of fresh calls and of timed ones.
        seconds: Wall time by kind: `accuracy`, `measure`.
    """

    verdict: Verdict
    ratio: Ratio
    ratios: dict[str, Ratio]
    incumbent: dict[str, Latency]
    candidate: dict[str, Latency]
    accuracy: list[Accuracy] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def static_gates(situation: Situation, text: str, operator: Operator) -> tuple[Outcome, str] | None:
    """Gates 1 and 2 on a candidate's source, before anything is spent: None when it may go on.

    Args:
        situation: The incumbent on its target.
        text: The candidate.
        operator: The operator; its golden, inputs and workloads must be untouched.
    """
    source = KernelSource(text, operator.kernel)
    try:
        require_kernel_only(situation.source, source, operator.golden)
    except ChangeRefusedError as refused:
        return Outcome.CHEATED, str(refused)
    rule = broken_rule(source, situation.target, situation.shapes)
    return (Outcome.PRUNED, rule) if rule else None


def check_accuracy(operator: Operator, workload: Workload, call: CheckedCall) -> list[Accuracy]:
    """Gates 4 and 5 on one call: outputs against the golden, inputs unchanged, outputs wholly written.

    Raises:
        GateClosed: `accuracy_failed` or `cheated`.
    """
    records = [
        compare(
            expected,
            seen,
            operator.tolerances[str(seen.dtype)],
            workload=workload.id,
            output=name,
        )
        for name, (expected, seen) in call.outputs.items()
    ]
    evidence = [changed_input(name, own, seen) for name, (own, seen) in call.inputs.items()]
    for text in filter(None, evidence):
        raise GateClosed(Outcome.CHEATED, f"{workload.id}: {text}", records)
    for record in records:
        if not record.passed:
            raise GateClosed(Outcome.ACCURACY_FAILED, describe(record, call), records)
    return records


def describe(record: Accuracy, call: CheckedCall) -> str:
    """Why an output fails, in one line, with its figures."""
    unwritten = unwritten_output(record.output, call.outputs[record.output][1])
    if unwritten:
        return f"{record.workload}: {unwritten}"
    return (
        f"{record.workload}: {record.output}{list(record.worst_index)} is off by {record.max_abs:.2g} "
        f"(relative {record.max_rel:.2g}, allowed {record.rtol:.0e}); "
        f"{record.out_of_tolerance:.2%} of the elements are out of tolerance"
    )


def verify(lab: Lab, rig: Rig) -> list[Accuracy]:
    """Load every workload and check one fresh call of each.

    Raises:
        GateClosed: a workload is wrong.
        WorkerFailed: a call crashed or took too long.
    """
    records: list[Accuracy] = []
    for workload in lab.operator.checked:
        rig.load(workload)
        records += check_accuracy(lab.operator, workload, rig.call(workload))
    return records


def contest(
    lab: Lab, incumbent: Build, candidate: Build, rule: Rule, *, looks: Sequence[int] = LOOKS
) -> Comparison:
    """Gates 4 to 6 for two builds side by side in fresh processes.

    Raises:
        GateClosed: the candidate is inaccurate or caught, before or in its timed calls.
        WorkerFailed: the candidate crashed, hung or ran out of memory.
    """
    start = time.monotonic()
    check_signature(incumbent, candidate)
    with lab.open(candidate) as ours, lab.open(incumbent) as theirs:
        accuracy = verify(lab, ours)
        for workload in lab.operator.tuned:
            theirs.load(workload, beside=ours)
        checked = time.monotonic()
        with device_lock(f"{lab.backend.device()}{lab.cpu}"):
            result = _time(lab.operator.tuned, theirs, ours, rule, looks)
        check_floor(lab, candidate, result.candidate)
        timed = time.monotonic()
        for workload in lab.operator.tuned:
            accuracy += check_timed(lab, workload, ours)
    result.accuracy = accuracy
    result.seconds = {
        "accuracy": checked - start + time.monotonic() - timed,
        "measure": timed - checked,
    }
    return result


def confirmed(lab: Lab, incumbent: Build, candidate: Build, rule: Rule) -> Comparison:
    """A contest; a close win is repeated in fresh processes and counts only when it is won again."""
    first = contest(lab, incumbent, candidate, rule)
    if first.verdict is not Verdict.FASTER or not rule.is_close(first.ratio):
        return first
    second = contest(lab, incumbent, candidate, rule)
    for kind, seconds in first.seconds.items():
        second.seconds[kind] += seconds
    if second.verdict is not Verdict.FASTER:
        second.verdict = Verdict.INCONCLUSIVE
    second.ratio = second.ratio.model_copy(update={"processes": 2})
    return second


def check_signature(incumbent: Build, candidate: Build) -> None:
    """Gate 5: the candidate takes and gives the same tensors.

    Raises:
        GateClosed: it does not.
    """
    for name, artifact in candidate.artifacts.items():
        if artifact.tensors != incumbent.artifacts[name].tensors:
            raise GateClosed(Outcome.CHEATED, f"{name}: the kernel's signature was changed")


def check_floor(lab: Lab, candidate: Build, latencies: Mapping[str, Latency]) -> None:
    """Gate 5: no latency is below what the machine can do.

    Raises:
        GateClosed: one is, with the arithmetic.
    """
    for workload in lab.operator.tuned:
        artifact = candidate.artifacts[workload.id]
        floor = lab.backend.floor(lab.operator, workload, artifact)
        measured = latencies[workload.id].us
        if floor is not None and measured < floor.us:
            text = (
                f"{workload.id}: {measured:.3g} us is less than physics allows: {floor.arithmetic}"
            )
            raise GateClosed(Outcome.PROFILE_INVALID, text)


def check_timed(lab: Lab, workload: Workload, rig: Rig) -> list[Accuracy]:
    """Accuracy of what the timed calls leave: one more batch into poisoned memory, then compare.

    Raises:
        GateClosed: correct before timing and wrong in it.
    """
    return check_accuracy(lab.operator, workload, rig.call(workload, batch=2))


def _time(
    workloads: Sequence[Workload], theirs: Rig, ours: Rig, rule: Rule, looks: Sequence[int]
) -> Comparison:
    """Sample until the answer is clear, the last look is reached, or the next one would take too long."""
    collected: dict[str, list[Pair]] = {w.id: [] for w in workloads}
    streams = {w.id: pairs(Timer(theirs, w), Timer(ours, w)) for w in workloads}
    start = time.monotonic()
    result: Comparison | None = None
    for look in looks:
        if result is not None and _too_long(start, collected, look):
            break
        for name, stream in streams.items():
            collected[name] += islice(stream, look - len(collected[name]))
        _check_clocks(collected, rule)
        result = summarise(collected, rule)
        if result.verdict is not Verdict.INCONCLUSIVE:
            break
    assert result is not None
    return result


def _too_long(start: float, collected: Mapping[str, Sequence[Pair]], look: int) -> bool:
    """Whether the pairs up to the next look would take a contest beyond its time."""
    taken = min(len(pairs) for pairs in collected.values())
    return (time.monotonic() - start) / taken * look > CONTEST_SECONDS


def _check_clocks(collected: Mapping[str, Sequence[Pair]], rule: Rule) -> None:
    """Gate 5: the supervisor's own clock agrees with the worker's.

    What sending messages costs is the same for both sides: what the incumbent's batches show of it is taken off.
    """
    for name, taken in collected.items():
        ours = [(p.candidate.worker_ns, p.candidate.supervisor_ns) for p in taken]
        theirs = [(p.incumbent.worker_ns, p.incumbent.supervisor_ns) for p in taken]
        messages = median(supervisor - worker for worker, supervisor in theirs)
        outside = [
            math.log(max(b - messages, a) / p.incumbent.count)
            - math.log(max(d - messages, 1.0) / p.candidate.count)
            for p, (a, b), (_c, d) in zip(taken, theirs, ours, strict=True)
        ]
        inside = [math.log(p.incumbent.ns / p.candidate.ns) for p in taken]
        evidence = impossible_clock(ours) or clocks_disagree(
            ratio_of(inside, rule.confidence), ratio_of(outside, rule.confidence)
        )
        if evidence:
            raise GateClosed(Outcome.CHEATED, f"{name}: {evidence}")


def summarise(collected: Mapping[str, Sequence[Pair]], rule: Rule) -> Comparison:
    """Ratios and latencies of the pairs so far, and the verdict on them."""
    logs = {
        name: [math.log(p.incumbent.ns / p.candidate.ns) for p in taken]
        for name, taken in collected.items()
    }
    ratios = {name: ratio_of(values, rule.confidence) for name, values in logs.items()}
    total = ratio_of(aggregate(logs), rule.confidence)
    return Comparison(
        verdict=judge(total, ratios, rule),
        ratio=total,
        ratios=ratios,
        incumbent={n: latency([p.incumbent.ns for p in taken]) for n, taken in collected.items()},
        candidate={n: latency([p.candidate.ns for p in taken]) for n, taken in collected.items()},
    )


def latency(samples_ns: Sequence[float], confidence: float = 0.95) -> Latency:
    """A measured latency from batch times in nanoseconds a call: trimmed mean of logarithms, with its interval."""
    centre, low, high = interval([math.log(ns) for ns in samples_ns], confidence)
    return Latency(
        kind=MetricKind.MEASURED,
        us=math.exp(centre) / 1e3,
        low_us=math.exp(low) / 1e3,
        high_us=math.exp(high) / 1e3,
        samples=len(samples_ns),
    )


def final_contest(lab: Lab, baseline: Build, best: Build, digest: str, rule: Rule) -> FinalMeasured:
    """The delivered source against the baseline: fresh processes, a fixed number of pairs, every output checked.

    Raises:
        GateClosed: the version is inaccurate or caught.
        WorkerFailed: it crashed, hung or ran out of memory.
    """
    result = contest(lab, baseline, best, replace(rule, trials=1), looks=(FINAL_PAIRS,))
    return FinalMeasured(
        source=digest,
        baseline=result.incumbent,
        final=result.candidate,
        ratios=result.ratios,
        ratio=result.ratio,
        accuracy=result.accuracy,
        seconds=result.seconds,
    )


FINAL_PAIRS = 300
CONTEST_SECONDS = 6.0

_OUTCOMES = {
    Verdict.FASTER: Outcome.ADOPTED,
    Verdict.SLOWER: Outcome.REGRESSED,
    Verdict.TIE: Outcome.NO_GAIN,
    Verdict.INCONCLUSIVE: Outcome.NO_GAIN,
}


def take_trial(
    lab: Lab, number: int, incumbent: Build, candidate: Build | WorkerFailed, rule: Rule
) -> TrialFinished:
    """Take one built candidate through the remaining gates; always ends in exactly one outcome.

    `adopted` means here that it may be adopted: of several in a round, the engine keeps the fastest.
    """
    if isinstance(candidate, WorkerFailed):
        return TrialFinished(
            trial=number, outcome=candidate.outcome, reason=candidate.reason, log=candidate.log
        )
    seconds = {"build": candidate.seconds}
    if candidate.code == incumbent.code:
        return TrialFinished(
            trial=number,
            outcome=Outcome.NO_GAIN,
            reason="the generated code is the same: no effect on this target",
            seconds=seconds,
            no_effect=True,
        )
    start = time.monotonic()
    try:
        result = confirmed(lab, incumbent, candidate, rule)
    except (GateClosed, WorkerFailed) as failure:
        return TrialFinished(
            trial=number,
            outcome=failure.outcome,
            reason=failure.reason,
            accuracy=failure.accuracy if isinstance(failure, GateClosed) else [],
            log=failure.log if isinstance(failure, WorkerFailed) else "",
            seconds={**seconds, "accuracy": time.monotonic() - start},
        )
    return TrialFinished(
        trial=number,
        outcome=_OUTCOMES[result.verdict],
        reason=why_not(result),
        ratio=result.ratio,
        ratios=result.ratios,
        latency=result.candidate,
        accuracy=result.accuracy,
        seconds={**seconds, **result.seconds},
    )


def why_not(result: Comparison) -> str:
    """Why a timed candidate is not faster, in a few words; empty when it is."""
    slower = [name for name, ratio in result.ratios.items() if ratio.high < 1.0]
    if result.verdict is Verdict.SLOWER and result.ratio.high >= 1.0:
        return f"slower on {', '.join(slower)}: {result.ratios[slower[0]].value:.2f}x"
    return _REASONS.get(result.verdict, "")


_REASONS = {
    Verdict.TIE: "any gain is below the minimum effect",
    Verdict.INCONCLUSIVE: "not clearly beyond the minimum effect",
}
