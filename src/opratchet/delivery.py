"""What a run leaves behind besides its ledger: the version of each round, the best version, the baseline."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from opratchet.ledger.events import Delivered
from opratchet.ledger.files import atomic_write
from opratchet.ledger.state import RunState
from opratchet.ledger.store import read_object
from opratchet.operator.model import Operator

BASELINE = "baseline.py"


def version_name(operator: Operator, round_number: int) -> str:
    """Name of a round's version file, as in the procedure's tree: `{op}_opt_v{N}.py`."""
    return f"{operator.name}_opt_v{round_number}.py"


def write_version(folder: Path, name: str, text: str) -> None:
    """Write the version file of a round."""
    atomic_write(folder / name, text)


def deliver(
    folder: Path, operator: Operator, state: RunState, seconds: dict[str, float]
) -> Delivered:
    """Write `{op}.py` and `baseline.py`, and say which files stand, each with its hash.

    The best version is the one measured last; when nothing was better it is the baseline.
    """
    best = state.best
    name = f"{operator.name}.py"
    atomic_write(folder / name, read_object(folder, best))
    place_baseline(folder, operator, state.run.source_sha256)
    restore_versions(folder, state)
    versions = [r.version for r in state.finished_rounds if r.version]
    files = {entry: _sha256(folder / entry) for entry in (name, BASELINE, *versions)}
    return Delivered(source=best, files=files, seconds=seconds)


def restore_versions(folder: Path, state: RunState) -> None:
    """Write the version files anew that are not what their rounds left, e.g. because somebody removed one."""
    for finished in state.finished_rounds:
        path = folder / finished.version
        digest = finished.shown.source if finished.shown is not None else finished.incumbent
        if finished.version and not (path.is_file() and _sha256(path) == digest):
            write_version(folder, finished.version, read_object(folder, digest))


def place_baseline(folder: Path, operator: Operator, digest: str) -> None:
    """`baseline.py`: a link to the source beside the folder, or a copy where a link would not fit."""
    path = folder / BASELINE
    if folder.resolve().parent == operator.source.resolve().parent:
        with contextlib.suppress(OSError):  # not every file system has links
            path.unlink(missing_ok=True)
            path.symlink_to(Path("..") / operator.source.name)
            return
    atomic_write(path, read_object(folder, digest))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
