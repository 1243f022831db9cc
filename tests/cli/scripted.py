"""The command line with the toy's backend, on a scripted clock: `python -m tests.cli.scripted tune FOLDER`.

While there is a file `hold-N` in the folder for temporary files, the N-th comparison of a run stands still (the first one is that of
the baseline with itself): so a test can wait for that moment however busy the machine is.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from opratchet.cli.main import run
from opratchet.contest import Match
from opratchet.lab.rig import Rig
from opratchet.operator.model import Workload
from tests.clock import ScriptedClock


class HeldClock(ScriptedClock):
    """A clock that can be held."""

    def __init__(self) -> None:
        super().__init__()
        self._met = 0

    def _meet(self, match: Match) -> None:
        super()._meet(match)
        self._met += 1

    def _batch(self, rig: Rig, workload: Workload, count: int) -> tuple[int, int]:
        hold = Path(tempfile.gettempdir()) / f"hold-{self._met}"
        while hold.exists():
            time.sleep(0.01)
        return super()._batch(rig, workload, count)


if __name__ == "__main__":
    with HeldClock().ticking():
        run()
