"""`--remeasure`: baseline and delivered version built anew and timed against each other once more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opratchet.audit.findings import Finding, shown
from opratchet.comparing import measured_against
from opratchet.contest import Comparison
from opratchet.gates import GateClosed
from opratchet.lab.bench import Lab
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.events import FinalMeasured
from opratchet.ledger.remarks import remarks
from opratchet.ledger.state import RunState
from opratchet.ledger.store import LEDGER, read_object
from opratchet.ledger.words import Ratio
from opratchet.profile.machine import read_machine


def measured_again(folder: Path, state: RunState, lab: Lab) -> Iterator[Finding]:
    """Whether the recorded speed-up is found again.

    Args:
        folder: The folder that is audited.
        state: The fold of its ledger, with a final measurement.
        lab: Where both versions are built and timed; its operator is the one of the run.
    """
    final = state.final
    if final is None:
        what = "there is no final measurement yet that could be repeated"
        yield Finding("measured", LEDGER, what, remark=True)
        return
    try:
        found = _measure(folder, state, final, lab)
    except (GateClosed, WorkerFailed) as failure:
        what = f"the delivered version fails when it is measured again: {shown(failure.reason)}"
        yield Finding("measured", f"{state.run.operator}.py", what)
        return
    yield _circumstances(state, found)
    yield from _judged(state, final, found)


def _measure(folder: Path, state: RunState, final: FinalMeasured, lab: Lab) -> Comparison:
    workloads = lab.operator.checked
    baseline = lab.build(read_object(folder, state.run.source_sha256), workloads)
    best = lab.build(read_object(folder, final.source), workloads)
    return measured_against(lab, baseline, best, None)


def _circumstances(state: RunState, found: Comparison) -> Finding:
    """The new figure, the machine, and what it did meanwhile."""
    machine = read_machine()
    began = state.run.machine
    text = f"measured again: {_figure(found.ratio)} on {machine}"
    if began.get("fingerprint", machine.fingerprint) != machine.fingerprint:
        text += (
            f", which is another machine than the recorded one ({began.get('model', 'unknown')})"
        )
    seen = remarks(found.conditions) if found.conditions is not None else []
    text += f"; {', '.join(seen)}" if seen else ""
    return Finding("measured", LEDGER, shown(text), key="final_measured", remark=True)


def _judged(state: RunState, final: FinalMeasured, found: Comparison) -> Iterator[Finding]:
    key, recorded, now = "final_measured.ratio", _figure(final.ratio), _figure(found.ratio)
    if found.ratio.high < final.ratio.low or final.ratio.high < found.ratio.low:
        what = "the recorded speed-up is not found again: the intervals do not overlap"
        yield Finding("measured", LEDGER, what, key=key, found=recorded, expected=now)
    if final.ratio.low > 1 and final.source != state.run.source_sha256 and found.ratio.low <= 1:
        what = "the delivered version is not credibly faster than the baseline"
        yield Finding("measured", LEDGER, what, key=key, found=recorded, expected=now)


def _figure(ratio: Ratio) -> str:
    return f"{ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]"
