"""The command line with the backend for faults and a scripted clock: `python -m tests.faults.command tune FOLDER`."""

from __future__ import annotations

from opratchet.cli.main import run
from tests.faults.scene import scripted_clock

if __name__ == "__main__":
    with scripted_clock():
        run()
