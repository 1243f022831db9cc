"""What `compare` does with what was typed: finds the two versions, reads the options of `--shell`, calls the judge."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from opratchet.cli.interrupt import kill_workers
from opratchet.cli.operators import load
from opratchet.cli.tune import require_backend
from opratchet.compare import Answer, Version, compare_files
from opratchet.compare_shell import Plan, compare_commands
from opratchet.errors import BadInput
from opratchet.lab.bench import Lab
from opratchet.lab.printed import Reader, by_json_key, by_regex
from opratchet.lab.sandbox import Sandbox
from opratchet.lab.shell import Reading
from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, read_lines
from opratchet.ledger.words import MetricKind
from opratchet.operator.discover import Overrides
from opratchet.operator.locate import locate
from opratchet.operator.manifest import MANIFEST_NAME
from opratchet.operator.model import Operator
from opratchet.operator.problems import advice
from opratchet.operator.python_source import read_python


@dataclass(frozen=True)
class ShellOptions:
    """What only `--shell` takes; None: not given."""

    regex: str | None = None
    json_key: str | None = None
    unit: str | None = None
    metric_kind: str | None = None
    pairs_max: int | None = None
    seconds: float | None = None
    timeout: float | None = None
    warmup: int | None = None
    cpu: int | None = None


def compare_operators(
    a: Path,
    b: Path,
    overrides: Overrides,
    minimum_effect: float,
    shell: ShellOptions,
    sandbox: Sandbox,
) -> Answer:
    """Compare two versions of an operator.

    Raises:
        BadInput: they cannot be compared, or an option belongs to `--shell`.
    """
    refuse_given(vars(shell), "goes with --shell only")
    operator, file = reference(a, overrides)
    require_backend(operator)
    one = version("A", file, operator.kernel)
    other = version("B", candidate(b, operator), operator.kernel)
    with stoppable(), Lab(operator, sandbox=sandbox) as lab:
        return compare_files(lab, one, other, minimum_effect, tell)


def compare_shell(
    a: str, b: str, overrides: Overrides, minimum_effect: float, shell: ShellOptions
) -> Answer:
    """Compare two shell commands.

    Raises:
        BadInput: an option cannot be used, or a run failed.
    """
    refuse_given(vars(overrides), "does not go with --shell")
    require_finite(vars(shell))
    kind = MetricKind(shell.metric_kind or "measured")
    reader = reader_of(shell)
    if kind is not MetricKind.MEASURED and reader is None:
        raise BadInput(
            f"a wall time is measured, not {kind.value}",
            where="--metric-kind",
            fix="Say where the command prints the figure, with --regex or --json-key.",
        )
    with stoppable():
        return compare_commands(
            a, b, reading_of(shell, reader), kind, plan_of(shell, minimum_effect), tell
        )


def refuse_given(options: dict[str, object], why: str) -> None:
    """Refuse options that have no meaning here.

    Raises:
        BadInput: one was given.
    """
    for name, value in options.items():
        if value is not None:
            raise BadInput(f"this {why}", where=f"--{name.replace('_', '-')}", fix="Leave it out.")


def require_finite(options: dict[str, object]) -> None:
    """Refuse what is no number of anything.

    Raises:
        BadInput: an option is infinite or not a number.
    """
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            where = f"--{name.replace('_', '-')}"
            raise BadInput(f"{value} is no number of seconds", where=where, fix="Give a number.")


def reader_of(shell: ShellOptions) -> Reader | None:
    """How a time is read from the output; None takes the wall time.

    Raises:
        BadInput: the options contradict each other or cannot be used.
    """
    if shell.regex is not None and shell.json_key is not None:
        raise BadInput("a time is read one way only", where="--regex", fix="Leave out --json-key.")
    try:
        if shell.regex is not None:
            return by_regex(shell.regex)
        return None if shell.json_key is None else by_json_key(shell.json_key)
    except ValueError as error:
        where = "--json-key" if shell.regex is None else "--regex"
        fix = r"For instance --regex 'time: ([0-9.]+) ms', or --json-key result.0.us."
        raise BadInput(str(error), where=where, fix=fix) from None


def reading_of(shell: ShellOptions, reader: Reader | None) -> Reading:
    """How a run gives its time.

    Raises:
        BadInput: there is no such CPU.
    """
    allowed = os.sched_getaffinity(0)
    if shell.cpu is not None and shell.cpu not in allowed:
        known = ", ".join(map(str, sorted(allowed)))
        raise BadInput(
            f"there is no CPU {shell.cpu} here", where="--cpu", fix=f"There are {known}."
        )
    default = Reading()
    return Reading(
        reader=reader,
        unit=shell.unit or ("" if reader else default.unit),
        timeout=default.timeout if shell.timeout is None else shell.timeout,
        cpu=shell.cpu,
    )


def plan_of(shell: ShellOptions, minimum_effect: float) -> Plan:
    """How much is run."""
    given = {"pairs": shell.pairs_max, "seconds": shell.seconds, "warmup": shell.warmup}
    named = {name: value for name, value in given.items() if value is not None}
    return Plan(minimum_effect=minimum_effect, **named)  # type: ignore[arg-type]


def reference(path: Path, overrides: Overrides) -> tuple[Operator, Path]:
    """The operator that A belongs to, and A's own file.

    A version that a run left behind belongs to the operator beside that run's folder: its golden and workloads count.
    """
    folder = path.absolute().parent
    if (
        path.suffix == ".py"
        and (folder / LEDGER).is_file()
        and not (folder / MANIFEST_NAME).exists()
    ):
        run = fold(read_lines(folder / LEDGER)).run
        home = folder.parent / run.source
        if home.is_file():
            return load(home, Overrides(overrides.backend or run.backend, run.flow)), path
    operator = load(path, overrides)
    return operator, operator.source


def candidate(path: Path, operator: Operator) -> Path:
    """B's file: the path itself, the version that a run delivered into a folder, or the source of an operator's folder."""
    if path.is_dir() and (path / LEDGER).is_file():
        return path / f"{operator.name}.py"
    return path if path.suffix == ".py" else locate(path).source


def version(name: str, path: Path, kernel: str) -> Version:
    """A version as read; nothing of it is run here.

    Raises:
        BadInput: it cannot be read, or has no such kernel.
    """
    source = read_python(path)
    if kernel not in source.functions:
        raise BadInput(
            f"{name} does not define the kernel factory `{kernel}`",
            where=str(path),
            fix=f"Both versions need the kernel of A's operator. {advice(kernel, source.functions)}",
        )
    return Version(name, path, source.text)


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM and SIGHUP end the comparison as Ctrl-C does; whatever was started is killed."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        kill_workers()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tell(text: str) -> None:
    """What is being done, for people; stdout is for the answer."""
    print(text, file=sys.stderr, flush=True)
