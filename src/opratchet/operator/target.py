"""The performance target: how fast is fast enough.

It is taken from the first of these that states one: the command line, the manifest's `[target]`, the section
`性能目标` of `DESIGN.md`, of `SPEC.md`, of the docstring of `design.py`. Without any the goal is "better than the
baseline, until a stop rule holds", and the target is None.

In a document a target is one line or one table row, in Chinese or English: `目标延迟: 240 us`, `latency <= 0.24 ms`,
`吞吐 >= 1000 /s`, `加速比 1.5x`, `优于基线`. Prose around it is left alone; a line that has the form of a target
but no usable figure is an error, not a line to skip.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.ledger.words import TargetRecord
from opratchet.operator.files import read_text
from opratchet.operator.manifest import ManifestFile
from opratchet.operator.problems import advice
from opratchet.operator.python_source import read_python

DOCUMENTS = ("DESIGN.md", "SPEC.md", "design.py")


@dataclass(frozen=True)
class Metric:
    """How one kind of target is written.

    Attributes:
        name: Name in `TargetRecord`.
        words: Pattern of the words that announce it.
        units: Factor to microseconds, calls a second or a plain factor, by unit.
        wrong: Signs that would turn the target round.
        example: How to write it.
    """

    name: str
    words: str
    units: Mapping[str, float]
    wrong: tuple[str, ...]
    example: str


_HEADING = re.compile(r"\s*(#{1,6})\s+(.*)")
_TITLE = re.compile(
    r"[\d.、§\s]*(?:性能目标|performance (?:target|goal|budget)s?\b)", re.IGNORECASE
)
_FENCE = re.compile(r"\s*(?:```|~~~)")
_BETTER = re.compile(r"优于\s*(?:基线|baseline)|(?:better|faster) than (?:the )?baseline")
_OVER_BASELINE = r"(?:相对|相比|比|较|over|vs\.?|than)\s*于?\s*(?:the )?(?:基线|baseline)"
_OTHER_FIGURE = re.compile(r"基线|当前|现有|实测|理论|baseline|current|measured|theoretical")
_NUMBER = re.compile(r"([-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([^\s,;。|()]*)")
_AT_MOST = ("<", "≤", "不超过", "不大于", "不高于", "小于", "低于", "at most", "below", "under")
_AT_LEAST = (">", "≥", "不低于", "不小于", "大于", "高于", "至少", "at least", "above", "over")
_SIGN = re.compile("|".join(sorted((*_AT_MOST, *_AT_LEAST), key=len, reverse=True)))
# Between the word and the figure: further words of a label, a unit in brackets, then a sign.
_LABEL = re.compile(
    r"(?P<label>(?:[\s_]|目标|上限|下限|预算|要求|控制在|应|需|须|为|target|goal|budget|should be|is"
    rf"|{_OVER_BASELINE}|(?:[n\u03bcum]s)\b|\([^)]*\))*)"
    rf"(?P<sign>(?:[:=\s]|{_SIGN.pattern})*)"
)


METRICS = (
    Metric(
        "latency_us",
        "延迟|时延|耗时|latency|duration",
        {
            "ns": 1e-3, "纳秒": 1e-3, "us": 1.0, "\u03bcs": 1.0, "微秒": 1.0,
            "ms": 1e3, "毫秒": 1e3, "s": 1e6, "秒": 1e6,
        },
        _AT_LEAST,
        "目标延迟: 240 us",
    ),
    Metric(
        "throughput",
        "吞吐量|吞吐率|吞吐|throughput|qps",
        dict.fromkeys(
            ("/s", "次/s", "次/秒", "/秒", "calls/s", "ops/s", "op/s", "qps", "次每秒", "hz"), 1.0
        ),
        _AT_MOST,
        "吞吐: 1000 /s",
    ),
    Metric(
        "speedup",
        "加速比|加速|提速|speed-?up",
        dict.fromkeys(("", "x", "×", "倍"), 1.0),
        _AT_MOST,
        "加速比: 1.5x",
    ),
)  # fmt: skip


def choose_target(
    root: Path,
    manifest: ManifestFile,
    options: Mapping[str, float | None],
    workloads: Collection[str],
) -> TargetRecord | None:
    """The performance target, from the first place that states one.

    Args:
        root: Folder of the operator.
        manifest: Its manifest.
        options: Figure by metric, from the command line.
        workloads: Ids of the tune workloads.

    Raises:
        BadInput: a target is not a positive number, two contradict each other, or one names an unknown workload.
    """
    target = from_options(options) or _from_manifest(manifest)
    if target is not None and target.workload and target.workload not in workloads:
        raise BadInput(
            f"the target speaks of `{target.workload}`, which is no tune workload",
            where=manifest.where("target", "workload"),
            fix=advice(target.workload, workloads),
        )
    documents = (root / name for name in DOCUMENTS if (root / name).is_file())
    return target or next(
        (found for path in documents if (found := from_document(path, workloads))), None
    )


def from_options(options: Mapping[str, float | None]) -> TargetRecord | None:
    """The target of the command line.

    Raises:
        BadInput: it is not a positive number, or there are several.
    """
    given = {metric: figure for metric, figure in options.items() if figure is not None}
    if len(given) > 1:
        raise BadInput(
            f"several targets are given: {', '.join(given)}",
            where="command line",
            fix="Keep one of --target-us, --target-throughput, --target-speedup.",
        )
    for metric, figure in given.items():
        if not (math.isfinite(figure) and figure > 0):
            raise BadInput(
                f"the target {metric} is not a positive number: {figure}",
                where="command line",
                fix="Give a number above zero, e.g. --target-us 240.",
            )
        return TargetRecord(metric=metric, value=float(figure), source="command line")
    return None


def _from_manifest(manifest: ManifestFile) -> TargetRecord | None:
    section = manifest.data.target
    if section is None:
        return None
    [(metric, figure)] = section.figures().items()
    source = manifest.at("target", metric)
    return TargetRecord(metric=metric, value=figure, source=source, workload=section.workload or "")


# --- documents ----------------------------------------------------------------------------------------------


def from_document(path: Path, workloads: Collection[str] = ()) -> TargetRecord | None:
    """The target that a document states in its section on performance; None when it states none.

    Raises:
        BadInput: a line has the form of a target without a usable figure, or two lines disagree.
    """
    section = list(_section(_lines(path)))
    found: list[TargetRecord] = []
    for line, text in _statements(section):
        target = _target(text, f"{path}:{line}", f"{path.name}:{line}", workloads)
        if target is not None and not any(_same(target, other) for other in found):
            found.append(target)
    if len(found) > 1:
        raise BadInput(
            f"two targets are stated, here and at {found[0].source}",
            where=f"{path.parent / found[1].source}",
            fix="Keep one, or give the one that counts on the command line, e.g. --target-us 240.",
        )
    return found[0] if found else _better_than_baseline(path, section)


def _same(one: TargetRecord, other: TargetRecord) -> bool:
    return one.model_copy(update={"source": other.source}) == other


def _lines(path: Path) -> list[str]:
    """Lines of a document; of a Python file only those of its docstring, the others blank."""
    text = re.sub(r"<!--.*?-->", _blank, read_text(path), flags=re.DOTALL)
    lines = text.splitlines()
    if path.suffix != ".py":
        return lines
    body = read_python(path).tree.body
    first, last = (body[0].lineno, body[0].end_lineno or 0) if body else (1, 0)
    return [line if first <= at <= last else "" for at, line in enumerate(lines, start=1)]


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _section(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines of the first section whose heading names the target, without its headings."""
    depth, fenced = 0, False
    for number, line in enumerate(lines, start=1):
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.match(line)
        if heading and depth and len(heading.group(1)) <= depth:
            return
        if heading and not depth and _TITLE.match(heading.group(2)):
            depth = len(heading.group(1))
        elif depth and not heading:
            yield number, line


def _statements(section: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Each line as a statement; a row of a table as `heading: cell` and as `first cell: cell`."""
    heading: list[str] = []
    for number, line in section:
        plain = _normal(line)
        cells = [cell.strip() for cell in plain.strip().strip("|").split("|")]
        if "|" not in plain:
            heading = []
            yield number, plain
        elif not heading:
            heading = cells
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            yield from ((number, text) for text in _row(heading, cells))


def _row(heading: list[str], cells: list[str]) -> Iterator[str]:
    """A column called 目标 (target), where there is one, is the only one that counts."""
    goals = [at for at, title in enumerate(heading) if at and re.search("目标|target|goal", title)]
    for at in goals or range(1, len(heading)):
        if at < len(cells):
            yield f"{cells[0]} {heading[at]}: {cells[at]}"


def _normal(line: str) -> str:
    """Full-width signs and digits as plain ones, lower case, without emphasis."""
    plain = unicodedata.normalize("NFKC", line).lower()
    return re.sub(r"[*`]", "", plain)


def _target(text: str, where: str, source: str, workloads: Collection[str]) -> TargetRecord | None:
    for metric in METRICS:
        word = re.search(metric.words, text)
        if word is None or _OTHER_FIGURE.search(re.sub(_OVER_BASELINE, "", text[: word.start()])):
            continue
        label = _LABEL.match(text, word.end())
        rest = text[label.end() :] if label else ""
        if label is None or not (label["sign"].strip() or rest[:1].isdigit()):
            continue  # prose that only mentions the word
        if _BETTER.search(rest) and not _NUMBER.match(rest):
            continue
        figure = _figure(metric, label, rest, where)
        named = [one for one in workloads if one.lower() in re.split(r"[\s:|,()]+", text)]
        return TargetRecord(
            metric=metric.name, value=figure, source=source, workload="".join(named[:1])
        )
    return None


def _figure(metric: Metric, label: re.Match[str], rest: str, where: str) -> float:
    """The figure of a statement in the metric's unit.

    Raises:
        BadInput: there is no positive number, its unit is unknown or missing, or the sign is the wrong way round.
    """
    fix = f"Write it like `{metric.example}`."
    number = _NUMBER.match(rest)
    if number is None:
        said = rest.strip() or "nothing"
        raise BadInput(f"the target is not a number: {said}", where=where, fix=fix)
    unit = _unit(metric, number.group(2), label["label"])
    if unit not in metric.units:
        what = f"the unit `{unit}` is unknown" if unit else "the target has no unit"
        raise BadInput(f"{what}: {rest.strip()}", where=where, fix=fix)
    if set(_SIGN.findall(label["sign"])) & set(metric.wrong):
        raise BadInput(
            f"the sign of the target is the wrong way round: {rest.strip()}", where=where, fix=fix
        )
    figure = float(number.group(1).replace(",", "")) * metric.units[unit]
    if not (math.isfinite(figure) and figure > 0):
        raise BadInput(f"the target is not a positive number: {rest.strip()}", where=where, fix=fix)
    return figure


def _unit(metric: Metric, after: str, label: str) -> str:
    """The unit after the figure, with Chinese words cut off that follow without a space; else that of the label."""
    for unit in sorted(filter(None, metric.units), key=len, reverse=True):
        if re.match(rf"{re.escape(unit)}(?![a-z0-9/%μ])", after):
            return unit
    return after or re.sub(r"[\s_():=<>≤≥]|目标|target", "", label)


def _better_than_baseline(path: Path, section: list[tuple[int, str]]) -> TargetRecord | None:
    for number, line in section:
        if _BETTER.search(_normal(line)):
            return TargetRecord(metric="speedup", value=1.0, source=f"{path.name}:{number}")
    return None
