"""How a long ledger loads: 10,000 trials written by the real store, then read, checked against the chain and folded.

python benchmarks/ledger.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines

TRIALS = 10_000


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
    print(
        f"{len(state.trials)} trials loaded and folded in {seconds:.2f} s; process {memory / 1024:.0f} MiB, "
        f"{(memory - before) / 1024:.0f} MiB of it for the ledger"
    )


def main() -> None:
    """Write in this process, load in a fresh one."""
    if len(sys.argv) > 1:
        load(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        subprocess.run([sys.executable, __file__, folder], check=True)


if __name__ == "__main__":
    main()
