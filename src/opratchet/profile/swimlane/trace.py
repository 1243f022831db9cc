"""`merged_swimlane.json`: PyPTO's picture of a run, in the Chrome trace format.

Metadata (`ph` M) names the lanes; a core whose tasks overlap has two with the same name. A task is an `X` event in
microseconds, with its ids and its hints in `args`; a dependency is a pair of `s` and `f` events with the same id, the
first just before the end of a task, the second at the start of the one that waited for it. Counters are not needed.
The file can be hundreds of megabytes, so it is read event by event and only what is used is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opratchet.profile.swimlane.json_stream import json_items
from opratchet.profile.swimlane.reading import damaged
from opratchet.profile.swimlane.timeline import (
    LONGEST_US,
    NO_LEAF,
    Key,
    Label,
    Lane,
    Slot,
    Timeline,
    kind_of,
)

# How far before the end of a task its flow starts, and how far off that may be, microseconds.
FLOW_LEAD_US = 1e-4
FLOW_SLACK_US = 1e-3

_LEAF = re.compile(r"leafHash:\s*(\d+)")
_PSG = re.compile(r"-(\d{1,15})(?:\(|$)")

_Point = tuple[int, float]  # lane number and time


@dataclass(frozen=True)
class Trace:
    """What the file tells.

    Attributes:
        timeline: Lanes, labels, and dependencies where all flows meet tasks.
        hints: The `hashOrder-hint` of each task that has one.
        flows: Number of dependencies drawn.
    """

    timeline: Timeline
    hints: Mapping[Key, str]
    flows: int


def read_trace(path: Path) -> Trace:
    """Read a `merged_swimlane.json`.

    Raises:
        BadInput: the file cannot be read, is empty, torn or of another tool, holds no task, a task twice, one on a
            lane without a name, or one without a time.
    """
    reader = _Reader(path)
    for number, event in enumerate(json_items(path, "traceEvents")):
        reader.take(number, event)
    return reader.finish()


@dataclass
class _Reader:
    """Takes the events one by one; texts that many tasks share are kept once."""

    path: Path
    names: dict[int, str] = field(default_factory=dict)
    slots: list[tuple[int, Slot]] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)
    labels: dict[Key, Label] = field(default_factory=dict)
    hints: dict[Key, str] = field(default_factory=dict)
    open_flows: dict[Any, _Point] = field(default_factory=dict)
    flows: list[tuple[_Point, _Point]] = field(default_factory=list)
    shared: dict[Any, Any] = field(default_factory=dict)

    def take(self, number: int, event: Any) -> None:
        """One event of the file."""
        try:
            phase = event["ph"]
            args = event.get("args")
            if phase == "X" and isinstance(args, dict) and "taskId" in args:
                self._task(event, args)
            elif phase in ("s", "f"):
                self._flow(event, starts=phase == "s")
            elif phase == "M" and event["name"] == "thread_name":
                self.names[_whole(event["tid"])] = str(event["args"]["name"])
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            what = f"event {number} is not one of PyPTO's swimlane: {reason}"
            raise damaged(self.path, what) from None

    def _task(self, event: Mapping[str, Any], args: Mapping[str, Any]) -> None:
        key = (_whole(args.get("seqNo", 0)), _whole(args["taskId"]))
        if key in self.keys:
            raise ValueError(f"task {key[1]} of seqNo {key[0]} is drawn twice")
        start, us = _time(event["ts"]), _time(event["dur"])
        if us < 0:
            raise ValueError(f"task {key[1]} takes {us} us")
        self.keys.add(key)
        self.slots.append((_whole(event["tid"]), Slot(key, start, start + us)))
        self._describe(key, str(event["name"]), args)

    def _describe(self, key: Key, name: str, args: Mapping[str, Any]) -> None:
        leaf = _LEAF.search(str(args.get("event-hint", "")))
        psg = _PSG.search(name)
        if leaf and leaf.group(1) != NO_LEAF:
            label = Label(leaf.group(1), int(psg.group(1)) if psg else None)
            self.labels[key] = self.shared.setdefault(label, label)
        hint = args.get("hashOrder-hint")
        if hint:
            self.hints[key] = self.shared.setdefault(hint, str(hint))

    def _flow(self, event: Mapping[str, Any], *, starts: bool) -> None:
        here = (_whole(event["tid"]), _time(event["ts"]))
        other = self.open_flows.pop(event["id"], None)
        if other is None:
            self.open_flows[event["id"]] = here
        else:
            self.flows.append((here, other) if starts else (other, here))

    def finish(self) -> Trace:
        """The whole, once the last event is taken."""
        if not self.keys:
            raise damaged(self.path, "the file draws no task; `traceEvents` of PyPTO are expected")
        nameless = {lane for lane, _ in self.slots} - self.names.keys()
        if nameless:
            raise damaged(self.path, f"there are tasks on lane {min(nameless)}, which has no name")
        timeline = Timeline(self._lanes(), self._successors(), self.labels)
        return Trace(timeline, self.hints, len(self.flows))

    def _lanes(self) -> tuple[Lane, ...]:
        merged: dict[str, list[Slot]] = {name: [] for name in self.names.values()}
        for lane, slot in self.slots:
            merged[self.names[lane]].append(slot)
        return tuple(
            Lane(name, kind_of(name.rpartition("_")[0] or name), tuple(slots))
            for name, slots in merged.items()
        )

    def _successors(self) -> dict[Key, tuple[Key, ...]] | None:
        """The dependencies; None when there are no flows, or some that no task can be found for."""
        if not self.flows:
            return None
        found: dict[Key, list[Key]] = {key: [] for key in self.keys}
        starts = {(lane, slot.start): slot.key for lane, slot in self.slots}
        ends = self._ends()
        for (lane, left), target in self.flows:
            before = ends[lane].at(left + FLOW_LEAD_US) if lane in ends else None
            after = starts.get(target)
            if before is None or after is None:
                return None
            found[before].append(after)
        return {key: tuple(after) for key, after in found.items()}

    def _ends(self) -> dict[int, _Ends]:
        by_lane: dict[int, list[Slot]] = {}
        for lane, slot in self.slots:
            by_lane.setdefault(lane, []).append(slot)
        return {lane: _Ends(slots) for lane, slots in by_lane.items()}


class _Ends:
    """The tasks of a lane by their ends."""

    def __init__(self, slots: list[Slot]) -> None:
        ordered = sorted(slots, key=lambda slot: slot.end)
        self.times = [slot.end for slot in ordered]
        self.keys = [slot.key for slot in ordered]

    def at(self, time: float) -> Key | None:
        """The task that ends nearest to a time; None when none ends there."""
        place = bisect_left(self.times, time)
        near = [other for other in (place - 1, place) if 0 <= other < len(self.times)]
        nearest = min(near, key=lambda other: abs(self.times[other] - time))
        return self.keys[nearest] if abs(self.times[nearest] - time) <= FLOW_SLACK_US else None


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value


def _time(value: Any) -> float:
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or not abs(value) <= LONGEST_US
    ):
        raise ValueError(f"{value!r} is no time")
    return float(value)
