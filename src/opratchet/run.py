"""What a run is made of: its parts, its clock, and the one way to put something on record."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from opratchet.edit.model import Situation
from opratchet.edit.source import KernelSource
from opratchet.errors import BaselineFailed, OpratchetError
from opratchet.flow.model import Flow, StopRules
from opratchet.judge.decision import Rule
from opratchet.judge.spread import Spread
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.events import BaselineMeasured, Event, Line, TrialFinished, TrialPassed
from opratchet.ledger.state import RunState, apply, fold
from opratchet.ledger.store import Ledger, object_path, read_object
from opratchet.ledger.words import Variance
from opratchet.propose.base import Proposer

Listener = Callable[[Line, RunState], None]
LEAST_ROOM = 16 << 20  # bytes that a build may need for its files


@dataclass
class Clock:
    """Where the wall time of a run goes: `build`, `accuracy`, `measure`; the rest is the tool's own."""

    start: float = field(default_factory=time.monotonic)
    spent: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def on(self, kind: str) -> Iterator[None]:
        """Book the time spent inside under a kind."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.book(kind, time.monotonic() - start)

    def book(self, kind: str, seconds: float) -> None:
        """Book seconds under a kind."""
        self.spent[kind] = self.spent.get(kind, 0.0) + seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the run began in this process."""
        return time.monotonic() - self.start

    def totals(self) -> dict[str, float]:
        """Seconds by kind, with `total` and what is left over as `own`."""
        total = self.elapsed
        return {**self.spent, "total": total, "own": max(0.0, total - sum(self.spent.values()))}


@dataclass
class Run:
    """Everything one run needs; `tune` drives it.

    Attributes:
        lab: Where candidates are built and run.
        ledger: Open for writing, with the header, the gate and the baseline already in it.
        flow: The procedure.
        proposer: Chooses the next point.
        rules: When to stop.
        rule: When a candidate counts as faster.
        listener: Told of every event, after it is on disk.
        progress: Told what is being done now, for people.
        stop_asked: Whether the user asked to stop.
        clock: Where time goes.
        situation: A source as strategies see it on this target.
        builds: Builds that may be needed again, by source hash.
        spread: What fresh processes alone do to a timing here: from the baseline, and learned from every trial since.
    """

    lab: Lab
    ledger: Ledger
    flow: Flow
    proposer: Proposer
    rules: StopRules
    rule: Rule
    listener: Listener
    progress: Callable[[str], None]
    stop_asked: Callable[[], bool]
    clock: Clock
    situation: Callable[[KernelSource], Situation]
    builds: dict[str, Build] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = fold(self.ledger.lines)
        self.spread = Spread.from_record(known_spread(self.ledger.lines))
        self._here: Situation | None = None

    def record(self, event: Event) -> None:
        """Write an event, move the state on, tell the listener."""
        line = self.ledger.append(event)
        apply(self.state, line)
        self.listener(line, self.state)

    def source(self, digest: str) -> str:
        """A recorded source by its hash."""
        return read_object(self.ledger.folder, digest)

    def here(self) -> Situation:
        """The incumbent as strategies see it; read and parsed once."""
        digest = self.state.incumbent
        if self._here is None or self._here.source.sha256 != digest:
            source = KernelSource(self.source(digest), self.lab.operator.kernel)
            self._here = self.situation(source)
        return self._here

    def incumbent_build(self) -> Build:
        """The incumbent, built.

        Raises:
            BaselineFailed: see `build_again`.
        """
        digest = self.state.incumbent
        if digest not in self.builds:
            self.builds = {digest: self.build_again(digest)}
        return self.builds[digest]

    def build_again(self, digest: str) -> Build:
        """Build a version that built before.

        Raises:
            BaselineFailed: it does not build now, which is this machine's fault and not the version's.
        """
        try:
            with self.clock.on("build"):
                return self.lab.build(self.source(digest), self.lab.operator.checked)
        except WorkerFailed as failure:
            raise BaselineFailed(
                f"a version that built before does not build now: {failure.reason}",
                where=str(object_path(self.ledger.folder, digest)),
                fix="See to this machine (room on its disk, memory, the compiler), then go on with `resume`.",
            ) from None

    def require_room(self) -> None:
        """A candidate is not to blame for a build that had no room for its files.

        Raises:
            OpratchetError: the disk with the temporary files is full.
        """
        if shutil.disk_usage(self.lab.folder).free < LEAST_ROOM:
            raise OpratchetError(
                "the disk with the temporary files is full",
                where=str(self.lab.folder.parent),
                fix="Make room there or name another folder in TMPDIR, then go on with `resume`.",
            )


def known_spread(lines: Sequence[Line]) -> Mapping[str, Variance]:
    """What was known last of the spread of processes; a run that goes on decides as if it had never stopped."""
    for line in reversed(lines):
        event = line.event.result if isinstance(line.event, TrialPassed) else line.event
        if isinstance(event, (BaselineMeasured, TrialFinished)) and event.spread:
            return event.spread
    return {}
