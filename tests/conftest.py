"""What every test gets: the floating-point state of a process that has loaded nothing, and no deadline for property tests.

A library built with `-ffast-math` switches denormals off for the whole process when it is loaded. The tool loads candidates
in processes of their own; tests of single edits load them here, and must not change what later tests compute.

How long an example of a property test takes says something of the machine and of what else runs there, nothing of the property.

Each process of the tests has a folder of its own for temporary files and for the locks of devices, so that no test waits for a
run on the same machine that has nothing to do with it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
_LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


@pytest.fixture(autouse=True, scope="session")
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder for what is temporary, of this process and of all that it starts."""
    os.environ["TMPDIR"] = os.environ["OPRATCHET_LOCKS"] = str(tmp_path_factory.mktemp("temporary"))
    tempfile.tempdir = None


@pytest.fixture(autouse=True)
def floating_point_state() -> Iterator[None]:
    """Put the floating-point state back after each test (`fenv_t` is at most 64 bytes)."""
    state = ctypes.create_string_buffer(64)
    _LIBM.fegetenv(state)
    yield
    _LIBM.fesetenv(state)
