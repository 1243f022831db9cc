"""Whether a report names the folder that it lies in.

How the folder was called when a report was written is not on record: absolutely, or from wherever the command was given.
A folder may be copied or moved afterwards, which is nobody's fault. So a path that leads to another place is worth a
remark, unless it is but a character away from one that leads here: then it was changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from opratchet.audit.findings import Finding, shown
from opratchet.audit.reading import first_difference
from opratchet.ledger.store import LEDGER

_OUTPUT = re.compile(r"^- output: (.+)$", re.MULTILINE)


def written_folder(text: str, folder: Path) -> PurePath:
    """The folder that a report names in its line `output`; the folder itself when it names none."""
    found = _OUTPUT.search(text)
    return PurePath(found[1]).parent if found else folder


def place_findings(name: str, text: str, folder: Path, file: str) -> Iterator[Finding]:
    """Whether a report says where the delivered file lies.

    Args:
        name: Name of the report.
        text: The report.
        folder: The folder that is audited.
        file: Name of the delivered file.
    """
    found = _OUTPUT.search(text)
    if found is None or leads_to(found[1], folder / file):
        return
    line = text.count("\n", 0, found.start()) + 1
    there, here = shown(found[1]), shown((folder.resolve() / file).as_posix())
    if _is_run(PurePath(found[1]).parent) or not is_near(found[1], folder / file):
        what = "the folder lies elsewhere than when this report was written"
        yield Finding("views", name, what, line, "output", there, here, remark=True)
        return
    what = "this path does not lead to the delivered file; if the folder was moved, `opratchet report` writes it anew"
    yield Finding("views", name, what, line, "output", there, here)


def leads_to(written: str, file: Path) -> bool:
    """Whether a path leads to a file, from some folder that it may have been given in."""
    plain = os.path.normpath(written)
    if Path(plain).is_absolute():
        return plain in _absolute(file)
    while plain.startswith("../"):
        plain = plain[3:]
    if Path.cwd() != Path("/") and f"/{plain}" in _absolute(file):
        return False  # the root alone could have been the place that it was given in: its first character is missing
    return plain in _tails(file)


def is_near(written: str, file: Path) -> bool:
    """Whether one character was changed, added or taken out of a path that leads to a file."""
    return any(_one_apart(written, right) for right in (*_absolute(file), *_tails(file)))


def _absolute(file: Path) -> set[str]:
    return {os.path.normpath(Path.cwd() / file), (file.parent.resolve() / file.name).as_posix()}


def _tails(file: Path) -> set[str]:
    paths = [Path(path).parts[1:] for path in _absolute(file)]
    return {"/".join(parts[start:]) for parts in paths for start in range(len(parts))}


def _one_apart(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    same = first_difference(one, other)
    rest_one, rest_other = one[same:], other[same:]
    if len(one) == len(other):
        return rest_one[1:] == rest_other[1:]
    return rest_one[1:] == rest_other or rest_one == rest_other[1:]


def _is_run(folder: PurePath) -> bool:
    try:
        return (Path(folder) / LEDGER).is_file()
    except (OSError, ValueError):
        return False
