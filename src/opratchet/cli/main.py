"""The command line: thin doors that parse, call and show. Heavy modules load inside the command that needs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from opratchet import __version__
from opratchet.cli import audit, compare, layout, selftest
from opratchet.cli.sandbox import SandboxOption, Wanted, chosen
from opratchet.cli.surroundings import foreseen, let_go, prepare
from opratchet.errors import OpratchetError, UserStopped


class Commands(TyperGroup):
    """The commands. Ctrl-C ends any of them with the exit code of a stop by the user, where typer has one of its own."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named.

        Raises:
            UserStopped: Ctrl-C.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from opratchet.lab.processes import halt

            halt()  # what was being started when it came is in nobody's hands yet
            raise UserStopped("stopped at once") from None


app = typer.Typer(
    name="opratchet",
    cls=Commands,
    help="Makes compute kernels faster and proves it: one change at a time, correctness before speed.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

OperatorPath = Annotated[
    Path, typer.Argument(metavar="PATH", help="Operator folder, source file or manifest.")
]
RunPath = Annotated[
    Path, typer.Argument(metavar="PATH", help="Operator folder, or the folder a run left behind.")
]
Out = Annotated[Path | None, typer.Option(help="Folder to write to (default: PATH/perf_opt).")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout, the rest on stderr.")
]
BackendName = Annotated[str | None, typer.Option(help="Backend; `doctor` lists them.")]
FlowName = Annotated[str | None, typer.Option(help="Flow, e.g. tilelang.")]
MaxRounds = Annotated[int | None, typer.Option(min=1, help="Rounds at most (10).")]
Patience = Annotated[int | None, typer.Option(min=1, help="Rounds in a row without gain (3).")]
MaxExperiments = Annotated[
    int | None, typer.Option(min=1, help="Candidates at most, failed ones included (120).")
]
Budget = Annotated[
    float | None,
    typer.Option(min=1, help="Seconds at most, from this command on; what is running is finished."),
]
Lang = Annotated[str, typer.Option(help="Language of the files left behind: zh or en.")]


@app.command()
def tune(
    path: OperatorPath,
    backend: BackendName = None,
    flow: FlowName = None,
    out: Out = None,
    max_rounds: MaxRounds = None,
    patience: Patience = None,
    max_experiments: MaxExperiments = None,
    budget: Budget = None,
    target_us: Annotated[
        float | None, typer.Option(help="Stop at this latency, microseconds a call.")
    ] = None,
    target_speedup: Annotated[
        float | None, typer.Option(help="Stop at this speed-up over the baseline, e.g. 1.5.")
    ] = None,
    target_throughput: Annotated[
        float | None, typer.Option(help="Stop at this throughput, calls a second.")
    ] = None,
    minimum_effect: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Smallest gain worth a change, e.g. 0.01.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of the search; inputs never come from it.")] = 0,
    lang: Lang = "zh",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew; an earlier run's folder is kept aside.")
    ] = False,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Json = False,
) -> None:
    """Make an operator faster: gate, baseline, rounds, delivery."""
    from opratchet import session
    from opratchet.cli.operators import given_limits, load, stop_rules
    from opratchet.cli.tune import run_new
    from opratchet.operator.discover import Overrides

    overrides = Overrides(backend, flow, target_us, target_throughput, target_speedup)
    operator = load(path, overrides)
    limits = given_limits(max_rounds, patience, max_experiments, budget)
    rules = stop_rules(operator.flow, limits)
    options = session.Options(rules, minimum_effect, seed, _language(lang))
    folder = out or operator.root / "perf_opt"
    box = chosen(sandbox, [folder])
    raise typer.Exit(run_new(operator, folder, options, box, fresh=fresh, as_json=as_json))


@app.command()
def resume(
    path: OperatorPath,
    out: Out = None,
    max_rounds: MaxRounds = None,
    patience: Patience = None,
    max_experiments: MaxExperiments = None,
    budget: Budget = None,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Json = False,
) -> None:
    """Go on with a run that was interrupted or stopped; nothing that was measured is measured again.

    A limit that is given holds instead of the recorded one from here on, for all that was done and is to come together;
    only a budget is counted anew.
    """
    from opratchet.cli.operators import given_limits, load_as_recorded, run_folder
    from opratchet.cli.tune import run_again
    from opratchet.session import require_free

    require_free(run_folder(path, out), fresh=True)
    operator, folder = load_as_recorded(path, out)
    limits = given_limits(max_rounds, patience, max_experiments, budget)
    box = chosen(sandbox, [folder])
    raise typer.Exit(run_again(operator, folder, limits, box, as_json=as_json))


@app.command()
def check(
    path: OperatorPath,
    backend: BackendName = None,
    flow: FlowName = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Make the two checks of activation and append what they found to MEMORY.md.",
        ),
    ] = False,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Json = False,
) -> None:
    """Show what is understood of an operator, and from where. Without --prove it runs nothing and writes nothing."""
    from opratchet.cli.inspect import print_json, prove_operator
    from opratchet.cli.operators import load
    from opratchet.operator.describe import as_dict, describe, table
    from opratchet.operator.discover import Overrides

    operator = load(path, Overrides(backend=backend, flow=flow))
    if prove:
        raise typer.Exit(prove_operator(operator, chosen(sandbox), as_json=as_json))
    if as_json:
        print_json(as_dict(operator))
    else:
        print("\n".join(table(describe(operator))))


@app.command()
def measure(
    path: OperatorPath,
    backend: BackendName = None,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Json = False,
) -> None:
    """Check the accuracy of an operator and measure its latency. Writes nothing."""
    from opratchet.cli.inspect import measure_operator
    from opratchet.cli.operators import load
    from opratchet.operator.discover import Overrides

    operator = load(path, Overrides(backend=backend))
    measure_operator(operator, chosen(sandbox), as_json=as_json)


@app.command()
def diagnose(
    path: OperatorPath,
    backend: BackendName = None,
    cores: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Cube and vector cores of the device, for an output folder."),
    ] = None,
    cycles_per_us: Annotated[
        float | None, typer.Option(min=0.001, help="Clock of the files, for an output folder.")
    ] = None,
    outer_loops: Annotated[
        int | None, typer.Option(min=1, help="Iterations a call, for the merge guide.")
    ] = None,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Json = False,
) -> None:
    """Measure an operator and say what binds it; or read what a run of PyPTO left in its output folder. Writes nothing."""
    from opratchet.profile.swimlane import is_output

    if is_output(path):
        from opratchet.cli.swimlane import show
        from opratchet.profile.swimlane import Cores

        known = Cores(*cores) if cores is not None else None
        show(path, as_json, cores=known, cycles_per_us=cycles_per_us, outer_loops=outer_loops)
        return
    from opratchet.cli.inspect import diagnose_operator
    from opratchet.cli.operators import load
    from opratchet.operator.discover import Overrides

    operator = load(path, Overrides(backend=backend))
    diagnose_operator(operator, chosen(sandbox), as_json=as_json)


@app.command()
def status(path: RunPath, out: Out = None, as_json: Json = False) -> None:
    """Show where a run stands, running or not."""
    from opratchet.cli.inspect import show_status
    from opratchet.cli.operators import run_folder

    show_status(run_folder(path, out), as_json=as_json)


@app.command()
def stop(path: RunPath, out: Out = None) -> None:
    """Ask a running run to finish its step and deliver the best so far."""
    from opratchet.cli.inspect import stop_run
    from opratchet.cli.operators import run_folder

    stop_run(run_folder(path, out))


@app.command()
def report(path: RunPath, out: Out = None, lang: Lang = "zh", as_json: Json = False) -> None:
    """Write the reports of a run anew from its ledger."""
    from opratchet.cli.inspect import write_reports
    from opratchet.cli.operators import run_folder

    write_reports(run_folder(path, out), _language(lang), as_json=as_json)


@app.command()
def doctor(as_json: Json = False) -> None:
    """List the backends: which can run here, what is missing, and how to install it."""
    from opratchet.cli.inspect import doctor as examine

    examine(as_json=as_json)


app.command()(audit.audit)
app.command()(compare.compare)
app.command()(layout.layout)
app.add_typer(selftest.app, name="selftest")


def _version(value: bool) -> None:
    if value:
        print(f"opratchet {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """The options that come before a command."""


def _language(lang: str) -> str:
    if lang not in ("zh", "en"):
        raise typer.BadParameter(f"`{lang}` is not zh or en", param_hint="--lang")
    return lang


def run() -> None:
    """Entry point of the `opratchet` command: foreseen errors become one message and an exit code."""
    _speak_utf8()
    try:
        prepare()
        app()
    except OpratchetError as error:
        _fail(error)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        _fail(foreseen(error))
    finally:
        let_go()


def _speak_utf8() -> None:
    """Start again in UTF-8 mode where the locale speaks anything else: paths and files of users hold Chinese."""
    if sys.getfilesystemencoding().lower() != "utf-8":
        command = [sys.executable, "-X", "utf8", "-m", "opratchet", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONUTF8": "1"})


def _fail(error: OpratchetError) -> None:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
