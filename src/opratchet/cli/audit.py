"""`audit`: its options, and how its result is shown. Heavy modules load inside the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opratchet.cli.sandbox import SandboxOption, Wanted, chosen

if TYPE_CHECKING:
    from opratchet.audit.findings import Audit, Finding


def audit(
    path: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The folder a run left behind, or the operator's."),
    ],
    remeasure: Annotated[
        bool,
        typer.Option("--remeasure", help="Build and time baseline and delivered version again."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder, where DIR is the operator elsewhere.")
    ] = None,
    sandbox: SandboxOption = Wanted.AUTO,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, the rest on stderr.")
    ] = False,
) -> None:
    """Check what a run left behind against its ledger: every line, source, version and figure. Writes nothing.

    The exit code is 0 when all is as the ledger says, 1 when something is not, 2 when there is no run to check.
    """
    from opratchet.audit.examine import examine
    from opratchet.cli.inspect import print_json
    from opratchet.cli.operators import run_folder

    found = examine(run_folder(path, out))
    try:
        if remeasure:
            _remeasure(found, path, out, sandbox)
    finally:  # what was found without measuring is told also where that cannot be done
        if as_json:
            print_json(found.record())
        else:
            print("\n".join(report(found)), flush=True)
    raise typer.Exit(0 if found.is_clean else 1)


def _remeasure(found: Audit, path: Path, out: Path | None, sandbox: Wanted) -> None:
    """Add what a second measurement says.

    Raises:
        BadInput: the operator is not where it was, or has changed.
        EnvironmentMissing: something that its backend needs, or the sandbox that is required, is not here.
    """
    from opratchet.audit.again import measured_again
    from opratchet.audit.findings import Finding
    from opratchet.cli.operators import load_as_recorded
    from opratchet.cli.tune import require_backend
    from opratchet.edit.source import sha256
    from opratchet.engine import require_same_source
    from opratchet.lab.bench import Lab
    from opratchet.ledger.store import LEDGER

    if not found.has_sound_ledger:
        what = "nothing was measured again, as the ledger cannot be relied on"
        found.add(Finding("measured", LEDGER, what, remark=True))
        return
    operator, folder = load_as_recorded(path, out)
    require_same_source(found.state, sha256(operator.text), str(operator.source))
    require_backend(operator)
    with Lab(operator, sandbox=chosen(sandbox, [folder])) as lab:
        found.take(measured_again(folder, found.state, lab))


def report(found: Audit) -> list[str]:
    """The result for people, one finding after another."""
    counts = ", ".join(f"{number} {what}" for what, number in found.counts.items())
    head = [f"audited   {found.folder}   {counts}"]
    if found.running is not None:
        head.append(
            f"running   process {found.running} goes on with this run; what is there was checked"
        )
    elif not found.complete:
        head.append("open      this run has not delivered; `opratchet resume` goes on with it")
    listed = [line for finding in found.findings for line in _lines("finding", finding)]
    remarks = [line for remark in found.remarks for line in _lines("remark", remark)]
    count = len(found.findings)
    verdict = (
        f"{count} finding{'s' if count > 1 else ''}"
        if count
        else "clean: nothing differs from the ledger"
    )
    return [*head, *listed, *remarks, f"result    {verdict}"]


def _lines(kind: str, finding: Finding) -> list[str]:
    lines = [f"{kind:<9} {finding.where}: {finding.what}"]
    if finding.found:
        lines.append(f"            found     {finding.found}")
    if finding.expected:
        lines.append(f"            expected  {finding.expected}")
    return lines
