"""The performance budget of a SPEC.md: free text upstream, so it is read only where it cannot be misread.

One figure with a unit of time (`35 us`, `0.035 ms`) or one factor (`2x`, `首跑成功性能的 2 倍`) is a budget. A text with
no figure, with several, with a range, or with a sign that turns the meaning round stays a text, with a note that says
why: a target that was guessed would end a run at the wrong moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from opratchet.operator.markdown import Line, plain
from opratchet.operator.target import METRICS, Metric

Kind = Literal["device", "simulated", ""]

_LABEL = r"(?:性能目标|性能预算|performance[ _](?:budget|target|goal)|perf[ _](?:budget|target))"
_STATEMENT = re.compile(
    rf"\s*(?:[-+#>]+\s+|\d+[.)、]\s*|\|\s*)*{_LABEL}\s*(?P<sign>[:|])\s*(?P<said>[^|]*[^|\s])",
    re.IGNORECASE,
)
_SIMULATED = re.compile(r"simulat|仿真|模拟器|cost[ _-]?model|成本模型|代价模型", re.IGNORECASE)
_DEVICE = re.compile(r"device|npu|hardware|上板|真机|硬件|实机", re.IGNORECASE)
# No digit, sign or letter may stand directly before a figure: `1/2 倍`, `30-35 us` and `v2 x` are none.
_FIGURE = r"(?<![a-z0-9_.,/+\-])(?P<figure>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?)"
_TO = r"\s*(?:[-~–—到至]|to)\s*"
_RANGE_BEFORE, _RANGE_AFTER = re.compile(rf"\d[a-zμ]*{_TO}$"), re.compile(rf"{_TO}\d")
_NOT_TARGET = re.compile(r"基线|当前|现有|实测|baseline|current|measured")
_RISE = re.compile(
    r"(?:提升|提高|增加|增长|快)了?\s*$"
)  # "up by 2 倍" may mean twice or three times
_AFTER = {"latency_us": ("以上", "及以上", "or more"), "speedup": ("以下", "以内", "or less")}
_LATENCY, _SPEEDUP = (
    next(metric for metric in METRICS if metric.name == name) for name in ("latency_us", "speedup")
)


@dataclass(frozen=True)
class Budget:
    """What a SPEC.md says about performance.

    Attributes:
        value: The figure: microseconds at most, or the least factor over the first version; None when unreadable.
        metric: `latency_us` or `speedup`; empty when unreadable.
        kind: What a latency was written for: `device` unless the text says simulated. A factor holds for whatever is
            measured, so its kind is empty unless the text names one.
        text: The words, as they stand there.
        line: Line in the file.
        note: What a reader should know: why it is no figure, or that another line says otherwise.
    """

    value: float | None
    metric: Literal["latency_us", "speedup", ""]
    kind: Kind
    text: str
    line: int
    note: str = ""


def stated_budgets(lines: Sequence[Line]) -> Iterator[tuple[str, int]]:
    """What the lines of a document say as `性能目标: 35 us`, `| performance budget | 35 us |` and the like, with line."""
    for line in lines:
        found = None if line.is_yaml else _STATEMENT.match(plain(line.text))
        if found and (found["sign"] == ":" or re.search(r"\d", found["said"])):
            yield found["said"], line.number


def read_budget(stated: Sequence[tuple[str, int]]) -> Budget | None:
    """The budget among statements in order of rank; None when there are none.

    The first that can be read counts. One that can be read and says otherwise is told in the note.
    """
    budgets = [_budget(text, line) for text, line in stated]
    readable = [budget for budget in budgets if budget.value is not None]
    if not readable:
        return budgets[0] if budgets else None
    first = readable[0]
    other = next((budget for budget in readable if not _same(budget, first)), None)
    if other is None:
        return first
    return replace(first, note=f"line {other.line} says otherwise: `{other.text}`")


def _same(one: Budget, other: Budget) -> bool:
    return (one.value, one.metric, one.kind) == (other.value, other.metric, other.kind)


def _budget(text: str, line: int) -> Budget:
    said = plain(text).lower()
    found = [
        (metric, match)
        for metric in (_LATENCY, _SPEEDUP)
        for match in _pattern(metric).finditer(said)
    ]
    if len(found) != 1:
        note = (
            f"it holds {len(found)} figures with a unit"
            if found
            else "it holds no figure with a unit"
        )
        return Budget(None, "", "", text, line, note)
    metric, match = found[0]
    figure = float(match["figure"].replace(",", "")) * metric.units[match["unit"]]
    note = _doubt(metric, said, match, figure)
    if note:
        return Budget(None, "", "", text, line, note)
    if metric is _LATENCY:
        return Budget(
            figure, "latency_us", "simulated" if _SIMULATED.search(said) else "device", text, line
        )
    return Budget(figure, "speedup", _named_kind(said), text, line)


def _pattern(metric: Metric) -> re.Pattern[str]:
    units = "|".join(
        re.escape(unit) for unit in sorted(filter(None, metric.units), key=len, reverse=True)
    )
    return re.compile(rf"{_FIGURE}\s*(?P<unit>{units})(?![a-z0-9/%])(?!\s*\d)")


def _doubt(metric: Metric, said: str, match: re.Match[str], figure: float) -> str:
    """Why the figure cannot be taken as it stands; empty when it can."""
    before, after = said[: match.start()].rstrip(" =:"), said[match.end() :].lstrip()
    if _RANGE_BEFORE.search(before) or _RANGE_AFTER.match(after):
        return "it is a range"
    if metric is _LATENCY and _NOT_TARGET.search(before):
        return "it is not clear that the figure is the target"
    if before.endswith(metric.wrong) or after.startswith(_AFTER[metric.name]):
        return "the sign of the figure is the wrong way round"
    if not (math.isfinite(figure) and figure > 0):
        return "the figure is not a positive number"
    if metric is _SPEEDUP and (figure <= 1 or re.search(_LATENCY.words, said)):
        return "it is not clear that the factor is a speedup over the first version"
    if metric is _SPEEDUP and _RISE.search(before):
        return "`by` how much is not clear: write `2x` for twice as fast"
    return ""


def _named_kind(said: str) -> Kind:
    if _SIMULATED.search(said):
        return "simulated"
    return "device" if _DEVICE.search(said) else ""
