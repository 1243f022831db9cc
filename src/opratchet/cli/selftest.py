"""`selftest`: the tool tried on the user's own machine. Heavy modules load inside the command that needs them."""

from __future__ import annotations

from typing import Annotated

import typer

from opratchet.cli.sandbox import SandboxOption, Wanted
from opratchet.cli.sandbox import chosen as chosen_sandbox

app = typer.Typer(
    name="selftest",
    help="Try the tool itself on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def root() -> None:
    """Try the tool itself on this machine."""


@app.command()
def noise(
    kind: Annotated[
        str, typer.Option(help="Work that is timed: compute, or memory (reads past the caches).")
    ] = "compute",
    seconds: Annotated[
        float, typer.Option(min=1, help="Seconds after which no comparison is begun.")
    ] = 150.0,
    minimum_effect: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Smallest gain worth a change, e.g. 0.01.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of the order of the comparisons.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, the rest on stderr.")
    ] = False,
) -> None:
    """Compare work of known speed as a run would: how often what is no faster is adopted, and what gain is found here.

    Needs no operator, no compiler and no backend. Takes under 3 minutes; Ctrl-C shows what was found so far.
    """
    from opratchet.cli.selftest_view import try_noise
    from opratchet.judge.decision import Rule
    from opratchet.selftest import KINDS, TRIALS, Options

    if kind not in KINDS:
        raise typer.BadParameter(f"`{kind}` is not {' or '.join(KINDS)}", param_hint="--kind")
    rule = Rule(minimum_effect=minimum_effect, trials=TRIALS)
    raise typer.Exit(try_noise(Options(kind, seconds, seed, rule), as_json=as_json))


@app.command()
def integrity(
    only: Annotated[
        list[str] | None,
        typer.Option(help="A kernel of the corpus, or a family; may be given several times."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="How many times all of it, each time in another order.")
    ] = 1,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, the rest on stderr.")
    ] = False,
) -> None:
    """Take kernels that cheat, and honest twins of them, through the gates: none may be adopted, no honest one refused.

    Needs no operator; what is for TileLang is tried where TileLang is. The exit code is 1 when something gets through.
    """
    from opratchet.cli.integrity_view import try_integrity
    from opratchet.integrity.driver import Options
    from opratchet.integrity.entries import chosen, read_corpus

    entries = chosen(read_corpus(), only or [])
    options = Options(entries, chosen_sandbox(sandbox), seeds)
    raise typer.Exit(try_integrity(options, as_json=as_json))
