"""PyPTO's calculator: the library with which its verification interprets a graph, built once for a machine.

The wheel holds its sources and builds them anew in every process that verifies, which takes a minute or two. What it is built
from is the wheel's own code and torch's, never a candidate's, so it is built once and kept in the user's cache folder, under
the versions it was built for. `tell` hears how far the build is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path

from opratchet.errors import EnvironmentMissing

LIBRARY = "libtile_fwk_calculator.so"
BUILD_SECONDS = 1200.0
_PROGRESS = re.compile(r"\[\s*(\d+)%\]")

Tell = Callable[[str], None]


def calculator_path() -> Path:
    """Where the calculator for the installed PyPTO and torch lies, whether it is there or not."""
    versions = [*map(metadata.version, ("pypto", "torch")), sys.implementation.cache_tag]
    key = hashlib.sha256("\0".join([*map(str, versions), str(_package())]).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "opratchet" / f"pypto-{versions[0]}-{key[:12]}" / LIBRARY


def build_calculator(tell: Tell) -> Path:
    """The calculator, built where it is not there yet.

    Args:
        tell: Told how far it is; called some dozens of times.

    Raises:
        EnvironmentMissing: CMake or the compiler is missing, or the build fails.
    """
    place = calculator_path()
    if place.is_file():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.parent), tempfile.TemporaryDirectory(dir=place.parent) as folder:
        if not place.is_file():
            _built(Path(folder), tell).replace(place)
    return place


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of several that want it at once, one builds it and the others wait."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _built(folder: Path, tell: Tell) -> Path:
    cmake = cmake_path()
    if not cmake:
        raise EnvironmentMissing(
            "PyPTO's calculator cannot be built: there is no CMake",
            fix="`opratchet doctor` says how to install what is missing.",
        )
    sources, build = _package() / "lib" / "calculator", folder / "build"
    options = [f"-D{name}={value}" for name, value in _definitions()]
    _run([cmake, "-S", str(sources), "-B", str(build), *options], tell)
    jobs = str(os.cpu_count() or 1)
    _run([cmake, "--build", str(build), "--parallel", jobs], tell)
    found = sorted(build.rglob(LIBRARY))
    if not found:
        raise EnvironmentMissing(
            "PyPTO's calculator was built, and its library is not there",
            fix="Install the tested version of PyPTO: `opratchet doctor` names it.",
        )
    return found[0]


def _definitions() -> Iterator[tuple[str, str]]:
    """What the wheel's own build passes to CMake."""
    torch = util.find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    yield "CMAKE_BUILD_TYPE", "Release"
    yield "PY3_MOD_TORCH_VERSION", metadata.version("torch")
    yield "PY3_MOD_TORCH_ROOT_PATH", str(Path(torch.origin).parent)
    yield "PY3_MOD_TORCH_C_GLIBCXX_USE_CXX11_ABI", "1"  # all of torch's wheels since 2.6


def _run(command: list[str], tell: Tell) -> None:
    """Run a step of the build and tell of its progress.

    Raises:
        EnvironmentMissing: it failed, with the end of what it said.
    """
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.rstrip())
            if done := _PROGRESS.match(line):
                tell(f"building PyPTO's calculator, once for this machine: {done[1]} %")
    if process.returncode:
        raise EnvironmentMissing(
            "PyPTO's calculator cannot be built: " + " / ".join(said[-4:]),
            fix="It needs CMake, g++ and the headers of the installed torch; see docs/pypto-sim.md.",
        )


def cmake_path() -> str:
    """CMake itself: the one of the package `cmake` from PyPI, else the system's; empty where there is none."""
    spec = util.find_spec("cmake")
    if spec is not None and spec.origin is not None:
        inside = Path(spec.origin).parent / "data" / "bin" / "cmake"
        if inside.is_file():
            return str(inside)
    return shutil.which("cmake") or ""


def _package() -> Path:
    spec = util.find_spec("pypto")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parent
