"""The check as a whole: read the files, parse them, ask every group of rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opratchet.errors import BadInput
from opratchet.judge.layout import apart, fallback, loops, testing, tiles
from opratchet.judge.layout.code import Code, parse
from opratchet.judge.layout.kernel import Kernel, check_entry, check_no_entry
from opratchet.judge.layout.model import Finding, LayoutFiles


def check_layout(folder: Path, *, tuned: bool = False) -> list[Finding]:
    """Check the folder of an operator. Nothing in it is imported or run.

    Args:
        folder: The folder, named after the operator.
        tuned: Whether the implementation has been tuned: then an `unroll_list` may hold several values.

    Returns:
        What was found, by file, line and rule; empty when the layout is kept.

    Raises:
        BadInput: there is no such folder, or nothing of an operator is in it.
    """
    return check_text(read_folder(folder), tuned=tuned)


def check_text(files: LayoutFiles, *, tuned: bool = False) -> list[Finding]:
    """Check texts that have been read; otherwise as `check_layout`. Never raises, whatever the texts are."""
    return sorted(set(_check(files, tuned=tuned)), key=lambda finding: finding.place)


def read_folder(folder: Path) -> LayoutFiles:
    """The texts of an operator.

    Raises:
        BadInput: there is no such folder, or nothing of an operator is in it.
    """
    if not folder.is_dir():
        raise BadInput(
            "there is no such folder",
            where=str(folder),
            fix="Give the folder of an operator, e.g. custom/softmax.",
        )
    place = folder.resolve()
    names = LayoutFiles(place.name, None, None, None, None)
    texts = [_read(place / name) for name in names.texts]
    if not any(text is not None for text in texts):
        raise BadInput(
            "this is no folder of a PyPTO operator",
            where=str(folder),
            fix=f"It is named after its operator and holds {', '.join(names.texts)}.",
        )
    return LayoutFiles(place.name, *texts)


def _read(path: Path) -> str | None:
    """Text of a file; bytes that are no UTF-8 are kept as lone surrogates, where the check finds them. None without one."""
    try:
        return path.read_bytes().decode("utf-8-sig", "surrogateescape") if path.is_file() else None
    except OSError:
        return None


def _check(files: LayoutFiles, *, tuned: bool) -> Iterator[Finding]:
    parsed: dict[str, Code] = {}
    for name, text in files.texts.items():
        match _readable(name, text):
            case Finding() as finding:
                yield finding
            case Code() as code:
                parsed[name] = code
    golden, test = parsed.get(files.golden_name), parsed.get(files.test_name)
    if impl := parsed.get(files.impl_name):
        yield from _check_impl(impl, files.op, tuned=tuned)
    if golden:
        yield from check_no_entry(golden)
        yield from apart.check_golden(golden, files.op)
    if test:
        yield from check_no_entry(test)
        yield from apart.check_test(test, files.op)
        yield from testing.check(test, golden, files.op)


def _check_impl(code: Code, op: str, *, tuned: bool) -> Iterator[Finding]:
    kernel = Kernel(code)
    yield from check_entry(code)
    yield from apart.check_impl(code, op)
    yield from tiles.check(kernel)
    yield from loops.check(kernel, tuned=tuned)
    yield from fallback.check(kernel)


def _readable(name: str, text: str | None) -> Code | Finding | None:
    """The code of a Python file, or why it cannot be read; None for a document."""
    if text is None:
        return Finding("missing-file", name, 1, "there is no such file, or it cannot be read")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        return Finding("syntax", name, line, "the file is not UTF-8 here: save it as UTF-8")
    return parse(name, text) if name.endswith(".py") else None
