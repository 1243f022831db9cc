"""Gates 4 to 6 for two builds whose latency a model gives: exact comparison, once.

A model gives one figure for a source, the same every time, so there is nothing to sample: the candidate is faster when its
figures say so by at least the minimum effect, and no workload is slower at all. Whether the figure is the same every time is
checked rather than believed: the checked call of a candidate has the model run once more, and at the start and the end of a run
the baseline and the delivered version are built anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from opratchet.contest import Comparison
from opratchet.errors import BadInput
from opratchet.gates import GateClosed, check_layout, check_signature, verify
from opratchet.judge.decision import Rule, Verdict
from opratchet.judge.floor import impossible
from opratchet.judge.spread import Spread
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.ledger.means import geometric_mean
from opratchet.ledger.words import Accuracy, Latency, Outcome, Ratio

CERTAIN = 1.0  # confidence of a ratio of two figures without noise


def contest(lab: Lab, incumbent: Build, candidate: Build, rule: Rule) -> Comparison:
    """Whether the candidate is faster by the model.

    Raises:
        GateClosed: the candidate is inaccurate or caught, or its model gives no figure or another one each time.
        WorkerFailed: the candidate crashed, hung or ran out of memory.
    """
    check_signature(incumbent, candidate)
    start = time.monotonic()
    accuracy = checked(lab, candidate)
    check_layout(lab.operator, candidate.text)
    seconds = {"accuracy": time.monotonic() - start, "measure": 0.0}
    figures = latencies(lab, incumbent), latencies(lab, candidate)
    return compared(lab, *figures, rule, accuracy, seconds)


def measured_against(lab: Lab, incumbent: Build, candidate: Build) -> Comparison:
    """The speed-up for a report: both built anew, and both with the same figures as before.

    Raises:
        GateClosed: the candidate is inaccurate or caught, or a figure is not found again.
        WorkerFailed: it crashed, hung or ran out of memory.
    """
    for build in (incumbent, candidate):
        require_repeatable(lab, build)
    return contest(lab, incumbent, candidate, Rule())


def learn_noise(lab: Lab, build: Build) -> tuple[Comparison, Spread]:
    """A build against itself: its latency, and that the model gives it every time.

    Raises:
        GateClosed: it does not.
        WorkerFailed: the build failed when it was made again.
    """
    require_repeatable(lab, build)
    own = latencies(lab, build)
    none = {"accuracy": 0.0, "measure": 0.0}
    return compared(lab, own, own, Rule(), [], none), Spread()


def latencies(lab: Lab, build: Build) -> dict[str, Latency]:
    """What the model gives for each tune workload.

    Raises:
        GateClosed: it gives what cannot be a latency.
    """
    return {w.id: _latency(lab, build, w.id) for w in lab.operator.tuned}


def _latency(lab: Lab, build: Build, name: str) -> Latency:
    us = _modelled(lab, build, name)
    if wrong := impossible(us, "us", f"{name}: the model's figure for a call"):
        raise GateClosed(Outcome.PROFILE_INVALID, wrong)
    return Latency(kind=lab.backend.metric_kind, us=us, low_us=us, high_us=us, samples=1)


def _modelled(lab: Lab, build: Build, name: str) -> float:
    try:
        return lab.backend.modelled_us(build.artifacts[name])
    except BadInput as error:
        raise GateClosed(Outcome.PROFILE_INVALID, f"{name}: {error.what}") from None


def checked(lab: Lab, build: Build) -> list[Accuracy]:
    """Check one interpreted call of every workload; the model ran again with each, and has to have given the same.

    Raises:
        GateClosed: a workload is wrong, or its figure is another one.
        WorkerFailed: it could not be interpreted.
    """
    with lab.interpreter(build) as interpreter:
        records = verify(lab, interpreter)
        again = dict(interpreter.modelled_us)
    for name, us in again.items():
        require_same(name, _modelled(lab, build, name), us)
    return records


def require_repeatable(lab: Lab, build: Build) -> None:
    """A second build of the same source has the same figures.

    Raises:
        GateClosed: it has others.
        WorkerFailed: it does not build any more.
    """
    again = lab.build(build.text, lab.operator.tuned)
    for name, latency in latencies(lab, again).items():
        require_same(name, _modelled(lab, build, name), latency.us)


def require_same(name: str, first: float, second: float) -> None:
    """A model gives the same figure for the same source.

    Raises:
        GateClosed: it does not.
    """
    if first != second:
        what = f"{name}: the model gave {first:.6g} us and then {second:.6g} us for the same source"
        raise GateClosed(Outcome.PROFILE_INVALID, what)


def compared(
    lab: Lab,
    theirs: Mapping[str, Latency],
    ours: Mapping[str, Latency],
    rule: Rule,
    accuracy: list[Accuracy],
    seconds: dict[str, float],
) -> Comparison:
    """The answer that the figures of two builds give."""
    speed_ups = {name: theirs[name].us / ours[name].us for name in ours}
    weights = [w.weight for w in lab.operator.tuned]
    total = geometric_mean([speed_ups[w.id] for w in lab.operator.tuned], weights)
    slower = [name for name, speed_up in speed_ups.items() if speed_up < 1.0]
    return Comparison(
        verdict=_verdict(total, slower, rule),
        ratio=_ratio(total),
        ratios={name: _ratio(speed_up) for name, speed_up in speed_ups.items()},
        slower=slower,
        incumbent=dict(theirs),
        candidate=dict(ours),
        accuracy=accuracy,
        conditions=None,
        seconds=seconds,
    )


def _verdict(total: float, slower: list[str], rule: Rule) -> Verdict:
    least = 1.0 + rule.minimum_effect
    if rule.two_sided and 1.0 / least < total < least:
        return Verdict.TIE
    if total < 1.0:
        return Verdict.SLOWER
    if total < least:
        return Verdict.TIE
    return Verdict.BLOCKED if slower else Verdict.FASTER


def _ratio(value: float) -> Ratio:
    return Ratio(value=value, low=value, high=value, pairs=1, processes=1, confidence=CERTAIN)
