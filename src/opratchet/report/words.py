"""Words for people in each language: outcomes, stop reasons and metric kinds, and the sentence that heads every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from opratchet.ledger.events import RunStarted
from opratchet.ledger.rounds import Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.words import MetricKind, Outcome, StopReason, TargetRecord
from opratchet.report import figures, text

Lang = Literal["zh", "en"]

OUTCOME: Mapping[Lang, Mapping[Outcome, str]] = {
    "zh": {
        Outcome.ADOPTED: "采纳",
        Outcome.NO_GAIN: "回滚：无提升",
        Outcome.REGRESSED: "回滚：变慢",
        Outcome.ACCURACY_FAILED: "丢弃：精度失败",
        Outcome.LAYOUT_FAILED: "丢弃：布局检查失败",
        Outcome.TIMEOUT: "丢弃：超时",
        Outcome.OUT_OF_MEMORY: "丢弃：内存不足",
        Outcome.COMPILE_FAILED: "丢弃：编译失败",
        Outcome.CRASHED: "丢弃：运行崩溃",
        Outcome.CHEATED: "丢弃：作弊",
        Outcome.PROFILE_INVALID: "丢弃：测量无效",
        Outcome.PRUNED: "剪除：静态规则不允许",
    },
    "en": {
        Outcome.ADOPTED: "adopted",
        Outcome.NO_GAIN: "rolled back: no gain",
        Outcome.REGRESSED: "rolled back: slower",
        Outcome.ACCURACY_FAILED: "discarded: accuracy failed",
        Outcome.LAYOUT_FAILED: "discarded: layout check failed",
        Outcome.TIMEOUT: "discarded: timeout",
        Outcome.OUT_OF_MEMORY: "discarded: out of memory",
        Outcome.COMPILE_FAILED: "discarded: compile failed",
        Outcome.CRASHED: "discarded: crashed",
        Outcome.CHEATED: "discarded: cheated",
        Outcome.PROFILE_INVALID: "discarded: measurement invalid",
        Outcome.PRUNED: "pruned: a static rule forbids it",
    },
}

UNFINISHED: Mapping[Lang, str] = {"zh": "未完成", "en": "unfinished"}
NO_CANDIDATE: Mapping[Lang, str] = {"zh": "无候选", "en": "no candidate"}

STOP: Mapping[Lang, Mapping[StopReason, str]] = {
    "zh": {
        StopReason.TARGET_REACHED: "达目标",
        StopReason.MAX_ROUNDS: "迭代上限",
        StopReason.NO_GAIN: "连续无提升",
        StopReason.MAX_EXPERIMENTS: "预算用尽",
        StopReason.TIME_BUDGET: "预算用尽",
        StopReason.NOTHING_LEFT: "无可尝试策略",
        StopReason.USER_STOP: "用户叫停",
    },
    "en": {
        StopReason.TARGET_REACHED: "target reached",
        StopReason.MAX_ROUNDS: "round limit",
        StopReason.NO_GAIN: "no gain in consecutive rounds",
        StopReason.MAX_EXPERIMENTS: "budget used up",
        StopReason.TIME_BUDGET: "budget used up",
        StopReason.NOTHING_LEFT: "no strategy left to try",
        StopReason.USER_STOP: "stopped by the user",
    },
}

METRIC: Mapping[Lang, Mapping[MetricKind, str]] = {
    "zh": {
        MetricKind.MEASURED: "measured（硬件上实测）",
        MetricKind.SIMULATED: "simulated（代价模型仿真，不是实测）",
        MetricKind.ESTIMATED: "estimated（静态模型估算，不是实测）",
    },
    "en": {
        MetricKind.MEASURED: "measured (a clock on hardware)",
        MetricKind.SIMULATED: "simulated (a cost model, not a measurement)",
        MetricKind.ESTIMATED: "estimated (a static model, not a measurement)",
    },
}

BLOCKED: Mapping[Lang, str] = {
    "zh": "整体变快，但合并受阻于 {losses}",
    "en": "faster over all workloads, but the merge is blocked by {losses}",
}

_MACHINE: Mapping[Lang, str] = {
    "zh": "一次调用的时间先后为开始时的 {factors} 倍；变化前后的 latency 不可比，成对测得的加速比不受影响",
    "en": "a call took {factors} times as long as when the run began; latencies before and after are not comparable, "
    "speed-ups, which are timed in pairs, are",
}
_PROTECTED: Mapping[Lang, str] = {
    "zh": "候选隔离: 生效 {active} 项；未生效: {missing}",
    "en": "isolation of candidates: {active} protections active; not active: {missing}",
}
_WITHOUT: Mapping[Lang, str] = {"zh": "无", "en": "none"}
_THEN: Mapping[Lang, str] = {"zh": "、", "en": ", then "}
_NOT_NPU: Mapping[Lang, str] = {"zh": "；不是 NPU 上的数据", "en": "; not an NPU"}
_ORIGIN: Mapping[Lang, str] = {
    "zh": "每个数字: {kind}，后端 {backend}，机器: {machine}{note}",
    "en": "Every figure: {kind}, backend {backend}, machine: {machine}{note}",
}
_NO_TARGET: Mapping[Lang, str] = {"zh": "优于 baseline", "en": "better than the baseline"}
_TARGET: Mapping[str, str] = {
    "latency_us": "latency ≤ {value:g} us",
    "throughput": "throughput ≥ {value:g}/s",
    "speedup": "speedup ≥ {value:g}x",
}


def origin(run: RunStarted, lang: Lang) -> str:
    """Where every figure of a page comes from: metric kind, backend and machine.

    `run.machine` is named by its `label`, else by `model` and `mhz`. Unless its `device` is `npu` the sentence says
    that the figures are not an NPU's, so that no reader can take them for that.
    """
    return _ORIGIN[lang].format(
        kind=METRIC[lang][run.metric_kind],
        backend=run.backend,
        machine=_machine(run.machine),
        note="" if run.machine.get("device") == "npu" else _NOT_NPU[lang],
    )


def _machine(machine: Mapping[str, Any]) -> str:
    if "label" in machine:
        return text.one_line(str(machine["label"]))
    model = text.one_line(str(machine.get("model", text.NONE)))
    return f"{model}, {machine['mhz'] / 1000:.1f} GHz" if machine.get("mhz") else model


def target(record: TargetRecord | None, lang: Lang) -> str:
    """The goal of the run with its source, e.g. `latency ≤ 40 us (DESIGN.md:12)`."""
    if record is None:
        return _NO_TARGET[lang]
    goal = _TARGET.get(record.metric, record.metric + " {value:g}").format(value=record.value)
    place = f"{record.workload} " if record.workload else ""
    return f"{place}{goal} ({record.source})"


def outcome(value: Outcome | None, lang: Lang) -> str:
    """How a trial ended; None is a trial that has not."""
    return UNFINISHED[lang] if value is None else OUTCOME[lang][value]


def trial_reason(trial: Trial, lang: Lang) -> str:
    """Why a trial ended as it did, and which workloads blocked it with the figures of each."""
    ratios = trial.ratios
    losses = [f"{name} {text.speedup(ratios.get(name))}" for name in trial.blocked_by]
    blocked = BLOCKED[lang].format(losses=", ".join(losses)) if losses else ""
    return "; ".join(filter(None, (trial.reason, blocked)))


def weights(state: RunState) -> str:
    """The weights of the tune workloads, `small 3, large 1`; empty when each is 1."""
    given = figures.tune_workloads(state)
    if all(weight == 1 for weight in given.values()):
        return ""
    return ", ".join(f"{name} {weight:g}" for name, weight in given.items())


def machine_changes(state: RunState, lang: Lang) -> str:
    """How the machine's speed changed while the run measured; empty when it did not."""
    factors = [f"{factor:.2f}" for factor in figures.machine_changes(state)]
    return _MACHINE[lang].format(factors=_THEN[lang].join(factors)) if factors else ""


def protections(state: RunState, lang: Lang) -> str:
    """What kept candidates from doing harm and what did not, with the reason; empty where that was not recorded."""
    if not state.protections:
        return ""
    missing: dict[str, list[str]] = {}
    for name, why in state.protections.items():
        missing.setdefault(why, []).append(name)
    active = len(missing.pop("", []))
    told = [f"{', '.join(names)} ({text.one_line(why)})" for why, names in missing.items()]
    return _PROTECTED[lang].format(active=active, missing="; ".join(told) or _WITHOUT[lang])


def stop_reason(state: RunState, lang: Lang) -> str:
    """Why the run ended, in the seed's words."""
    return UNFINISHED[lang] if state.stop is None else STOP[lang][state.stop.reason]
