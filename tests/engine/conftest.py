"""What the tests of the loop share: comparisons that cost less, as it is not their precision that is tested here."""

from __future__ import annotations

import pytest

from opratchet import contest


@pytest.fixture(autouse=True)
def few_bouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline against itself, and the delivered version against the baseline, in three pairs of processes each."""
    monkeypatch.setattr(contest, "CALIBRATION", 3)
    monkeypatch.setattr(contest, "FINAL_BOUTS", 3)
