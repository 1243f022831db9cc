"""A scripted run on a disk that gets full: `python -m tests.faults.full_disk PLACE EVENTS...`, in a mount namespace of its own.

For each number of events a run is begun on a small disk, which is full once so many events are on record; then there is room
again and the run goes on. Prints a JSON object a number: the error, the events on record, whether the ledger is whole, and
whether the run decided the same in the end as one that nobody disturbed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from opratchet.errors import OpratchetError
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from tests.faults.killing import ended, started
from tests.faults.scene import decisions, play

SIZE = "2m"


def fill(disk: Path) -> None:
    """Leave not a byte."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def disturbed(disk: Path, folder: Path, events: int, said: Path) -> None:
    """A run until the disk is full; what it says is written elsewhere."""

    def full(ledger: Ledger) -> None:
        if len(ledger.lines) >= events and not (disk / "filler").exists():
            fill(disk)

    try:
        play(folder, before=full)
    except OpratchetError as error:
        said.write_text(str(error))


def point(place: Path, disk: Path, events: int, wanted: object) -> dict[str, object]:
    """One run on a disk that gets full."""
    folder, said = disk / str(events), place / f"said-{events}"
    folder.mkdir()
    code = ended(started(lambda: disturbed(disk, folder, events, said)))
    recorded = len(read_lines(folder / "out" / LEDGER)) if events else 0
    whole = not events or (folder / "out" / LEDGER).read_bytes().endswith(b"\n")
    (disk / "filler").unlink()
    again = ended(started(lambda: play(folder)))
    return {
        "error": said.read_text() if said.exists() else "",
        "code": code,
        "recorded": recorded,
        "whole": whole,
        "again": again,
        "same": again == 0 and decisions(folder / "out") == wanted,
        "left": [path.name for path in (folder / "out").rglob("*.tmp")],
    }


def main(place: Path, numbers: list[int]) -> None:
    """All points, after a run that nobody disturbs."""
    plain, disk = place / "plain", place / "disk"
    plain.mkdir()
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)], check=True)
    assert ended(started(lambda: play(plain))) == 0
    wanted = decisions(plain / "out")
    for events in numbers:
        print(json.dumps(point(place, disk, events, wanted)), flush=True)


if __name__ == "__main__":
    os.environ["PYTHONUTF8"] = "1"
    main(Path(sys.argv[1]), [int(text) for text in sys.argv[2:]])
