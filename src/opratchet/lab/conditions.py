"""Watching the machine while something is timed: what else it did, as far as Linux tells.

    with watch(cpu, pids) as seen:
        ...                        # what is timed
    seen.result                    # a `Conditions`

Two readings of `/proc` and `/sys` are taken, one before and one after, so nothing runs while something is timed. A
reading never raises: what a system does not tell (a container, another operating system, a worker that has ended) is
None. What each figure means is said at `Conditions`; the files are described in proc(5) and in the kernel's
`Documentation/admin-guide/pm/cpufreq.rst`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opratchet.ledger.remarks import remarks
from opratchet.ledger.words import Conditions

__all__ = ["Watch", "remarks", "watch"]

STEAL_FIELD = 7
GUEST_FIELD = 8  # guest time is counted in user time already
STAT_CPU_FIELD = 36  # of /proc/PID/stat behind the name in brackets


@dataclass(frozen=True)
class Process:
    """One worker at one moment.

    Attributes:
        preempted: Involuntary context switches so far.
        moves: Migrations so far.
        cpu: CPU it ran on last.
        pinned: Whether it may run on the measuring CPU only.
    """

    preempted: int | None = None
    moves: int | None = None
    cpu: int | None = None
    pinned: bool | None = None


@dataclass(frozen=True)
class Reading:
    """The machine at one moment.

    Attributes:
        at: Monotonic clock, seconds.
        stolen: Clock ticks of the CPU that the hypervisor took.
        ticks: All clock ticks of the CPU.
        mhz: Its frequency.
        throttles: Times it was throttled.
        processes: The workers.
    """

    at: float
    stolen: int | None
    ticks: int | None
    mhz: float | None
    throttles: int | None
    processes: tuple[Process, ...]


class Watch:
    """Watches the machine from entering to leaving. `result` holds nothing but Nones before.

    Args:
        cpu: The CPU that is measured on.
        pids: The workers that are timed.
        root: Where `proc` and `sys` are found.
    """

    def __init__(self, cpu: int, pids: Iterable[int], root: Path = Path("/")) -> None:
        self._cpu = cpu
        self._pids = tuple(pids)
        self._root = "" if root == Path("/") else str(root)
        self.result = Conditions()

    def __enter__(self) -> Watch:
        self._before = self._read()
        return self

    def __exit__(self, *_error: object) -> None:
        self.result = self._conditions(self._before, self._read())

    def _read(self) -> Reading:
        ticks = _ticks(self._root, self._cpu)
        folder = f"{self._root}/sys/devices/system/cpu/cpu{self._cpu}"
        return Reading(
            at=time.monotonic(),
            stolen=ticks[STEAL_FIELD] if len(ticks) > STEAL_FIELD else None,
            ticks=sum(ticks[:GUEST_FIELD]) or None,
            mhz=_mhz(self._root, folder, self._cpu),
            throttles=_integer(_text(f"{folder}/thermal_throttle/core_throttle_count")),
            processes=tuple(_process(self._root, pid, self._cpu) for pid in self._pids),
        )

    def _conditions(self, before: Reading, after: Reading) -> Conditions:
        pairs = list(zip(before.processes, after.processes, strict=True))
        pinned = [process.pinned for process in after.processes]
        return Conditions(
            cpu=self._cpu,
            cpus=os.cpu_count(),
            seconds=after.at - before.at,
            pinned=all(pinned) if pinned and None not in pinned else None,
            steal=_share(_rise(before.stolen, after.stolen), _rise(before.ticks, after.ticks)),
            load=_number(_text(f"{self._root}/proc/loadavg")),
            mhz_before=before.mhz,
            mhz_after=after.mhz,
            throttled=_rise(before.throttles, after.throttles),
            preempted=_total([_rise(old.preempted, new.preempted) for old, new in pairs]),
            migrations=_total([_moves(old, new) for old, new in pairs]),
        )


def watch(cpu: int, pids: Iterable[int], root: Path = Path("/")) -> Watch:
    """Watch the machine while something is timed; see `Watch`."""
    return Watch(cpu, pids, root)


def _text(path: str) -> str:
    """Content of a small file; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  (a Path takes twice the time)
            return file.read()
    except OSError:
        return ""


def _integer(text: str | None) -> int | None:
    """The first word as a whole number."""
    number = _number(text)
    return None if number is None else int(number)


def _number(text: str | None) -> float | None:
    """The first word as a number without a sign; None when it is none."""
    found = re.match(r"\s*(\d{1,18}(?:\.\d+)?)(?:\s|$)", text or "", re.ASCII)
    return float(found[1]) if found else None


def _value(text: str, key: str) -> str | None:
    """What stands behind `key :` at the beginning of a line."""
    found = re.search(rf"^{re.escape(key)}\s*:[ \t]*(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else None


def _ticks(root: str, cpu: int) -> list[int]:
    """Clock ticks of one CPU by what they went to, the fields of its line in `/proc/stat`."""
    found = re.search(rf"^cpu{cpu}((?: +\d+)+)$", _text(f"{root}/proc/stat"), re.MULTILINE)
    return [int(field) for field in found[1].split()] if found else []


def _mhz(root: str, folder: str, cpu: int) -> float | None:
    """Frequency now: from cpufreq, else from the processor's block in `/proc/cpuinfo`."""
    khz = _number(_text(f"{folder}/cpufreq/scaling_cur_freq"))
    if khz:
        return khz / 1000
    block = rf"^processor\s*: {cpu}\n(?:.+\n)*?cpu MHz\s*: (\S+)$"
    found = re.search(block, _text(f"{root}/proc/cpuinfo"), re.MULTILINE)
    return _number(found[1]) if found else None


def _process(root: str, pid: int, cpu: int) -> Process:
    folder = f"{root}/proc/{pid}"
    status = _text(f"{folder}/status")
    allowed = _value(status, "Cpus_allowed_list")
    fields = _text(f"{folder}/stat").rpartition(")")[2].split()
    return Process(
        preempted=_integer(_value(status, "nonvoluntary_ctxt_switches")),
        moves=_integer(_value(_text(f"{folder}/sched"), "se.nr_migrations")),
        cpu=_integer(fields[STAT_CPU_FIELD]) if len(fields) > STAT_CPU_FIELD else None,
        pinned=None if allowed is None else allowed == str(cpu),
    )


def _moves(before: Process, after: Process) -> int | None:
    """How often a worker was moved; without the kernel's count, whether it is on another CPU than before."""
    counted = _rise(before.moves, after.moves)
    if counted is not None:
        return counted
    if before.cpu is None or after.cpu is None:
        return None
    return int(before.cpu != after.cpu)


def _rise(before: int | None, after: int | None) -> int | None:
    """How much a counter rose; None when one end is unknown, or when it fell: then it is another one's."""
    if before is None or after is None or after < before:
        return None
    return after - before


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _total(counts: Sequence[int | None]) -> int | None:
    """The sum; None when one of them is unknown, or when there are none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def together(parts: Sequence[Conditions]) -> Conditions | None:
    """Several stretches of one measurement as one; None when there are none."""
    if not parts:
        return None
    seconds = [part.seconds or 0.0 for part in parts]
    stolen = [None if p.steal is None else p.steal * s for p, s in zip(parts, seconds, strict=True)]
    known = [share for share in stolen if share is not None]
    return parts[-1].model_copy(
        update={
            "seconds": sum(seconds),
            "pinned": None if None in (p := [part.pinned for part in parts]) else all(p),
            "steal": sum(known) / sum(seconds) if known and sum(seconds) else None,
            "mhz_before": parts[0].mhz_before,
            "throttled": _total([part.throttled for part in parts]),
            "preempted": _total([part.preempted for part in parts]),
            "migrations": _total([part.migrations for part in parts]),
        }
    )
