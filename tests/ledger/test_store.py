"""The append-only store: what is written is there, what is damaged is named, what was torn is dropped."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opratchet.errors import LedgerError
from opratchet.ledger.events import Noted
from opratchet.ledger.store import LEDGER, Ledger, read_lines, read_object


def write(folder: Path, count: int = 3) -> Path:
    """A ledger with some remarks; gives its path."""
    with Ledger(folder, create=True) as ledger:
        for number in range(count):
            ledger.append(Noted(text=f"备注 {number}"))
    return folder / LEDGER


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    lines = read_lines(write(tmp_path))
    assert [line.event for line in lines] == [Noted(text=f"备注 {n}") for n in range(3)]
    assert [line.seq for line in lines] == [0, 1, 2]


def test_a_line_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    with Ledger(tmp_path, create=True) as ledger:
        ledger.append(Noted(text="x"))
        assert len(read_lines(tmp_path / LEDGER)) == 1


def test_every_cut_of_the_last_record_leaves_the_lines_before_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    data = path.read_bytes()
    start = data[:-1].rfind(b"\n") + 1
    for end in range(start, len(data)):
        path.write_bytes(data[:end])
        with Ledger(tmp_path, create=False) as ledger:
            assert len(ledger.lines) == 2
            ledger.append(Noted(text="after the crash"))
        assert [line.seq for line in read_lines(path)] == [0, 1, 2]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10**6), flip=st.integers(1, 255))
def test_any_changed_byte_is_found_and_its_line_named(
    tmp_path: Path, position: int, flip: int
) -> None:
    path = tmp_path / "run" / LEDGER
    if not path.exists():
        write(path.parent)
        (tmp_path / "copy").write_bytes(path.read_bytes())
    data = bytearray((tmp_path / "copy").read_bytes())
    position %= (
        len(data) - 1
    )  # the last newline: without it the last line is torn, which is no damage
    data[position] ^= flip
    path.write_bytes(data)
    with pytest.raises(LedgerError) as caught:
        read_lines(path)
    number = int(caught.value.where.rsplit(":", 1)[1])
    changed = bytes(data[:position]).count(b"\n") + 1
    assert number in (changed, changed + 1)


@pytest.mark.parametrize("order", [[0, 2], [1, 0, 2], [0, 0, 1, 2], [1, 2]])
def test_missing_doubled_and_moved_lines_are_found(tmp_path: Path, order: list[int]) -> None:
    path = write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in order))
    with pytest.raises(LedgerError, match="missing, added or moved"):
        read_lines(path)


def _hold(folder: str, ready: multiprocessing.synchronize.Event) -> None:
    with Ledger(Path(folder), create=True):
        ready.set()
        time.sleep(30)


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    other = context.Process(target=_hold, args=(str(tmp_path), ready))
    other.start()
    try:
        assert ready.wait(30)
        with pytest.raises(LedgerError, match=f"process {other.pid}"):
            Ledger(tmp_path, create=False)
    finally:
        other.kill()
        other.join()
    Ledger(tmp_path, create=False).close()


def test_a_new_run_does_not_take_over_an_old_ledger(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="already"):
        Ledger(tmp_path, create=True)
    assert path.read_bytes() == before


def test_a_source_is_kept_by_its_hash_and_checked_when_read(tmp_path: Path) -> None:
    with Ledger(tmp_path, create=True) as ledger:
        digest = ledger.keep("x = 1  # 注释\r\n")
    assert read_object(tmp_path, digest) == "x = 1  # 注释\r\n"
    path = tmp_path / "objects" / f"{digest}.py"
    path.write_text("x = 2")
    with pytest.raises(LedgerError, match="changed"):
        read_object(tmp_path, digest)
    path.unlink()
    with pytest.raises(LedgerError, match="missing"):
        read_object(tmp_path, digest)
