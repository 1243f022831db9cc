"""`compare`: its options. Heavy modules load inside the command."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from opratchet.cli.sandbox import SandboxOption, Wanted, chosen


class Answered(str, Enum):
    """The verdicts."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    INCONCLUSIVE = "inconclusive"


class Unit(str, Enum):
    """Units of a time."""

    US = "us"
    MS = "ms"
    S = "s"


class Kind(str, Enum):
    """Metric kinds."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    ESTIMATED = "estimated"


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The reference: a path, or a command.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What is compared with it.")],
    shell: Annotated[
        bool, typer.Option("--shell", help="A and B are shell commands, each run a fresh process.")
    ] = False,
    fail_if: Annotated[
        list[Answered] | None,
        typer.Option(help="Exit with 1 when this is the verdict; may be given several times."),
    ] = None,
    minimum_effect: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Smallest difference worth telling, e.g. 0.01.")
    ] = 0.01,
    backend: Annotated[str | None, typer.Option(help="Backend; `doctor` lists them.")] = None,
    sandbox: SandboxOption = Wanted.AUTO,
    regex: Annotated[
        str | None,
        typer.Option(help="--shell: read the time that the command prints, by the first group."),
    ] = None,
    json_key: Annotated[
        str | None,
        typer.Option(
            help="--shell: read it from the last JSON object on stdout, e.g. result.0.us."
        ),
    ] = None,
    unit: Annotated[
        Unit | None, typer.Option(help="--shell: unit of the time (wall time: us).")
    ] = None,
    metric_kind: Annotated[
        Kind | None,
        typer.Option(help="--shell: what the printed time is (measured); others are exact."),
    ] = None,
    pairs_max: Annotated[
        int | None, typer.Option(min=12, help="--shell: pairs of runs at most (384).")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="--shell: seconds at most (60).")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="--shell: seconds that one run may take (300).")
    ] = None,
    warmup: Annotated[
        int | None, typer.Option(min=0, help="--shell: runs of each that do not count (1).")
    ] = None,
    cpu: Annotated[
        int | None, typer.Option(min=0, help="--shell: CPU to bind the runs to (they are free).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, the rest on stderr.")
    ] = False,
) -> None:
    """Say whether B is faster than A: two versions of an operator, or two shell commands. Writes nothing.

    The exit code is 0 whatever the verdict; --fail-if slower makes it 1 when B is slower.
    """
    from opratchet.cli.compare_view import exit_code, show
    from opratchet.cli.comparison import ShellOptions, compare_operators, compare_shell
    from opratchet.operator.discover import Overrides

    options = ShellOptions(
        regex=regex,
        json_key=json_key,
        unit=unit.value if unit else None,
        metric_kind=metric_kind.value if metric_kind else None,
        pairs_max=pairs_max,
        seconds=seconds,
        timeout=timeout,
        warmup=warmup,
        cpu=cpu,
    )
    overrides = Overrides(backend=backend)
    if shell:
        answer = compare_shell(a, b, overrides, minimum_effect, options)
    else:
        box = chosen(sandbox)
        answer = compare_operators(Path(a), Path(b), overrides, minimum_effect, options, box)
    show(answer, as_json=as_json)
    raise typer.Exit(exit_code(answer, [one.value for one in fail_if or []]))
