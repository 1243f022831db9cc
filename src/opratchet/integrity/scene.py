"""The scene of the crime: an operator's folder with all that a candidate might want to change, watched from outside.

It looks as the folder of a real operator in the middle of a run: source, manifest, a test, a ledger, another candidate. What
is changed in it while a candidate is tried is named, and put back before the next one; so is what a candidate leaves behind
where it may write: in the folders for temporary files, in the shared memory, among the user's start-up files.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import site
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import opratchet.gates
import opratchet.judge.accuracy

MARK = "opratchet-exploit-"
DECOYS = {
    "test_softmax.py": "def test_softmax():\n    assert False, 'a test that nobody runs'\n",
    "perf_opt/ledger.jsonl": '{"seq": 0, "event": {"type": "noted", "text": "a ledger that nobody reads"}}\n',
    "perf_opt/softmax_opt_v1.py": "# a candidate of an earlier round\n",
}


class Scene:
    """A folder with an operator in the middle of a run. A context manager.

    Args:
        host: Folder whose files the operator consists of.

    Attributes:
        folder: Where it lies.
    """

    def __init__(self, host: Path) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="opratchet-selftest-"))
        self.folder = self._home / "examples" / "activation" / "softmax"
        shutil.copytree(host, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in DECOYS.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._was = self._content()
        self._dates = _dates()

    def _content(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}

    def damage(self) -> list[str]:
        """What is not as it was, each in a few words; everything is put back."""
        return [*self._changed_files(), *_left_behind(), *self._changed_dates()]

    def _changed_files(self) -> Iterator[str]:
        now = self._content()
        for name in sorted({*self._was, *now}):
            if self._was.get(name) == now.get(name):
                continue
            path = self.folder / name
            if name in self._was:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._was[name])
                yield f"{name} was changed on disk"
            else:
                path.unlink()
                yield f"{name} was written"

    def _changed_dates(self) -> Iterator[str]:
        for path, was in self._dates.items():
            if path.stat().st_mtime_ns != was:
                os.utime(path, ns=(was, was))
                yield f"the tool's own {path.name} could be changed"

    def __enter__(self) -> Scene:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self._home, ignore_errors=True)


def _dates() -> dict[Path, int]:
    files = (opratchet.judge.accuracy.__file__, opratchet.gates.__file__)
    return {path: path.stat().st_mtime_ns for path in map(Path, files)}


def _left_behind() -> Iterator[str]:
    """Files with the mark of the corpus outside of the scene; each is removed."""
    for folder in (tempfile.gettempdir(), "/dev/shm", site.getusersitepackages()):
        for path in Path(folder).glob(f"{MARK}*"):
            with contextlib.suppress(OSError):
                path.unlink()
            yield f"{path.name} was left in {folder}"
