"""What every test gets: the floating-point state of a process that has loaded nothing, and no deadline for property tests.

A library built with `-ffast-math` switches denormals off for the whole process when it is loaded. The tool loads candidates
in processes of their own; tests of single edits load them here, and must not change what later tests compute.

How long an example of a property test takes says something of the machine and of what else runs there, nothing of the property.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
_LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


@pytest.fixture(autouse=True)
def floating_point_state() -> Iterator[None]:
    """Put the floating-point state back after each test (`fenv_t` is at most 64 bytes)."""
    state = ctypes.create_string_buffer(64)
    _LIBM.fegetenv(state)
    yield
    _LIBM.fesetenv(state)
