"""Stop rules: whether a run has to end, and why. Pure functions of the state."""

from __future__ import annotations

import math

from opratchet.flow.model import StopRules
from opratchet.ledger.events import Stopped
from opratchet.ledger.plural import counted
from opratchet.ledger.state import RunState
from opratchet.ledger.words import StopReason, TargetRecord


def stop_rule(state: RunState, rules: StopRules, elapsed: float, asked: bool) -> Stopped | None:
    """The first stop rule that holds, or None while the run goes on.

    Args:
        state: The fold of the ledger.
        rules: The limits.
        elapsed: Seconds spent by the run so far.
        asked: Whether the user asked to stop.
    """
    if asked:
        return Stopped(reason=StopReason.USER_STOP, detail="stopped by the user")
    target = state.run.target
    if target is not None and target_reached(state, target):
        return Stopped(reason=StopReason.TARGET_REACHED, detail=describe_target(target))
    if state.rounds_without_gain >= rules.patience:
        detail = f"no gain in {counted(rules.patience, 'round')}"
        return Stopped(reason=StopReason.NO_GAIN, detail=detail)
    if len(state.finished_rounds) >= rules.max_rounds:
        return Stopped(reason=StopReason.MAX_ROUNDS, detail=counted(rules.max_rounds, "round"))
    if state.experiments >= rules.max_experiments:
        detail = counted(rules.max_experiments, "experiment")
        return Stopped(reason=StopReason.MAX_EXPERIMENTS, detail=detail)
    if rules.budget_seconds is not None and elapsed >= rules.budget_seconds:
        detail = f"{rules.budget_seconds:.0f} s spent"
        return Stopped(reason=StopReason.TIME_BUDGET, detail=detail)
    return None


def target_reached(state: RunState, target: TargetRecord) -> bool:
    """Whether the incumbent reaches the target on every workload the target speaks of.

    "Better than the baseline" (a speed-up of at least 1) never ends a run: it is the goal of every run, which goes on
    until another rule holds.
    """
    latencies = state.incumbent_latency
    if target.workload:
        latencies = {k: v for k, v in latencies.items() if k == target.workload}
    if not latencies:
        return False
    if target.metric == "latency_us":
        return all(latency.us <= target.value for latency in latencies.values())
    if target.metric == "throughput":
        return all(1e6 / latency.us >= target.value for latency in latencies.values())
    return target.value > 1.0 and total_speedup(state) >= target.value


def total_speedup(state: RunState) -> float:
    """Product of the adopted ratios: the speed-up so far, each step measured side by side."""
    return math.prod(trial.ratio.value for trial in state.lineage if trial.ratio is not None)


def describe_target(target: TargetRecord) -> str:
    """The target in words."""
    where = f" on {target.workload}" if target.workload else ""
    texts = {
        "latency_us": f"latency at most {target.value:g} us",
        "throughput": f"throughput at least {target.value:g} calls/s",
        "speedup": f"at least {target.value:g}x faster than the baseline",
    }
    return f"{texts[target.metric]}{where} ({target.source})"
