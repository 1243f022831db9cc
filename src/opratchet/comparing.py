"""How two builds are compared: by the clock where there is a device (`contest`), by the model's figures else (`modelled`)."""

from __future__ import annotations

from opratchet import contest as timed
from opratchet import modelled
from opratchet.contest import Comparison
from opratchet.judge.decision import Rule
from opratchet.judge.spread import Spread
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build


def contest(lab: Lab, incumbent: Build, candidate: Build, rule: Rule, spread: Spread) -> Comparison:
    """Whether the candidate is faster. Raises as `contest.contest` and `modelled.contest` do."""
    if lab.is_measured:
        return timed.contest(lab, incumbent, candidate, rule, spread)
    return modelled.contest(lab, incumbent, candidate, rule)


def measured_against(
    lab: Lab, incumbent: Build, candidate: Build, spread: Spread | None
) -> Comparison:
    """The speed-up for a report. Raises as `contest.measured_against` and `modelled.measured_against` do."""
    if lab.is_measured:
        return timed.measured_against(lab, incumbent, candidate, spread)[0]
    return modelled.measured_against(lab, incumbent, candidate)


def learn_noise(lab: Lab, build: Build) -> tuple[Comparison, Spread]:
    """A build against itself: its latency, and what "no change" looks like here."""
    if lab.is_measured:
        return timed.learn_noise(lab, build)
    return modelled.learn_noise(lab, build)
