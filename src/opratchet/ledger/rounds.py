"""What was attempted: rounds and their trials, as the fold of the ledger builds them up."""

from __future__ import annotations

from dataclasses import dataclass, field

from opratchet.ledger.events import Diagnosed, TrialFinished
from opratchet.ledger.words import Accuracy, Latency, Outcome, Ratio


@dataclass(slots=True)
class Trial:
    """One candidate taken through the gates; `outcome` is None while it is open.

    Attributes:
        number: Its number, unique in the run.
        round: Number of its round.
        strategy: Strategy id.
        edit: Edit id, `strategy/key`.
        title: One line for people.
        source: SHA-256 of the candidate.
        parent: SHA-256 of the incumbent it was made from.
        outcome: How it ended.
        reason: Why, one line.
        ratio: Aggregate speed-up over the parent, when it was timed.
        ratios: Speed-up by workload.
        latency: Latency by workload.
        slowdown: `RunState.slowdown` when it was timed.
        accuracy: Comparisons with the golden.
        seconds: Wall time by kind.
        no_effect: The generated code equals the parent's.
        log: What the tools said.
        blocked_by: Workloads that kept it from adoption although it is credibly faster in the aggregate.
        finished_at: UTC time of its end, ISO 8601; empty while it is open.
    """

    number: int
    round: int
    strategy: str
    edit: str
    title: str
    source: str
    parent: str
    outcome: Outcome | None = None
    reason: str = ""
    ratio: Ratio | None = None
    ratios: dict[str, Ratio] = field(default_factory=dict)
    latency: dict[str, Latency] = field(default_factory=dict)
    slowdown: float = 1.0
    accuracy: list[Accuracy] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    no_effect: bool = False
    log: str = ""
    blocked_by: list[str] = field(default_factory=list)
    finished_at: str = ""

    @property
    def is_open(self) -> bool:
        """True while the trial has no outcome."""
        return self.outcome is None

    def close(self, event: TrialFinished, at: str) -> None:
        """Take in how it ended, at this UTC time."""
        self.outcome = event.outcome
        self.reason = event.reason
        self.ratio = event.ratio
        self.ratios = event.ratios
        self.latency = event.latency
        self.accuracy = event.accuracy
        self.seconds = event.seconds
        self.no_effect = event.no_effect
        self.log = event.log
        self.blocked_by = event.blocked_by
        self.finished_at = at


@dataclass(slots=True)
class Round:
    """One optimisation point explored.

    Attributes:
        number: Its number, unique in the run.
        strategy: Strategy id.
        reason: Why this strategy was chosen.
        incumbent: SHA-256 of the incumbent that all its trials start from.
        documents: Documentation pages it acts on.
        planned: Ids of the edits it set out to try.
        diagnosis: Latest diagnosis when it began.
        trials: Its trials in order.
        is_open: True until the round is finished.
        adopted: The trial that became the incumbent.
        shown: The trial whose version file was written.
        version: Name of that file, e.g. `softmax_opt_v3.py`.
    """

    number: int
    strategy: str
    reason: str
    incumbent: str
    documents: list[str]
    planned: list[str]
    diagnosis: Diagnosed | None
    trials: list[Trial] = field(default_factory=list)
    is_open: bool = True
    adopted: Trial | None = None
    shown: Trial | None = None
    version: str = ""

    @property
    def was_timed(self) -> bool:
        """True when at least one trial reached the performance gate."""
        return any(t.outcome is not None and t.outcome.is_judged for t in self.trials)

    @property
    def representative(self) -> Trial | None:
        """The trial that stands for the round where one must: the one shown, else the last one tried."""
        return self.shown or (self.trials[-1] if self.trials else None)
