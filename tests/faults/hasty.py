"""The command line with comparisons in very few processes, where what is decided does not matter: real kernels, a real clock."""

from __future__ import annotations

from unittest import mock

from opratchet import contest
from opratchet.cli.main import run

if __name__ == "__main__":
    with (
        mock.patch.object(contest, "CALIBRATION", 2),
        mock.patch.object(contest, "FINAL_BOUTS", 1),
        mock.patch.object(contest, "CONTEST_SECONDS", 1.0),
    ):
        run()
