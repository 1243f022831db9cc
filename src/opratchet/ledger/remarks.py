"""What is remarkable about the conditions of a measurement, in words for people."""

from __future__ import annotations

from collections.abc import Iterator

from opratchet.ledger.words import Conditions

FREQUENCY_FALL = 0.05
"""Fall of the CPU's frequency that is worth a remark, as a fraction. A rise is that of a CPU that was idle before."""
STEAL_SHARE = 0.02
"""Share of the time that the hypervisor may take before it is worth a remark."""
LOAD_PER_CPU = 1.25
"""Runnable tasks a CPU from which on others must have been waiting; the tool's own timing and builds stay below."""
PREEMPTIONS_PER_SECOND = 50.0
"""Preemptions a second that a quiet machine stays below."""


def remarks(seen: Conditions) -> list[str]:
    """What may have disturbed a measurement, one short remark each; empty when nothing did, as far as the system tells."""
    return [*_processor(seen), *_others(seen)]


def _processor(seen: Conditions) -> Iterator[str]:
    before, after = seen.mhz_before, seen.mhz_after
    if before and after and after < before * (1 - FREQUENCY_FALL):
        yield f"CPU frequency changed from {before:.0f} to {after:.0f} MHz"
    if seen.throttled:
        yield f"the CPU was throttled {_times(seen.throttled)} because of its temperature"


def _others(seen: Conditions) -> Iterator[str]:
    if seen.steal is not None and seen.steal >= STEAL_SHARE:
        yield f"{100 * seen.steal:.0f} % of the time was stolen by the hypervisor"
    if seen.load is not None and seen.cpus and seen.load > LOAD_PER_CPU * seen.cpus:
        yield f"load {seen.load:.1f} on {seen.cpus} core{'s' if seen.cpus > 1 else ''}"
    if seen.preempted and seen.seconds and seen.preempted / seen.seconds > PREEMPTIONS_PER_SECOND:
        yield f"preempted {_times(seen.preempted)} in {seen.seconds:.1f} s"
    if seen.pinned is False:
        yield "the workers were not bound to one CPU"
    if seen.migrations:
        yield f"moved to another CPU {_times(seen.migrations)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
