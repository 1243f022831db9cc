"""The sources that a run leaves: every candidate by its hash, the version of each round, the delivered file, the baseline."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from opratchet.audit.findings import Finding, shown
from opratchet.audit.reading import UnreadableError, first_difference, line_of, read
from opratchet.delivery import BASELINE
from opratchet.ledger.events import Delivered, Line
from opratchet.ledger.rounds import Round
from opratchet.ledger.state import RunState
from opratchet.ledger.store import OBJECTS, OWNER, object_path

BOM = b"\xef\xbb\xbf"
_TEMPORARY = re.compile(r"\..+\.(\d+-)?[0-9a-f]{12}\.tmp")


class Sources:
    """The sources in `objects/`, each checked against its name.

    Args:
        folder: The folder that is audited.

    Attributes:
        sound: Bytes of those that are what their name says, by hash.
        findings: What is wrong with the others, by file name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sound: dict[str, bytes] = {}
        self.findings: dict[str, Finding] = {}
        for path in _listed(folder / OBJECTS):
            self._take(path)

    def _take(self, path: Path) -> None:
        name = f"{OBJECTS}/{path.name}"
        try:
            data = read(path)
        except UnreadableError as error:
            self.findings[path.name] = Finding("files", name, str(error))
            return
        digest = hashlib.sha256(data).hexdigest()
        if path.name == f"{digest}.py":
            self.sound[digest] = data
            return
        what = "this source was changed: its content does not match its name"
        self.findings[path.name] = Finding("files", name, what, found=f"sha256 {digest}")

    def text(self, digest: str) -> str | None:
        """A source as text; None when it is not there, damaged, or not UTF-8."""
        try:
            return self.sound[digest].decode("utf-8")
        except (KeyError, UnicodeDecodeError):
            return None


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def source_findings(
    sources: Sources, state: RunState, unfinished: bool, whole: bool
) -> Iterator[Finding]:
    """Every recorded source is there with its hash, and no other one.

    Args:
        sources: What is there.
        state: The fold of the ledger.
        unfinished: Whether a source may be kept already that is not on record yet: the run is going on, or broke off.
        whole: Whether all of the ledger can be read; else any source may be on record.
    """
    yield from (f for name, f in sources.findings.items() if not _TEMPORARY.fullmatch(name))
    for digest, what in recorded(state).items():
        name = object_path(Path(), digest).as_posix()
        if digest not in sources.sound and Path(name).name not in sources.findings:
            yield Finding("files", shown(name), f"the source of {what} is missing")
    strays = sorted(sources.sound.keys() - recorded(state).keys()) if whole else []
    for digest in strays:
        name = object_path(Path(), digest).as_posix()
        if unfinished and len(strays) == 1:
            what = "this source is not on record: the run was about to try it"
            yield Finding("files", name, what, remark=True)
        else:
            yield Finding("files", name, "no line of the ledger speaks of this source")


def recorded(state: RunState) -> dict[str, str]:
    """Hash of every source on record, with what it is."""
    trials = {trial.source: f"trial {trial.number}" for trial in state.trials.values()}
    return {**trials, state.run.source_sha256: "the baseline"}


def version_findings(
    folder: Path, sources: Sources, state: RunState, unfinished: bool, whole: bool
) -> Iterator[Finding]:
    """The version file of each round holds the version that the round shows, byte by byte.

    Args:
        folder: The folder that is audited.
        sources: The sources by hash.
        state: The fold of the ledger.
        unfinished: Whether the round that is open may have its file already.
        whole: Whether all of the ledger can be read; else any round may have been finished.
    """
    operator = state.run.operator
    names = {shown_file(operator, r.number): shown_source(r) for r in state.finished_rounds}
    for name, digest in names.items():
        yield from _same(folder, name, digest, sources, "the version that this round shows")
    current = state.open_round
    allowed = {shown_file(operator, current.number)} if current and unfinished else set()
    if not whole:
        return
    pattern = re.compile(re.escape(operator) + r"_opt_v[0-9]+\.py")
    for path in _listed(folder):
        if pattern.fullmatch(path.name) and path.name not in names.keys() | allowed:
            yield Finding("files", path.name, "no finished round of the ledger has this version")


def shown_file(operator: str, number: int) -> str:
    """Name of a round's version file."""
    return f"{operator}_opt_v{number}.py"


def shown_source(taken: Round) -> str:
    """Hash of the source that a round's version file holds."""
    return taken.shown.source if taken.shown is not None else taken.incumbent


def _same(folder: Path, name: str, digest: str, sources: Sources, whose: str) -> Iterator[Finding]:
    """Whether a file has a hash; where it has not, the first line that differs."""
    try:
        data = read(folder / name)
    except UnreadableError as error:
        yield Finding("files", name, str(error))
        return
    if hashlib.sha256(data).hexdigest() == digest:
        return
    what = f"this is not {whose}"
    right = sources.sound.get(digest)
    if right is None:
        yield Finding("files", name, what, expected=f"sha256 {digest}")
        return
    at = first_difference(data, right)
    found, expected = (_line(text, at) for text in (data, right))
    yield Finding("files", name, what, line_of(right, at), found=found, expected=expected)


def _line(data: bytes, at: int) -> str:
    """The line in which a byte lies."""
    start = data.rfind(b"\n", 0, at) + 1
    text = data[start:].partition(b"\n")[0].decode("utf-8", "backslashreplace")
    return shown(text, at - start)


def delivered_findings(
    folder: Path, sources: Sources, state: RunState, lines: list[Line]
) -> Iterator[Finding]:
    """`{op}.py` is the version measured last, and `baseline.py` the source as given."""
    deliveries = [line.event for line in lines if isinstance(line.event, Delivered)]
    name = f"{state.run.operator}.py"
    if deliveries:
        yield from _best(folder, name, sources, state, deliveries[-1])
        yield from _baseline(folder, sources, state, deliveries[-1].files)
        return
    final = state.final.source if state.final is not None else ""
    if (folder / name).is_file():
        if final:
            yield from _same(folder, name, final, sources, "the version measured last")
        else:
            yield Finding("files", name, "the ledger knows of no delivery")
    if final and os.path.lexists(folder / BASELINE):
        yield from _baseline(folder, sources, state, {})


def _best(
    folder: Path, name: str, sources: Sources, state: RunState, last: Delivered
) -> Iterator[Finding]:
    """After a resumption the file is that of the last delivery, until the run delivers again."""
    expected = last.source
    if state.delivered is None and state.stop is not None and state.final is not None:
        try:
            if hashlib.sha256(read(folder / name)).hexdigest() == state.final.source:
                return
        except UnreadableError:
            pass
    yield from _same(folder, name, expected, sources, "the version measured last")


def _baseline(
    folder: Path, sources: Sources, state: RunState, files: Mapping[str, str]
) -> Iterator[Finding]:
    path = folder / BASELINE
    if path.is_symlink() and not path.exists() and path.readlink().name == state.run.source:
        what = f"it is a link that leads nowhere ({path.readlink()}): the folder was moved; {OBJECTS}/ holds the baseline"
        yield Finding("files", BASELINE, shown(what), remark=True)
        return
    with_bom = BOM + sources.sound.get(state.run.source_sha256, b"")
    expected = state.run.source_sha256
    if hashlib.sha256(with_bom).hexdigest() == files.get(BASELINE):
        expected = files[BASELINE]
    yield from _same(folder, BASELINE, expected, sources, "the source as it was given")


def leftover_findings(folder: Path, running: bool) -> Iterator[Finding]:
    """What a run leaves only when it breaks off."""
    if running:
        return
    if os.path.lexists(folder / OWNER):
        yield Finding("files", OWNER, "it was left by a run that broke off", remark=True)
    for path in (*_listed(folder), *_listed(folder / OBJECTS)):
        if _TEMPORARY.fullmatch(path.name):
            name = path.relative_to(folder).as_posix()
            yield Finding("files", name, "it was left by a write that was cut short", remark=True)
