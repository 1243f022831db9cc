"""The sandbox: bubblewrap around everything that runs a candidate, where the machine has it and lets it work.

Inside there is no network, no process of anybody else, and of the file system only what a build or a call needs, read-only:
the system's programs and libraries, Python and its packages, the compiler. The operator's folder with the golden, the run's
folder with the ledger and the lab's own folders are not there, even where they lie inside of what is shown. A build may
write into its job's folder, and everything may write into a small /tmp of its own.

Whether it works is tried, once a process: bubblewrap may be missing or too old, and the system may forbid namespaces. With
`auto` a run goes on without it then and says so, with `require` it is refused.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path

from opratchet.errors import EnvironmentMissing
from opratchet.lab.limits import Limits
from opratchet.lab.processes import PACKAGES, worker_environment

PROGRAM = "bwrap"
INSTALL = "apt-get install bubblewrap"
TRIAL_SECONDS = 30.0
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt")
HOME = "/tmp"
USER = "1000"  # number of an administrator's user in the sandbox; as 0 it could make no namespace inside
SCRATCH = ("/tmp", "/dev/shm")
_TELLING = ("PYTHONPATH", "PATH", "CXX", "CC", "LD_LIBRARY_PATH", "HOME")
_ALONE = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--hostname",
    "sandbox",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--chdir",
    "/",
]


class Mode(str, Enum):
    """What the user wants of the sandbox."""

    REQUIRE = "require"
    AUTO = "auto"
    OFF = "off"


@dataclass(frozen=True)
class Protection:
    """One protection against what a candidate may do, and why it is not active; empty when it is."""

    name: str
    why_not: str = ""

    @property
    def active(self) -> bool:
        """Whether it is active."""
        return not self.why_not


@dataclass(frozen=True)
class Sandbox:
    """What stands around workers that run a candidate.

    Attributes:
        program: Path of bubblewrap; empty when there is no sandbox.
        why_not: Why there is none.
        shared: Why builds that run side by side cannot be set apart from each other; empty when they are.
        hidden: Folders that no candidate may see.
    """

    program: str = ""
    why_not: str = "switched off by --sandbox off"
    shared: str = ""
    hidden: tuple[Path, ...] = ()

    @property
    def active(self) -> bool:
        """Whether there is a sandbox."""
        return bool(self.program)

    @property
    def sets_apart(self) -> bool:
        """Whether each build gets namespaces of its own."""
        return self.active and not self.shared

    def hiding(self, folders: Iterable[Path]) -> Sandbox:
        """The same sandbox, which does not show these folders either."""
        more = tuple(folder.resolve() for folder in folders)
        return replace(self, hidden=(*self.hidden, *more))

    @property
    def protections(self) -> list[Protection]:
        """All protections, those that need the sandbox first."""
        inside = [Protection(name, self.why_not if not self.active else "") for name in _INSIDE]
        apart = Protection(_APART, self.shared if self.active else self.why_not)
        root = "the administrator's processes are not counted" if os.getuid() == 0 else ""
        return [*inside, apart, *map(Protection, _ALWAYS), Protection(_COUNTED, root)]

    def record(self) -> dict[str, str]:
        """By protection: why it is not active, or an empty text. As it is written to the ledger."""
        return {one.name: one.why_not for one in self.protections}

    def environment(self) -> dict[str, str]:
        """Environment of what runs in it."""
        known = worker_environment()
        if not self.active:
            return known
        given = {name: value for name, value in known.items() if name != "TMPDIR"}
        return {**given, "HOME": HOME, "USER": given.get("USER", "sandbox")}

    def wrap(
        self,
        command: Sequence[str],
        limits: Limits,
        *,
        shown: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        is_first: bool = False,
    ) -> list[str]:
        """The command that runs a command in the sandbox; itself when there is none.

        Args:
            command: Program and arguments.
            limits: For the size of its scratch space.
            shown: Files and folders that it may also read.
            writable: Folders that it may write to.
            is_first: It is the first process of the sandbox, which nothing in there can kill.
        """
        if not self.active:
            return list(command)
        places = {**self._places(), **{path: path for path in shown}}
        mounts = [("--proc", "/proc"), ("--dev", "/dev")]
        lines = [_line(*mount) for mount in mounts]
        lines += [["--size", str(limits.scratch_bytes), *_line("--tmpfs", p)] for p in SCRATCH]
        lines += [_read_only(source, place) for place, source in places.items()]
        covered = list(dict.fromkeys(_covered(places, self.hidden)))
        lines += [["--size", "65536", *_line("--tmpfs", str(path))] for path in covered]
        lines += [["--bind", str(path), str(path)] for path in writable]
        lines.sort(key=lambda line: len(Path(line[-1]).parts))
        closed = [_line("--remount-ro", str(path)) for path in (*covered, "/dev", "/")]
        first = ["--as-pid-1"] if is_first else []
        if os.getuid() == 0:
            first += ["--uid", USER, "--gid", USER]
        arguments = [word for line in (*lines, *closed) for word in line]
        return [self.program, *_ALONE, *first, *arguments, "--", *command]

    def covered(self) -> list[Path]:
        """The places that are covered now, so that a hidden folder is not seen there."""
        return list(_covered(self._places(), self.hidden)) if self.active else []

    def _places(self) -> dict[Path, Path]:
        """Where something is shown, and what it is: every allowed place with the real folder behind it."""
        environment = tuple(os.environ.get(name, "") for name in _TELLING)
        return _places(self.hidden, (*sys.path, str(Path.cwd()), *environment))


@cache
def _places(hidden: tuple[Path, ...], _known_by: tuple[str, ...]) -> dict[Path, Path]:
    """As of `Sandbox`; the second argument only tells one environment from another."""
    found: dict[Path, Path] = {}
    for path in sorted(_allowed(), key=lambda path: len(path.parts)):
        source = path.resolve()
        if source.exists() and source not in hidden and not _is_shown(path, found, hidden):
            found[path] = source
    return found


def _is_shown(path: Path, found: dict[Path, Path], hidden: tuple[Path, ...]) -> bool:
    """Whether a place above shows it already, and nothing hides it there."""
    above = [place for place in found if path.is_relative_to(place)]
    if not above:
        return False
    nearest = max(above, key=lambda place: len(place.parts))
    inside = found[nearest] / path.relative_to(nearest)
    between = (folder for folder in hidden if folder.is_relative_to(found[nearest]))
    return not any(inside.is_relative_to(folder) for folder in between)


def _line(option: str, place: str) -> list[str]:
    return [option, place]


def _read_only(source: Path, place: Path) -> list[str]:
    if place.is_symlink() and place.parent == Path("/"):  # as /bin is on most systems
        return ["--symlink", str(place.readlink()), str(place)]
    return ["--ro-bind", str(source), str(place)]


def _covered(places: dict[Path, Path], hidden: Iterable[Path]) -> Iterator[Path]:
    """Every place at which a hidden folder would be seen."""
    for folder in dict.fromkeys(hidden):
        for place, source in places.items():
            if folder.is_relative_to(source) and folder.is_dir() and folder != source:
                yield place / folder.relative_to(source)


def _allowed() -> Iterator[Path]:
    """What everything in a sandbox may read: the system, Python and what it imports, the compiler."""
    named = [*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, str(PACKAGES), *_imported()]
    executable = Path(sys.executable).resolve()
    home = Path.home().resolve()
    for path in (*map(Path, named), executable.parent.parent, *_tools()):
        for form in (path, path.resolve()):
            if form.is_absolute() and not home.is_relative_to(form):
                yield form


def _imported() -> Iterator[str]:
    """Folders that Python imports from, without the one that it was started in: that may be anything."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    for entry in sys.path:
        if entry and (entry in given or entry != str(Path.cwd())):
            yield entry
    yield from filter(None, given)


def _tools() -> Iterator[Path]:
    """Folders of the compiler and of the libraries that the environment names."""
    for name in (os.environ.get("CXX", ""), os.environ.get("CC", ""), "g++", "gcc", "c++"):
        found = shutil.which(name.split(" ")[0]) if name else None
        if found is not None:
            folder = Path(found).parent
            yield folder.parent if folder.name == "bin" else folder
            yield folder
            yield Path(found).resolve().parent
    yield from map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))


def choose(mode: Mode = Mode.AUTO) -> Sandbox:
    """The sandbox that is there.

    Raises:
        EnvironmentMissing: it is required and does not work here.
    """
    if mode is Mode.OFF:
        return Sandbox()
    found = _tried(shutil.which(PROGRAM) or "", os.environ.get("PYTHONPATH", ""))
    if mode is Mode.REQUIRE and not found.active:
        raise EnvironmentMissing(
            f"a sandbox is required, and there is none here: {found.why_not}",
            where="--sandbox",
            fix=f"Install bubblewrap 0.7 or newer (`{INSTALL}`) and allow its user to make namespaces, or take "
            "--sandbox auto, which goes on without it and says so.",
        )
    return found


@cache
def _tried(program: str, _pythonpath: str) -> Sandbox:
    """The sandbox of a program, after a trial run; the second argument only tells one environment from another."""
    if not program:
        return Sandbox(why_not=f"bubblewrap is not installed (`{INSTALL}`)")
    with tempfile.TemporaryDirectory(prefix="opratchet-trial-") as folder:
        return _try(Sandbox(program), Path(folder).resolve())


def _try(sandbox: Sandbox, jobs: Path) -> Sandbox:
    own, other = jobs / "own", jobs / "other"
    own.mkdir()
    other.mkdir()
    command = [sys.executable, "-m", "opratchet.lab.apart", str(own), str(jobs)]
    said = ""
    try:
        done = subprocess.run(
            sandbox.wrap(command, Limits(), writable=[jobs], is_first=True),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=sandbox.environment(),
            timeout=TRIAL_SECONDS,
            check=False,
        )
        said = done.stderr.strip()[-300:] or f"it ended with {done.returncode}"
        why_shared = str(json.loads(done.stdout)["apart"])
    except subprocess.TimeoutExpired:
        return Sandbox(why_not=f"bubblewrap did not answer within {TRIAL_SECONDS:g} s")
    except (OSError, ValueError, KeyError, TypeError) as error:
        last = (said or str(error)).splitlines()[-1]
        return Sandbox(why_not=f"bubblewrap does not work here: {last}")
    shared = f"the system refuses namespaces inside of namespaces: {why_shared}"
    return replace(sandbox, why_not="", shared=shared if why_shared else "")


_INSIDE = (
    "no network",
    "file system read-only, apart from the job's own folder",
    "golden, ledger and the operator's folder out of sight",
    "processes of others out of sight and out of reach",
    "/tmp and /dev/shm of its own, limited in size",
)
_APART = "builds apart from each other"
_ALWAYS = (
    "a process tree of its own for every candidate, killed at its time limit",
    "golden in a process tree that no candidate shares",
    "limits of memory, file size, folder size and output; no core files",
    "environment without secrets",
    "built files copied and checked by the supervisor",
)
_COUNTED = "limit of processes"
