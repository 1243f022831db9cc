"""What a run of the PyPTO procedure leaves in MEMORY.md: target sheet, iterations, failed attempts, what each stage hands over.

The same text stands in two places. `perf_opt/MEMORY.md` is a view like any other. The operator's own MEMORY.md gets it between two
marks that carry the run's id; what stands outside of these marks is the user's, and is never touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from opratchet.ledger.events import StageEntered
from opratchet.ledger.files import atomic_write
from opratchet.ledger.rounds import Trial
from opratchet.ledger.state import RunState
from opratchet.ledger.words import Accuracy, Outcome, TargetRecord
from opratchet.operator.files import read_exact
from opratchet.report import figures, words
from opratchet.report.figures import Interval
from opratchet.report.render import render
from opratchet.report.words import Lang

BEGIN, END = "<!-- opratchet {run}: begin -->", "<!-- opratchet {run}: end -->"

_RESULT: Mapping[Lang, Mapping[Outcome, str]] = {
    "zh": {
        Outcome.ADOPTED: "性能提升",
        Outcome.NO_GAIN: "无提升",
        Outcome.REGRESSED: "性能回退",
        Outcome.ACCURACY_FAILED: "精度失败",
        Outcome.LAYOUT_FAILED: "布局检查失败",
        Outcome.TIMEOUT: "超时",
        Outcome.OUT_OF_MEMORY: "内存不足",
        Outcome.COMPILE_FAILED: "编译失败",
        Outcome.CRASHED: "运行错误",
        Outcome.CHEATED: "作弊",
        Outcome.PROFILE_INVALID: "采集无效",
        Outcome.PRUNED: "静态剪除",
    },
    "en": {outcome: outcome.value.replace("_", " ") for outcome in Outcome},
}
_NO_FAILURE = (Outcome.PRUNED, Outcome.NO_GAIN, Outcome.REGRESSED, Outcome.ADOPTED)


@dataclass(frozen=True)
class Iteration:
    """One line of the iteration table, in upstream's columns."""

    number: int
    cycle: int
    stage: str
    row: str
    title: str
    accuracy: list[Accuracy]
    us: float | None
    change: float | None
    result: str
    status: str


@dataclass(frozen=True)
class HandOver:
    """What a stage hands over.

    Attributes:
        stage: The stage, with its cycle from the second on.
        why: What ended the stage before.
        before: Latency when it began.
        after: Latency when it ended, or now.
        tried: Trials in it.
        adopted: What it adopted.
        failed: Edits that failed in it.
    """

    stage: str
    why: str
    before: Interval | None
    after: Interval | None
    tried: int
    adopted: Sequence[Trial]
    failed: Sequence[Trial]


def memory(state: RunState, lang: Lang, _folder: PurePath) -> str:
    """The text, without the marks. Figures that do not exist yet are dashes."""
    base = figures.average(state, state.baseline)
    return render(
        "memory.md",
        lang,
        {
            "run": state.run,
            "origin": words.origin(state.run, lang),
            "base": base,
            "baseline": state.baseline,
            "target": words.target(state.run.target, lang),
            "target_us": _target_us(state.run.target, base),
            "required": _required(state.run.target, base),
            "notes": state.notes,
            "iterations": list(_iterations(state, lang)),
            "failed": [t for t in state.trials.values() if _failed(t)],
            "stages": list(hand_overs(state)),
            "results": _RESULT[lang],
            "now": figures.average(state, state.incumbent_latency),
            "adopted": state.lineage,
            "outcomes": [(_RESULT[lang][o], n) for o, n in state.outcomes.most_common()],
            "ratio": state.final.ratio if state.final is not None else None,
            "stop_reason": words.stop_reason(state, lang),
            "experiments": state.experiments,
            "skipped": sorted({(s, why) for (_incumbent, s), why in state.skipped.items()}),
        },
    )


def _failed(trial: Trial) -> bool:
    """Whether there is no use in trying it again: one that another trial of its round only surpassed may come back."""
    surpassed = trial.ratio is not None and trial.ratio.low > 1.0
    return trial.outcome not in (None, Outcome.ADOPTED) and not surpassed


def _target_us(target: TargetRecord | None, base: Interval | None) -> float | None:
    """The target as a latency; None where there is none."""
    if target is None or base is None:
        return None
    if target.metric == "latency_us":
        return target.value
    if target.metric == "throughput":
        return 1e6 / target.value
    return base.us / target.value


def _required(target: TargetRecord | None, base: Interval | None) -> float | None:
    """Factor over the baseline: baseline / target."""
    wanted = _target_us(target, base)
    return base.us / wanted if base is not None and wanted else None


def _stage_of(state: RunState, number: int) -> StageEntered | None:
    """The stage that a round belongs to."""
    return next((s for s in reversed(state.stages) if s.rounds < number), None)


def _iterations(state: RunState, lang: Lang) -> Iterator[Iteration]:
    before = figures.average(state, state.baseline)
    by_source = {trial.source: trial for trial in state.trials.values()}
    for trial in state.trials.values():
        parent = by_source.get(trial.parent)
        then = figures.average(state, parent.latency) if parent else before
        now = figures.average(state, trial.latency)
        stage = _stage_of(state, trial.round)
        yield Iteration(
            number=trial.number,
            cycle=stage.cycle if stage else 1,
            stage=stage.stage.upper() if stage else "-",
            row=state.rounds[trial.round].strategy,
            title=trial.title,
            accuracy=trial.accuracy,
            us=now.us if now else None,
            change=100 * (now.us / then.us - 1) if now and then else None,
            result=_RESULT[lang][trial.outcome] if trial.outcome else words.UNFINISHED[lang],
            status=words.outcome(trial.outcome, lang),
        )


def hand_overs(state: RunState) -> Iterator[HandOver]:
    """What each stage hands over, in order."""
    ends = [*(s.rounds for s in state.stages[1:]), len(state.rounds)]
    before = figures.average(state, state.baseline)
    for stage, end in zip(state.stages, ends, strict=False):  # before the first stage there is none
        own = [t for t in state.trials.values() if stage.rounds < t.round <= end]
        adopted = [t for t in own if t.outcome is Outcome.ADOPTED]
        after = figures.average(state, adopted[-1].latency) if adopted else before
        yield HandOver(
            stage=stage.stage.upper() + (f" ({stage.cycle})" if stage.cycle > 1 else ""),
            why=stage.why,
            before=before,
            after=after,
            tried=len(own),
            adopted=adopted,
            failed=[t for t in own if t.outcome is not None and t.outcome not in _NO_FAILURE],
        )
        before = after


def remember(path: Path, state: RunState, lang: Lang) -> None:
    """Put what a run has to tell into the operator's own MEMORY.md.

    Raises:
        OpratchetError: the file cannot be written.
        BadInput: it is not UTF-8.
    """
    text = read_exact(path) if path.exists() else ""
    after = merged(text, state.run.run_id, memory(state, lang, path.parent))
    if after != text:
        atomic_write(path, after)


def merged(text: str, run_id: str, block: str) -> str:
    """A MEMORY.md with a run's block in it: in the place of that run's earlier block, else at the end.

    Args:
        text: The file as it is.
        run_id: The run.
        block: Its text.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    begin, end = (mark.format(run=run_id) for mark in (BEGIN, END))
    whole = newline.join([begin, *block.strip("\n").split("\n"), end])
    first = text.find(begin)
    last = text.find(end, first)
    if first >= 0 and last >= 0:
        return text[:first] + whole + text[last + len(end) :]
    gap = "" if not text else newline if text.endswith(("\n", "\r\n")) else 2 * newline
    return text + gap + whole + newline
