"""Whether the machine is still as fast as it was: the baseline is timed again, alone, every few rounds.

Decisions do not need this: incumbent and candidate are timed side by side, so whatever happens to the machine happens to
both. Latencies do: a target of 40 us, the diagnosis and the log's columns compare figures taken minutes or, after
`resume`, days apart. A machine that gets hot, whose neighbours get busy, or that is another one changes these.

So from time to time some batches of the baseline are timed in a fresh process and compared with the *anchor*, at first
the baseline's first latency. A change counts when it is larger than `THRESHOLD` and than the noise of both. As a process
can be some per cent faster or slower for all its life, a change is looked for again in a second fresh process and has to
be found there too. Then the new latencies become the anchor, the ledger's readers scale what they compare by the change
(`RunState.incumbent_latency`), and people are told.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.conditions import watch
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.latency import latency
from opratchet.lab.pairs import Timer, device_lock
from opratchet.ledger.events import MachineChecked, Noted
from opratchet.ledger.means import geometric_mean
from opratchet.ledger.words import Latency, MetricKind
from opratchet.run import Run

EVERY_ROUNDS = 3
EVERY_SECONDS = 120.0
THRESHOLD = 0.05
BATCHES = 40
FEWEST_BATCHES = 10
WORKLOAD_SECONDS = 1.0

Samples = dict[str, list[float]]


class Recheck:
    """Checks the machine of one run when it is time to. A worker that fails in a check does not end the run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._build: Build | None = None
        self._due = run.state.must_check
        self._started()

    def _started(self) -> None:
        self._rounds = len(self._run.state.finished_rounds)
        self._at = time.monotonic()

    def if_due(self) -> None:
        """Check when the run was just resumed, after `EVERY_ROUNDS` rounds, or after `EVERY_SECONDS`."""
        rounds = len(self._run.state.finished_rounds) - self._rounds
        late = time.monotonic() - self._at >= EVERY_SECONDS and rounds > 0
        if (self._due or late or rounds >= EVERY_ROUNDS) and not self._run.stop_asked():
            self.check()

    def if_suspicious(self) -> None:
        """Check when the baseline, as it was measured at the end, is not what the anchor says."""
        final = self._run.state.final
        if final is not None and direction(self._run.state.anchor, final.baseline):
            self.check()

    def check(self) -> None:
        """Time the baseline again and put on record what that says of the machine."""
        run = self._run
        if run.lab.backend.metric_kind is not MetricKind.MEASURED:
            return
        self._due = False
        run.progress("timing the baseline again: is the machine still as fast?")
        try:
            build = self._baseline()
            start = time.monotonic()
            with run.clock.on("measure"):
                found = look(run.lab, build, run.state.anchor)
        except WorkerFailed as failure:
            run.record(Noted(text=f"the baseline could not be timed again: {failure.reason}"))
            return
        finally:
            self._started()
        seconds = {"measure": time.monotonic() - start}
        run.record(found.model_copy(update={"seconds": seconds}))
        if found.anchored:
            run.record(Noted(text=remark(run.state.slowdown)))

    def _baseline(self) -> Build:
        """The baseline, built once; it built before, so a failure now is the machine's."""
        run = self._run
        digest = run.state.run.source_sha256
        self._build = self._build or run.builds.get(digest)
        if self._build is None:
            with run.clock.on("build"):
                self._build = run.lab.build(run.source(digest), run.lab.operator.checked)
        return self._build


def look(lab: Lab, baseline: Build, anchor: Mapping[str, Latency]) -> MachineChecked:
    """Time the baseline in a fresh process, in a second one when the first shows a change, and compare.

    Raises:
        WorkerFailed: the baseline crashed or hung.
    """
    with watch(lab.cpu, []) as seen:
        samples = time_alone(lab, baseline)
        now = latencies(samples)
        found = direction(anchor, now)
        if found != 0:
            second = time_alone(lab, baseline)
            found = found if direction(anchor, latencies(second)) == found else 0
            now = latencies(samples, second)
    return MachineChecked(
        latency=now, change=change(anchor, now), anchored=found != 0, conditions=seen.result
    )


def time_alone(lab: Lab, build: Build) -> Samples:
    """Nanoseconds a call, of some batches of each tune workload in a fresh process.

    Raises:
        WorkerFailed: a call crashed or hung.
    """
    with lab.open(build) as rig:
        for workload in lab.operator.tuned:
            rig.load(workload)
        with device_lock(f"{lab.backend.device()}{lab.cpu}"):
            return {w.id: _batches(Timer(rig, w)) for w in lab.operator.tuned}


def _batches(timer: Timer) -> list[float]:
    """`BATCHES` batches, fewer where they would take longer than `WORKLOAD_SECONDS`."""
    timer.count = timer.size()
    timer.warm_up()
    start = time.monotonic()
    taken: list[float] = []
    while len(taken) < BATCHES:
        if len(taken) >= FEWEST_BATCHES and time.monotonic() - start > WORKLOAD_SECONDS:
            break
        taken.append(timer.sample().ns)
    return taken


def latencies(*processes: Samples) -> dict[str, Latency]:
    """Latency by workload, from one process or several."""
    return {name: latency([taken[name] for taken in processes]) for name in processes[0]}


def change(before: Mapping[str, Latency], now: Mapping[str, Latency]) -> float:
    """Factor by which a call takes longer now: geometric mean over the workloads that were timed both times."""
    return _mean([now[name].us / before[name].us for name in before.keys() & now.keys()])


def direction(before: Mapping[str, Latency], now: Mapping[str, Latency]) -> int:
    """1 when the machine is slower now, -1 when it is faster, 0 when that is within `THRESHOLD` or within the noise."""
    both = before.keys() & now.keys()
    factor = change(before, now)
    low = _mean([now[name].low_us / before[name].high_us for name in both])
    high = _mean([now[name].high_us / before[name].low_us for name in both])
    if factor > 1 + THRESHOLD and low > 1:
        return 1
    return -1 if factor * (1 + THRESHOLD) < 1 and high < 1 else 0


def _mean(factors: Collection[float]) -> float:
    """Geometric mean; 1, no change, when no workload was timed both times."""
    return geometric_mean(factors) if factors else 1.0


def remark(slowdown: float) -> str:
    """A machine that changed, for people.

    Args:
        slowdown: Factor by which a call takes longer now than when the run began.
    """
    percent = round(100 * (max(slowdown, 1 / slowdown) - 1))
    how = f"{percent} % {'slower' if slowdown > 1 else 'faster'} than" if percent else "as fast as"
    return (
        f"the machine is now {how} when the run began: latencies before and after this point are not comparable; "
        "ratios are, since they are measured side by side"
    )
