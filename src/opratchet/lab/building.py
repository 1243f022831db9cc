"""What the supervisor makes of a build: answers that are read with distrust, and built files taken out of the candidate's reach.

A build worker runs the candidate's source, so whatever it sends may be forged. It has ended, with all that it has started,
before anything in its folder is looked at. Then each built file is copied, under the hash of its content, to a folder that no
candidate sees, and the job's folder is removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opratchet.backend.base import Artifact
from opratchet.lab.builders import Worker
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.limits import Limits
from opratchet.ledger.words import Outcome

MOST_FILES = 20_000  # in a job's folder
_MAY_FAIL = {outcome.value: outcome for outcome in (Outcome.COMPILE_FAILED, Outcome.OUT_OF_MEMORY)}


def answers(
    worker: Worker, names: Sequence[str], until: float, folder: Path, limits: Limits
) -> dict[str, Artifact]:
    """What a build worker answers, by workload. The worker has ended afterwards.

    Args:
        worker: The worker.
        names: Workloads in the order in which they are built.
        until: When its time is over, by the monotonic clock.
        folder: The job's folder.
        limits: Limits of what it leaves there.

    Raises:
        WorkerFailed: it did not build, took too much of anything, or sent what is no answer.
    """

    def too_much() -> str:
        return crowded(folder, limits.folder_bytes)

    found: dict[str, Artifact] = {}
    try:
        for name in names:
            try:
                reply = worker.receive(until - time.monotonic(), too_much)
            except WorkerFailed as failure:
                raise failure.on(name) from None
            found[name] = _artifact(name, reply, worker)
    finally:
        worker.close()
    return found


def _artifact(name: str, reply: Mapping[str, Any], worker: Worker) -> Artifact:
    if "error" in reply:
        outcome = _MAY_FAIL.get(str(reply.get("kind")), Outcome.COMPILE_FAILED)
        raise WorkerFailed(outcome, f"{name}: {reply['error']!s:.4000}", worker.output())
    try:
        return _described(reply["artifact"])
    except (KeyError, TypeError, ValueError, AttributeError):
        reason = f"{name}: what the build worker sent describes no artefact"
        raise WorkerFailed(Outcome.CHEATED, reason, worker.output()) from None


def _described(data: Mapping[str, Any]) -> Artifact:
    """An artefact as it is described.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the description is none.
    """
    artifact = Artifact.from_json(data)
    words = [artifact.path, artifact.symbol, artifact.code_sha256]
    words += [*artifact.reports, *artifact.reports.values()]
    words += [word for spec in artifact.tensors for word in (spec.name, spec.dtype)]
    numbers = [extent for spec in artifact.tensors for extent in spec.shape]
    numbers += artifact.work.values()
    if not all(isinstance(word, str) for word in words):
        raise TypeError("a name is no text")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise TypeError("a size is no number")
    return artifact


def crowded(folder: Path, most_bytes: int) -> str:
    """What is too much in a folder, or an empty text."""
    taken = files = 0
    for place, folders, names in os.walk(folder):
        files += len(folders) + len(names)
        for name in names:
            try:
                taken += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118
            except OSError:
                continue
        if taken > most_bytes:
            return f"filled its folder with more than {most_bytes >> 20} MiB"
        if files > MOST_FILES:
            return f"filled its folder with more than {MOST_FILES} files"
    return ""


def require_unchanged(source: Path, text: str) -> None:
    """The source is what it was before the build: what was judged statically is what was built.

    Raises:
        WorkerFailed: it is not.
    """
    try:
        same = not source.is_symlink() and source.read_bytes() == text.encode("utf-8")
    except OSError:
        same = False
    if not same:
        raise WorkerFailed(Outcome.CHEATED, "the build changed the candidate's source file")


def take(artifact: Artifact, folder: Path, store: Path, most_bytes: int) -> Artifact:
    """The artefact with its files copied out of the job's folder.

    Args:
        artifact: As the build worker described it.
        folder: The job's folder.
        store: Where to put the files, each in a folder named after the hash of its content.
        most_bytes: Size of a file at most.

    Raises:
        WorkerFailed: there is no such file, it is no ordinary file, or it lies elsewhere.
    """
    path = _taken(artifact.path, folder, store, most_bytes)
    reports = artifact.reports.items()
    taken = {name: _taken(place, folder, store, most_bytes) for name, place in reports}
    return replace(artifact, path=path, reports=taken)


def _taken(named: str, folder: Path, store: Path, most_bytes: int) -> str:
    """One file, copied; gives its new path."""
    path = Path(str(named))
    if not _is_inside(path, folder):
        reason = f"the build named a file outside of its folder: {str(path)!r:.200}"
        raise WorkerFailed(Outcome.CHEATED, reason)
    content = _content(path, most_bytes)
    kept = store / hashlib.sha256(content).hexdigest() / f"artifact{path.suffix[:16]}"
    if not kept.is_file() or kept.read_bytes() != content:  # one that was spoilt is made good
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f"{os.getpid()}-{time.monotonic_ns()}.part")
        part.write_bytes(content)
        part.chmod(0o555)
        part.replace(kept)
    return str(kept)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path leads into a folder, whatever links there are on the way."""
    try:
        real, home = os.path.realpath(path), os.path.realpath(folder)
    except ValueError:
        return False
    return path.is_absolute() and os.path.commonpath([real, home]) == home


def _content(path: Path, most_bytes: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WorkerFailed(Outcome.CHEATED, "the built file is a link") from None
        reason = f"the build left no file: {error.strerror}"
        raise WorkerFailed(Outcome.COMPILE_FAILED, reason) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WorkerFailed(Outcome.CHEATED, "the built file is no ordinary file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        reason = f"the built file is larger than {most_bytes >> 20} MiB"
        raise WorkerFailed(Outcome.COMPILE_FAILED, reason)
    return content


def require_untouched(artifact: Artifact) -> None:
    """The files that were taken are still what they were: the folder of each is named after its content.

    Raises:
        WorkerFailed: something has changed one.
    """
    if not all(_is_as_named(Path(path)) for path in (artifact.path, *artifact.reports.values())):
        raise WorkerFailed(Outcome.CHEATED, "a built file was changed after it had been taken")


def _is_as_named(path: Path) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == path.parent.name
    except OSError:
        return False


def remove(folder: Path) -> None:
    """Remove a folder whatever a candidate has made of it: without permissions, or nested beyond all measure."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], capture_output=True, check=False)
