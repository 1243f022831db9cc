"""How a long ledger loads: 10,000 trials written by the real store, then read, checked against the chain and folded.

python benchmarks/ledger.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from unittest import mock

from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines

TRIALS = 10_000
PROCESSES = 5


def write(folder: Path) -> None:
    """A ledger of that many trials; flushing to disk is left out, as this is about loading."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.builders import long_story

    with mock.patch("os.fsync"), Ledger(folder, create=True) as ledger:
        for line in long_story():
            ledger.append(line.event)


def load(folder: Path) -> None:
    """Load it in this process and print what that took."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    state = fold(read_lines(folder / LEDGER))
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([len(state.trials), seconds, memory / 1024, (memory - before) / 1024]))


def main() -> None:
    """Write in this process, load in fresh ones."""
    if len(sys.argv) > 1:
        load(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        command = [sys.executable, __file__, folder]
        said = [
            subprocess.run(command, check=True, stdout=subprocess.PIPE) for _ in range(PROCESSES)
        ]
    loads = [json.loads(one.stdout) for one in said]
    trials, seconds, process, own = (median(column) for column in zip(*loads, strict=True))
    print(
        f"{trials:.0f} trials loaded and folded in {seconds:.2f} s (median of {PROCESSES} processes, {min(s for _, s, *_ in loads):.2f} "
        f"to {max(s for _, s, *_ in loads):.2f}); process {process:.0f} MiB, {own:.0f} MiB of it for the ledger"
    )


if __name__ == "__main__":
    main()
