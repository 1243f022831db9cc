"""Kills a scripted run at some moment, goes on with it, and compares it with one that nobody disturbed.

The run is a forked child of this process, so what is killed is a whole tool with its workers, and nothing has to be imported
anew for each point. Run as a program by `benchmarks/faults.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from opratchet.ledger.events import Line
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from tests.faults.scene import can_resume, decisions, doubled, lost, play


@dataclass(frozen=True)
class Found:
    """What became of one killed run.

    Attributes:
        point: Where it was killed.
        events: Events on record when it was.
        lost: Trials without an outcome in the end.
        doubled: Trials with more than one.
        orphans: Processes that outlived it.
        same: Whether it decided and delivered what the undisturbed one did.
        failed: Whether going on failed.
    """

    point: str
    events: int
    lost: int
    doubled: int
    orphans: int
    same: bool
    failed: bool

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return self.same and not (self.lost or self.doubled or self.orphans or self.failed)


def started(work: Callable[[], object]) -> int:
    """Do something in a forked child; gives its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Wait for a child; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_now(family: Path) -> None:
    """Kill this process as the kernel does when memory is short; who is left is noted first."""
    below = psutil.Process().children(recursive=True)
    family.write_text(" ".join(str(process.pid) for process in below))
    os.kill(os.getpid(), signal.SIGKILL)


def at_event(number: int, family: Path) -> Callable[[Ledger], None]:
    """Kills where so many events are on record."""

    def event(ledger: Ledger) -> None:
        if len(ledger.lines) >= number:
            kill_now(family)

    return event


def undisturbed(folder: Path) -> tuple[dict[str, Any], int, float]:
    """A run to its end: what it decided, how many events it recorded, and the seconds it took."""
    start = time.monotonic()
    folder.mkdir(parents=True)
    assert ended(started(lambda: play(folder))) == 0
    seconds = time.monotonic() - start
    return decisions(folder / "out"), len(read_lines(folder / "out" / LEDGER)), seconds


def killed_at(folder: Path, number: int, wanted: dict[str, Any], *, before: bool) -> Found:
    """Kill a run right before the event after the first `number` ones is written, or right after the last of these is."""
    folder.mkdir(parents=True)
    family = folder / "family"
    hook = at_event(number, family)
    work = (lambda: play(folder, before=hook)) if before else (lambda: play(folder, after=hook))
    code = ended(started(work))
    assert code == -signal.SIGKILL, code
    point = f"{'before the event after' if before else 'after'} {number} events"
    return _gone_on(folder, point, wanted, [int(pid) for pid in family.read_text().split()])


def killed_at_every_event(folder: Path, wanted: dict[str, Any]) -> list[Found]:
    """One run that is killed right before each of its events is written, again and again, until it is done.

    What every resumed run records anew is no event of its own: a kill there would come again for ever.
    """
    folder.mkdir(parents=True)
    family, found = folder / "family", []
    while True:
        family.write_text("")
        hook = at_next_event(folder / "out", family)
        code = ended(started(lambda hook=hook: play(folder, before=hook)))
        orphans = _outlived([int(pid) for pid in family.read_text().split()])
        events = _on_record(folder / "out")
        if code != -signal.SIGKILL:
            return [*found, _compared(folder, "at the end", wanted, events, orphans, code != 0)]
        found.append(_compared(folder, f"before event {events + 1}", None, events, orphans, False))


def at_next_event(out: Path, family: Path) -> Callable[[Ledger], None]:
    """Kills when one event of the run's own is on record more than now."""
    begun = _own_events(read_lines(out / LEDGER)) if can_resume(out) else 0

    def event(ledger: Ledger) -> None:
        if _own_events(ledger.lines) > begun:
            kill_now(family)

    return event


def _own_events(lines: list[Line]) -> int:
    of_resuming = ("run_resumed", "machine_checked", "noted", "stopped")
    return sum(line.event.type not in of_resuming for line in lines)


def killed_after(folder: Path, seconds: float, wanted: dict[str, Any]) -> Found:
    """Kill a run so many seconds after its start."""
    folder.mkdir(parents=True)
    pid = started(lambda: play(folder))
    time.sleep(seconds)
    below = [process.pid for process in psutil.Process(pid).children(recursive=True)]
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    return _gone_on(folder, f"after {seconds:.3f} s", wanted, below)


def _gone_on(folder: Path, point: str, wanted: dict[str, Any], family: list[int]) -> Found:
    """Go on with a killed run to its end, compare, and remove it."""
    orphans, events = _outlived(family), _on_record(folder / "out")
    failed = ended(started(lambda: play(folder))) != 0
    found = _compared(folder, point, wanted, events, orphans, failed)
    if found.good:
        shutil.rmtree(folder)
    return found


def _compared(
    folder: Path,
    point: str,
    wanted: dict[str, Any] | None,
    events: int,
    orphans: int,
    failed: bool,
) -> Found:
    """What became of a run, held against the undisturbed one unless it is not at its end."""
    out = folder / "out"
    return Found(
        point=point,
        events=events,
        lost=lost(out, wanted) if wanted else 0,
        doubled=doubled(out) if events else 0,
        orphans=orphans,
        same=wanted is None or (not failed and decisions(out) == wanted),
        failed=failed,
    )


def _on_record(out: Path) -> int:
    return len(read_lines(out / LEDGER)) if can_resume(out) else 0


def _outlived(family: list[int], seconds: float = 10.0) -> int:
    """How many of these processes do not end."""
    deadline = time.monotonic() + seconds
    while (left := sum(map(_runs, family))) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
