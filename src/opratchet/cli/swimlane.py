"""How the analysis of a swimlane is shown: time and rates first, then what takes the time, then what to mind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table

from opratchet.ledger.plural import counted
from opratchet.profile.swimlane.analysis import analyse
from opratchet.profile.swimlane.dependencies import CriticalPath
from opratchet.profile.swimlane.result import Analysis
from opratchet.profile.swimlane.timeline import Cores

STEPS_SHOWN = 12
STATUS = {True: "full", False: "not full", None: "unknown"}
RATES = {"core_utilisation": "core utilisation", "bubble": "bubble", "load_balance": "load balance"}


def show(
    folder: Path,
    as_json: bool,
    *,
    cores: Cores | None = None,
    cycles_per_us: float | None = None,
    outer_loops: int | None = None,
) -> None:
    """Analyse what a run of PyPTO left in a folder, and print it.

    Args:
        folder: The folder of the run.
        as_json: One JSON object instead of tables.
        cores: Cores of the chip, where the files do not tell them.
        cycles_per_us: Ticks of the counter in a microsecond, where the files do not tell it.
        outer_loops: Trip count of the outer loops, for the merge guide.

    Raises:
        BadInput: as `analyse`.
    """
    found = analyse(folder, cores=cores, cycles_per_us=cycles_per_us, outer_loops=outer_loops)
    if as_json:
        from opratchet.cli.inspect import print_json

        print_json(found.record())
        return
    console = Console(highlight=False, markup=False)
    for part in report(found):
        console.print(part, soft_wrap=isinstance(part, str))


def report(found: Analysis) -> Iterator[RenderableType]:
    """The analysis for people, part by part."""
    yield from _head(found)
    yield _rates(found)
    yield _kinds(found)
    if found.subgraphs:
        yield _subgraphs(found)
    if found.critical_path is not None:
        yield _path(found.critical_path)
    if found.merge_guide:
        yield _guide(found)
    for note in found.notes:
        yield f"note      {note}"


def _head(found: Analysis) -> Iterator[str]:
    clock = f"   {found.cycles_per_us:g} cycles/us" if found.cycles_per_us else ""
    yield f"swimlane  {found.folder}   {found.metric_kind.value}{clock}"
    yield f"read      {', '.join(found.files)}"
    yield (
        f"time      {found.execution_us:.2f} us from first to last task on a core"
        f"   ({found.upstream_execution_us:.2f} us as upstream counts)"
    )
    path = found.critical_path
    if path is not None:
        yield f"path      {path.us:.2f} us, {path.share:.0%} of the time: no order of these tasks is faster"
    gap = found.bottleneck_gap
    if gap is not None:
        yield f"gap       {gap:.0%} between the subgraph with the largest total and the next"
    if found.pipes:
        yield "pipes     " + ", ".join(f"{pipe} {share:.1%}" for pipe, share in found.pipes.items())


def _rates(found: Analysis) -> Table:
    table = _table("rates", "", "upstream", "honest")
    for name, words in RATES.items():
        table.add_row(
            words, f"{getattr(found.upstream, name):.1%}", f"{getattr(found.honest, name):.1%}"
        )
    return table


def _kinds(found: Analysis) -> Table:
    table = _table("cores", "type", "used", "tasks", "busy us", "utilisation", "bubble", "balance")
    for use in found.kinds:
        rates = use.rates
        table.add_row(
            use.kind,
            f"{use.used}/{use.cores}",
            str(use.tasks),
            f"{use.busy_us:.1f}",
            f"{rates.core_utilisation:.1%}",
            f"{rates.bubble:.1%}",
            f"{rates.load_balance:.1%}" if use.tasks else "-",
        )
    return table


def _subgraphs(found: Analysis) -> Table:
    table = _table("subgraphs", "psgId", "type", "tasks", "cores", "mean us", "total us", "status")
    for row in found.subgraphs:
        table.add_row(
            "?" if row.psg is None else str(row.psg),
            row.kind,
            str(row.tasks),
            f"{row.used}/{'?' if row.theoretical is None else row.theoretical}",
            f"{row.mean_us:.2f}",
            f"{row.total_us:.2f}",
            STATUS[row.full],
        )
    return table


def _path(path: CriticalPath) -> Table:
    """The longest steps of the critical path, in their order."""
    longest = sorted(path.steps, key=lambda step: -step.us)[:STEPS_SHOWN]
    hidden = len(path.steps) - len(longest)
    rest = f", the {STEPS_SHOWN} longest of them" if hidden else ""
    title = f"critical path: {counted(len(path.steps), 'task')}{rest}"
    table = _table(title, "task", "core", "psgId", "start us", "us")
    for step in sorted(longest, key=lambda step: step.start_us):
        psg = "?" if step.psg is None else str(step.psg)
        table.add_row(step.task, step.core, psg, f"{step.start_us:.2f}", f"{step.us:.2f}")
    return table


def _guide(found: Analysis) -> Table:
    table = _table(
        "merge guide", "setting", "hashOrder", "count", "per iteration", "tasks", "mean us"
    )
    for row in found.merge_guide:
        table.add_row(
            row.setting,
            row.hash_order,
            str(row.sub_graph_count),
            f"{row.per_iteration:.1f}",
            str(row.tasks),
            f"{row.mean_us:.2f}",
        )
    return table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
