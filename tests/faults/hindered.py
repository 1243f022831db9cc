"""A scripted run whose folder is hindered in mid-run: `python -m tests.faults.hindered FOLDER HOW EVENTS`.

Ends with exit code 0 and the message of the error, for the test to look at; with 3 when there was none.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from opratchet.errors import OpratchetError
from opratchet.ledger.store import Ledger
from tests.faults.scene import play


def read_only(out: Path) -> None:
    """Nothing may be made in the folder any more."""
    out.chmod(0o555)
    (out / "objects").chmod(0o555)


def removed(out: Path) -> None:
    """The folder is gone."""
    shutil.rmtree(out)


def moved(out: Path) -> None:
    """The folder lies elsewhere."""
    out.rename(out.with_name("elsewhere"))


def replaced(out: Path) -> None:
    """Another run's folder lies in its place."""
    moved(out)
    shutil.copytree(out.with_name("elsewhere"), out)


def without_ledger(out: Path) -> None:
    """The ledger alone is gone."""
    (out / "ledger.jsonl").unlink()


def written_to(out: Path) -> None:
    """Something else appends to the ledger."""
    with (out / "ledger.jsonl").open("ab") as file:
        file.write(b"{}\n")


HOW: dict[str, Callable[[Path], None]] = {
    function.__name__: function
    for function in (read_only, removed, moved, replaced, without_ledger, written_to)
}


def main(folder: Path, how: str, events: int) -> int:
    """Run until the folder is hindered."""

    def hinder(ledger: Ledger) -> None:
        if len(ledger.lines) == events:
            HOW[how](ledger.folder)

    try:
        play(folder, after=hinder)
    except OpratchetError as error:
        print(error)
        return 0
    return 3


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
