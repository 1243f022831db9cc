"""A change of one byte anywhere is found, and the file is named. And nothing, however odd, gives a traceback."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opratchet.audit.examine import examine
from opratchet.errors import OpratchetError
from opratchet.ledger.store import LEDGER
from tests.audit.recorded import Events, forge

settings_here = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def parts(folder: Path) -> list[str]:
    """All files that the run wrote."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def damaged(data: bytes, place: int, how: str, byte: int) -> bytes:
    """The bytes with one changed, taken out or put in."""
    if how == "insert":
        return data[:place] + bytes([byte]) + data[place:]
    if how == "delete":
        return data[:place] + data[place + 1 :]
    return data[:place] + bytes([data[place] ^ (byte or 1)]) + data[place + 1 :]


@settings_here
@given(data=st.data(), how=st.sampled_from(["flip", "insert", "delete"]), byte=st.integers(0, 255))
def test_a_change_of_one_byte_is_found_and_named(
    original: Path, data: st.DataObject, how: str, byte: int
) -> None:
    name = data.draw(st.sampled_from(parts(original)))
    path = original / name
    before = path.read_bytes()
    place = data.draw(st.integers(0, len(before) - (how != "insert")))
    try:
        path.write_bytes(damaged(before, place, how, byte))
        audit = examine(original)
    finally:
        path.write_bytes(before)
    assert name in {finding.file for finding in audit.findings}


@settings_here
@given(data=st.data(), how=st.sampled_from(["flip", "insert", "delete"]), byte=st.integers(0, 255))
def test_every_byte_of_the_completion_report_counts(
    original: Path, data: st.DataObject, how: str, byte: int
) -> None:
    path = original / "stage_result.md"
    before = path.read_bytes()
    start = before.index(b"- output")
    place = data.draw(st.integers(start, before.index(b"\n", start)))
    try:
        path.write_bytes(damaged(before, place, how, byte))
        audit = examine(original)
    finally:
        path.write_bytes(before)
    assert {finding.file for finding in audit.findings} == {path.name}


@settings_here
@given(
    lines=st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.integers(0, 60),
            st.sampled_from([b"{}", b'{"seq":0}', b"[" * 5000, b"\xff\xfe", b""]),
        ),
        max_size=12,
    ),
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
)
def test_no_ledger_gives_a_traceback(
    original: Path, tmp_path: Path, lines: list[bytes | int], end: bytes
) -> None:
    real = (original / LEDGER).read_bytes().splitlines()
    made = [real[line % len(real)] if isinstance(line, int) else line for line in lines]
    (tmp_path / LEDGER).write_bytes(b"\n".join(made) + end)
    assert not examine(tmp_path).is_clean


ODD = [
    "",
    "\0",
    "../..",
    "\x1b[2J",
    0,
    -1,
    1e308,
    10**30,
    None,
    True,
    [],
    {},
    "zh",
    "NaN",
    "9" * 400,
]


def leaves(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in an event."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        yield (*way, key)
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*way, key))


@settings_here
@given(data=st.data())
def test_no_event_gives_a_traceback(original: Path, tmp_path: Path, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path)
    shutil.copytree(original, tmp_path, symlinks=True)

    def change(events: Events) -> None:
        event = data.draw(st.sampled_from(events))
        *way, last = data.draw(st.sampled_from(list(leaves(event))))
        for key in way:
            event = event[key]
        event[last] = data.draw(st.sampled_from(ODD))

    forge(tmp_path, change, reports=data.draw(st.booleans()))
    audit = examine(tmp_path)
    assert all(text.isprintable() for f in audit.findings for text in (f.where, f.what, f.found))
    json.dumps(audit.record())


@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "loop", "nothing"])
def test_what_is_no_file_is_told(original: Path, run: Path, kind: str) -> None:
    for name in ("opt_log.md", "rmsnorm.py", "rmsnorm_opt_v1.py", "run.pid", "objects/x.py"):
        path = run / name
        path.unlink(missing_ok=True)
        make(path, kind)
    audit = examine(run)
    assert {"opt_log.md", "rmsnorm.py", "rmsnorm_opt_v1.py"} <= {f.file for f in audit.findings}


def make(path: Path, kind: str) -> None:
    """Something that is no plain file."""
    match kind:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to("nowhere")
        case "loop":
            path.symlink_to(path.name)


@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "loop", "nothing"])
def test_a_ledger_that_is_no_file_is_bad_input(tmp_path: Path, kind: str) -> None:
    make(tmp_path / LEDGER, kind)
    with pytest.raises(OpratchetError) as caught:
        examine(tmp_path)
    assert caught.value.exit_code == 2
