"""The append-only store: `ledger.jsonl`, one event a line, chained by hash, flushed to disk before anything else goes on.

Each line is a JSON object `{"seq", "at", "prev", "event", "hash"}`; `hash` is the SHA-256 of the line without it
and `prev` the hash of the line before, so a change anywhere breaks the chain from there on. A last line without its
newline is what a crash in mid-write leaves; it is dropped on opening, and nothing else is ever forgiven.
Sources are kept beside it by their own hash in `objects/`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from pydantic import ValidationError

from opratchet.errors import LedgerError, OpratchetError
from opratchet.ledger.collector import collector_rests
from opratchet.ledger.events import LINE, Event, Line
from opratchet.ledger.files import atomic_write, cannot_be_written, clear_temporaries

LEDGER = "ledger.jsonl"
OBJECTS = "objects"
OWNER = "run.pid"
LOCK_SECONDS = 1.0  # `holder` takes the lock for a moment, too
_HASH_KEY = b',"hash":"'
_TAIL = len(_HASH_KEY) + 64 + len(b'"}')


def seal(body: bytes) -> bytes:
    """A line's JSON object without its closing brace's hash, with the hash appended."""
    digest = hashlib.sha256(body).hexdigest().encode()
    return body[:-1] + _HASH_KEY + digest + b'"}'


def unseal(raw: bytes) -> tuple[bytes, str]:
    """The JSON object without its hash, and the hash that it claims.

    Raises:
        ValueError: the line does not end in a hash.
    """
    head, tail = raw[-_TAIL : -_TAIL + len(_HASH_KEY)], raw[-2:]
    if len(raw) <= _TAIL or head != _HASH_KEY or tail != b'"}':
        raise ValueError("the line does not end in a hash")
    return raw[:-_TAIL] + b"}", raw[-66:-2].decode("ascii", "replace")


def read_lines(path: Path) -> list[Line]:
    """All events of a ledger, checked against the chain.

    Raises:
        LedgerError: the file is missing, or a complete line is damaged, out of order or not chained.
    """
    try:
        with path.open("rb") as file:
            return _all_checked(file, path)
    except OSError as error:
        raise LedgerError(
            f"the ledger cannot be read: {error.strerror}",
            where=str(path),
            fix="Give the folder that a run left behind (perf_opt).",
        ) from None


def split_torn(data: bytes) -> tuple[bytes, bytes]:
    """The complete lines, and what follows the last newline (empty unless a write was cut short)."""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _all_checked(file: BinaryIO, path: Path) -> list[Line]:
    with collector_rests():
        return list(_checked(file, path))


def _checked(file: BinaryIO, path: Path) -> Iterator[Line]:
    """The events of all complete lines, one after another: a ledger of a long run is never in memory as text."""
    previous = ""
    for number, ended in enumerate(file):
        raw = ended.removesuffix(b"\n")
        if raw == ended:
            return
        where = f"{path}:{number + 1}"
        try:
            body, claimed = unseal(raw)
            line = LINE.validate_json(body)
        except (ValueError, ValidationError) as error:
            first = str(error).splitlines()[0]
            raise LedgerError(f"this line is damaged ({first})", where=where, fix=_DAMAGE) from None
        if hashlib.sha256(body).hexdigest() != claimed:
            raise LedgerError(
                "this line was changed after it was written", where=where, fix=_DAMAGE
            )
        if line.prev != previous or line.seq != number:
            raise LedgerError(
                "a line before this one is missing, added or moved", where=where, fix=_DAMAGE
            )
        previous = claimed
        yield line


_DAMAGE = "Restore the file from a copy, or start a new run in another folder (--out)."


class Ledger:
    """A ledger open for writing; holds an exclusive lock, so two runs never share a folder.

    Args:
        folder: The `perf_opt` folder; it is created.
        create: True for a new run (the ledger must not exist), False to continue one.

    Raises:
        LedgerError: the folder is in use, or the ledger exists / does not exist, or it is damaged.
        OpratchetError: the folder cannot be written to.
    """

    def __init__(self, folder: Path, *, create: bool) -> None:
        self.folder = folder
        self.path = folder / LEDGER
        if not create and not self.path.exists():
            raise LedgerError(
                "there is no ledger here", where=str(folder), fix="Start a run with `tune`."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _require_writable(folder)
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise cannot_be_written(self.path, error) from None
        try:
            self._lock()
            self.lines = self._open_existing()
            if create and self.lines:
                raise LedgerError(
                    "a run is recorded here already",
                    where=str(self.path),
                    fix="Continue it with `resume`, name another folder with --out, or pass --fresh.",
                )
        except OpratchetError:
            self._file.close()
            raise

    def _lock(self) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while not self._is_locked():
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"another run (process {_owner(self.folder) or 'unknown'}) is writing here",
                    where=str(self.folder),
                    fix="Wait for it, stop it with `stop`, or name another folder with --out.",
                )
            time.sleep(0.05)
        try:
            (self.folder / OWNER).write_text(f"{os.getpid()}\n")
        except OSError as error:
            raise cannot_be_written(self.folder / OWNER, error) from None

    def _is_locked(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _open_existing(self) -> list[Line]:
        complete, torn = split_torn(self.path.read_bytes())
        lines = _all_checked(io.BytesIO(complete), self.path)
        self._length = len(complete)
        if torn:
            os.truncate(self.path, self._length)
            os.fsync(self._file.fileno())
        self._previous = unseal(complete.split(b"\n")[-2])[1] if complete else ""
        clear_temporaries(self.folder, self.folder / OBJECTS)
        return lines

    def append(self, event: Event) -> Line:
        """Write one event and flush it to disk; when this returns, the event is on record.

        Raises:
            OpratchetError: it cannot be written; what was on record before is.
        """
        return self.append_all([event])[0]

    def append_all(self, events: Sequence[Event]) -> list[Line]:
        """Write events that make sense only together, in one step.

        Raises:
            OpratchetError: they cannot be written; what was on record before is.
        """
        lines: list[Line] = []
        data, previous = b"", self._previous
        for seq, event in enumerate(events, len(self.lines)):
            now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            lines.append(Line(seq=seq, at=now, prev=previous, event=event))
            sealed = seal(lines[-1].model_dump_json().encode("utf-8"))
            previous = unseal(sealed)[1]
            data += sealed + b"\n"
        self._write(data)
        self._previous = previous
        self.lines += lines
        return lines

    def _write(self, data: bytes) -> None:
        """All of it, on disk; or nothing, and an error."""
        self._require_place()
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            # What is left of a part of a line, should this fail too, is dropped when the ledger is opened again.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), self._length)
            raise cannot_be_written(self.path, error) from None
        self._length += len(data)

    def _require_place(self) -> None:
        """Nobody may have moved, removed or replaced the ledger: what is written to it then would be lost, or be in another run's.

        Raises:
            LedgerError: somebody has.
        """
        mine = os.fstat(self._file.fileno())
        if not self._is_in_place(mine):
            raise LedgerError(
                "the ledger was moved, removed or replaced while the run went on",
                where=str(self.path),
                fix=f"{self._whereabouts()} `resume` goes on from a folder that is put back.",
            )
        if mine.st_size != self._length:
            raise LedgerError(
                "something else wrote to the ledger while the run went on",
                where=str(self.path),
                fix=_DAMAGE,
            )

    def _is_in_place(self, mine: os.stat_result) -> bool:
        try:
            return os.path.samestat(self.path.stat(), mine)
        except OSError:
            return False

    def _whereabouts(self) -> str:
        """Where the ledger is now, for people; Linux tells."""
        try:
            now = str(Path(f"/proc/self/fd/{self._file.fileno()}").readlink())
        except OSError:
            return "Nobody can tell where it is now."
        return "It is gone." if now.endswith(" (deleted)") else f"It is now {now}."

    def keep(self, text: str) -> str:
        """Store a source by its hash and give the hash back.

        Raises:
            OpratchetError: it cannot be written.
        """
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        path = object_path(self.folder, digest)
        if not path.exists():
            self._require_place()
            try:
                path.parent.mkdir(exist_ok=True)
            except OSError as error:
                raise cannot_be_written(path.parent, error) from None
            atomic_write(path, text)
        return digest

    def close(self) -> None:
        """Release the folder."""
        if self._file.closed:
            return
        if self._is_in_place(os.fstat(self._file.fileno())):
            with contextlib.suppress(OSError):
                (self.folder / OWNER).unlink()
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _require_writable(folder: Path) -> None:
    """A run makes files besides its ledger: better to know at once that it cannot.

    Raises:
        PermissionError: it cannot.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _owner(folder: Path) -> int | None:
    """Process id of the run that wrote here last; None when it cleaned up, or never was."""
    try:
        return int((folder / OWNER).read_text(errors="replace"))
    except (OSError, ValueError):
        return None


def holder(folder: Path) -> int | None:
    """Process id of the run that writes in this folder now; None when none does."""
    pid = _owner(folder)
    try:
        file = (folder / LEDGER).open("rb")
    except OSError:
        return None
    if pid is None:
        file.close()
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return pid
    return None


def object_path(folder: Path, digest: str) -> Path:
    """Where the source with this hash lies."""
    return folder / OBJECTS / f"{digest}.py"


def read_object(folder: Path, digest: str) -> str:
    """A source by its hash.

    Raises:
        LedgerError: it is missing, or its content does not match its hash.
    """
    path = object_path(folder, digest)
    try:
        data = path.read_bytes()
    except OSError:
        raise LedgerError("a recorded source is missing", where=str(path), fix=_DAMAGE) from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise LedgerError("a recorded source was changed", where=str(path), fix=_DAMAGE)
    return data.decode("utf-8")
