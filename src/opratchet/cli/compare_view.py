"""How a comparison is shown: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from opratchet.cli.inspect import print_json
from opratchet.cli.view import microseconds, ratio_text
from opratchet.compare import Answer, Figure
from opratchet.judge.decision import Verdict
from opratchet.ledger.plural import counted
from opratchet.ledger.remarks import remarks

FAILED_EXIT = 1


def show(answer: Answer, *, as_json: bool) -> None:
    """The answer on stdout."""
    if as_json:
        print_json(answer.record())
    else:
        print("\n".join(lines(answer)))


def exit_code(answer: Answer, fail_if: Sequence[str]) -> int:
    """0, or 1 when the verdict is one that the user wants to fail on."""
    return FAILED_EXIT if answer.verdict.value in fail_if else 0


HEADLINES = {
    Verdict.FASTER: "B is faster",
    Verdict.SLOWER: "B is slower",
    Verdict.TIE: "tie",
    Verdict.INCONCLUSIVE: "inconclusive",
}


def lines(answer: Answer) -> list[str]:
    """The answer for people, the verdict first."""
    found = [headline(answer)]
    for workload in answer.by_workload:
        times = f"{shown(workload.a, answer.unit)} -> {shown(workload.b, answer.unit)}"
        found.append(f"  {workload.id}   {times}   {ratio_text(workload.ratio)}")
    for name, side in (("A", answer.a), ("B", answer.b)):
        alone = not answer.by_workload and side.figure is not None
        figure = f"   {shown(side.figure, answer.unit)}" if alone and side.figure else ""
        found.append(f"  {name}{figure}   {side.what}")
    if answer.noise is not None:
        found.append(f"  noise   A against itself {ratio_text(answer.noise)}")
    if answer.conditions is not None:
        found += [f"  note   {remark}" for remark in remarks(answer.conditions)]
    return found


def headline(answer: Answer) -> str:
    """The verdict in one line."""
    parts = [f"{HEADLINES[answer.verdict]}: "]
    ratio = answer.ratio
    if ratio is not None:
        pairs = counted(ratio.pairs, "pair")
        where = f"in {counted(ratio.processes, 'pair')} of processes" if answer.noise else "of runs"
        parts.append(f"{ratio_text(ratio)}, {answer.metric_kind.value}, {pairs} {where}")
    if answer.reason:
        parts.append(f"; {answer.reason}" if ratio is not None else answer.reason)
    return "".join(parts)


def shown(figure: Figure, unit: str) -> str:
    """A figure with its interval."""
    if unit == "us":
        value = microseconds(figure.value)
        if figure.value >= 1e5:
            return f"{value} [{figure.low / 1e3:.1f}, {figure.high / 1e3:.1f}]"
        return f"{value} [{figure.low:.1f}, {figure.high:.1f}]"
    return f"{figure.value:.4g} {unit}".rstrip() + f" [{figure.low:.4g}, {figure.high:.4g}]"
