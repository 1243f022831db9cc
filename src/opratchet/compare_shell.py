"""`opratchet compare --shell`: which of two commands is faster, by their wall time or by a time that they print.

A time that a clock took is judged by `opratchet.judge.turns`. A figure of a cost model (`simulated`, `estimated`) has no noise: each
command runs twice, has to give the same figure both times, and the two figures are compared as they are.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, replace

from opratchet.compare import Answer, Figure, Side, Tell, below, rule_for
from opratchet.errors import BadInput
from opratchet.judge.decision import Decision, Verdict
from opratchet.judge.robust import trimmed
from opratchet.judge.turns import LOOKS, PAIRS_A_TURN, judge_turns, looks_until
from opratchet.lab.latency import CONFIDENCE
from opratchet.lab.pairs import device_lock
from opratchet.lab.shell import Command, Pairing, Reading
from opratchet.ledger.plural import counted
from opratchet.ledger.words import MetricKind, Ratio


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes:
        minimum_effect: Smallest difference worth telling, as a fraction.
        pairs: Pairs of runs at most.
        seconds: Wall time at most.
        warmup: Runs of each before any counts.
    """

    minimum_effect: float = 0.01
    pairs: int = PAIRS_A_TURN * LOOKS[-1]
    seconds: float = 60.0
    warmup: int = 1


def compare_commands(
    a: str, b: str, reading: Reading, kind: MetricKind, plan: Plan, tell: Tell
) -> Answer:
    """Compare two shell commands.

    Args:
        a: The reference.
        b: What is compared with it.
        reading: How a run gives its time.
        kind: What that time is.
        plan: How much is run.
        tell: Told what is being done.

    Raises:
        BadInput: a run failed or gave no time, a figure of a model is not reproducible, or so slow commands cannot be judged
            in the seconds there are.
    """
    start = time.monotonic()
    pairing = Pairing(Command("A", a), Command("B", b), reading)
    if kind is not MetricKind.MEASURED:
        answer = exact(pairing, kind, plan.minimum_effect)
    else:
        with device_lock(f"cpu{device(reading.cpu)}"):
            answer = timed(pairing, plan, tell)
    return replace(answer, seconds=time.monotonic() - start)


def device(cpu: int | None) -> int:
    """The CPU whose lock is held: the one that runs are bound to, else the one that every other timing here uses."""
    return max(os.sched_getaffinity(0)) if cpu is None else cpu


def exact(pairing: Pairing, kind: MetricKind, minimum_effect: float) -> Answer:
    """Compare two figures without noise.

    Raises:
        BadInput: one is not reproducible, or a run failed.
    """
    a, b = (reproducible(pairing, command) for command in (pairing.a, pairing.b))
    ratio = a / b
    if abs(math.log(a) - math.log(b)) < math.log1p(minimum_effect):
        verdict, reason = Verdict.TIE, below(minimum_effect) if a != b else "the figures are equal"
    else:
        verdict, reason = (Verdict.FASTER if b < a else Verdict.SLOWER), ""
    return Answer(
        verdict=verdict,
        metric_kind=kind,
        unit=pairing.reading.unit,
        a=Side(pairing.a.text, Figure(a, a, a, 1)),
        b=Side(pairing.b.text, Figure(b, b, b, 1)),
        seconds=0.0,
        ratio=Ratio(value=ratio, low=ratio, high=ratio, pairs=1, processes=1, confidence=1.0),
        reason=reason,
    )


def reproducible(pairing: Pairing, command: Command) -> float:
    """A figure that a second run repeats.

    Raises:
        BadInput: it does not, or a run failed.
    """
    first, again = pairing.figure(command), pairing.figure(command)
    if first == again:
        return first
    raise BadInput(
        f"`{command.text}` gave {first:.9g} and then {again:.9g}: the figure is not reproducible",
        where=command.name,
        fix="A cost model gives the same figure every time. For what a clock took, leave out --metric-kind.",
    )


def timed(pairing: Pairing, plan: Plan, tell: Tell) -> Answer:
    """Time two commands in turns until the answer is clear.

    Raises:
        BadInput: a run failed, or the time cannot suffice.
    """
    until = time.monotonic() + plan.seconds
    pairing.warm_up(plan.warmup)
    if plan.warmup:
        require_time(PAIRS_A_TURN * pairing.seconds / plan.warmup, until, plan, tell)
    rule = rule_for(plan.minimum_effect)
    found = judge_turns(pairing.turns(until), rule, looks_until(plan.pairs // PAIRS_A_TURN))
    return Answer(
        verdict=(found and found.verdict) or Verdict.INCONCLUSIVE,
        metric_kind=MetricKind.MEASURED,
        unit=pairing.reading.unit,
        a=Side(pairing.a.text, figure(pairing.times["A"])),
        b=Side(pairing.b.text, figure(pairing.times["B"])),
        seconds=0.0,
        ratio=found.ratio if found else None,
        reason=_reason(found, pairing, plan),
    )


def require_time(turn: float, until: float, plan: Plan, tell: Tell) -> None:
    """Say how long it will take, from what the warm-up took.

    Args:
        turn: Seconds of a turn.
        until: When time is up, by the monotonic clock.
        plan: How much is run.
        tell: Told so.

    Raises:
        BadInput: the fewest turns that can be judged would take longer than there is.
    """
    fewest, left = LOOKS[0] * turn, until - time.monotonic()
    runs = 2 * PAIRS_A_TURN * LOOKS[0]
    if fewest > left:
        needed = math.ceil(1.2 * (fewest + plan.seconds - left))
        raise BadInput(
            f"the fewest runs that can be judged ({runs}) take about {fewest:.3g} s, and {max(left, 0.0):.3g} s are left",
            where="--seconds",
            fix=f"Give it --seconds {needed} or more.",
        )
    most = min(left, plan.pairs / PAIRS_A_TURN * turn)
    tell(f"{runs} runs at least, about {fewest:.2g} s; {max(most, fewest):.2g} s at most")


def figure(times: list[float]) -> Figure | None:
    """The centre of some times with its 95 % interval; None where they are too few."""
    if len(times) < PAIRS_A_TURN * LOOKS[0]:
        return None
    centre = trimmed([math.log(value) for value in times])
    low, high = centre.interval(CONFIDENCE)
    return Figure(math.exp(centre.value), math.exp(low), math.exp(high), len(times))


def _reason(found: Decision | None, pairing: Pairing, plan: Plan) -> str:
    if found is None:
        done = counted(len(pairing.times["A"]), "pair")
        fewest = PAIRS_A_TURN * LOOKS[0]
        return f"only {done} in {plan.seconds:g} s, and the fewest that can be judged are {fewest}: give it more --seconds"
    if found.verdict is Verdict.TIE:
        return below(plan.minimum_effect)
    if found.verdict is Verdict.INCONCLUSIVE:
        limit = "pairs" if found.ratio.pairs + 1 >= plan.pairs else "seconds"
        return f"no difference could be told from noise within the {limit} there were"
    return ""
