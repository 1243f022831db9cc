"""The peaks of the machine the tests run on, measured once."""

from __future__ import annotations

import shutil

import pytest

from opratchet.profile.machine import Machine, read_machine
from opratchet.profile.peaks import Peaks, measure


@pytest.fixture(scope="session")
def machine() -> Machine:
    return read_machine()


@pytest.fixture(scope="session")
def peaks(machine: Machine) -> Peaks:
    if shutil.which("g++") is None:
        pytest.skip("needs a C compiler")
    return measure(machine)
