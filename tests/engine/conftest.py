"""What the tests of the loop share: a lab, and time that comes from a script, so that nothing is decided by what else runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opratchet.lab.bench import Lab
from tests.clock import ScriptedClock
from tests.engine.scripted import PATIENT, lab_for, make_operator
from tests.fake_backend import INSTANT


@pytest.fixture
def clock() -> Iterator[ScriptedClock]:
    """The clock of a test; it can be made another one while a run goes on."""
    with ScriptedClock().ticking() as ticking:
        yield ticking


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with the fake operator. It keeps nothing of a run, so that many can use it one after another."""
    operator = make_operator(tmp_path_factory.mktemp("operator"), backend=INSTANT)
    with lab_for(operator, PATIENT) as opened:
        yield opened
