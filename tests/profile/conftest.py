"""The peaks of the machine the tests run on, measured once."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import settings

from opratchet.profile.machine import Machine, read_machine
from opratchet.profile.peaks import Peaks, measure

# On a busy machine a file may take long to write; that is no failure.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def machine() -> Machine:
    return read_machine()


@pytest.fixture(scope="session")
def peaks(machine: Machine) -> Peaks:
    if shutil.which("g++") is None:
        pytest.skip("needs a C compiler")
    return measure(machine)
