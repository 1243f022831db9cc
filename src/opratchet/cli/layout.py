"""`layout`: its options, and how its findings are shown. The check loads inside the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from opratchet.judge.layout import Finding


def layout(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a PyPTO operator, e.g. custom/softmax.")
    ],
    tuned: Annotated[
        bool,
        typer.Option("--tuned", help="It has been tuned: an unroll_list may hold several values."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, the rest on stderr.")
    ] = False,
) -> None:
    """Check the structure of a PyPTO operator folder. Runs nothing, writes nothing.

    The exit code is 0 when nothing was found, 1 when there are findings, 2 when DIR is no such folder.
    """
    from opratchet.cli.inspect import print_json
    from opratchet.judge.layout import check_layout

    findings = check_layout(path, tuned=tuned)
    if as_json:
        print_json({"clean": not findings, "findings": [found.record() for found in findings]})
    else:
        print("\n".join(report(findings)))
    raise typer.Exit(1 if findings else 0)


def report(findings: list[Finding]) -> list[str]:
    """The findings for people, a line each, and what comes of them."""
    from opratchet.audit.findings import printable
    from opratchet.judge.layout import RULES
    from opratchet.ledger.plural import counted

    listed = [f"{found.file}:{found.line}  {found.rule}  {found.message}" for found in findings]
    verdict = counted(len(findings), "finding") if findings else f"clean, {len(RULES)} rules"
    return [*map(printable, listed), f"layout    {verdict}"]
