"""The gates, in their order, for every candidate: whoever proposed it, nobody can skip one.

1. one change and 2. static legality are checked on the source, before anything is spent; 3. the build, 4. accuracy on
fresh inputs before timing and on what the timed calls left, 5. integrity, 6. performance against the incumbent. The
first gate that is not passed decides a candidate's outcome. Here are the gates that look at a source or a call; `contest`
has those that time, `trial` takes a candidate through all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from opratchet.edit.legality import broken_rule
from opratchet.edit.model import Situation
from opratchet.edit.onechange import ChangeRefusedError, require_kernel_only
from opratchet.edit.source import KernelSource
from opratchet.edit.untrusted import misplaced
from opratchet.judge.accuracy import compare
from opratchet.judge.integrity import (
    allowed_error,
    changed_input,
    typical_error,
    unwritten_output,
)
from opratchet.judge.layout import LayoutFiles, check_text
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build, CheckedCall
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.interpreted import Interpreter
from opratchet.lab.rig import Rig
from opratchet.ledger.words import Accuracy, Outcome
from opratchet.operator.model import Operator, Workload

Caller = Rig | Interpreter


class GateClosed(Exception):
    """A candidate did not pass a gate: its outcome, and why."""

    def __init__(self, outcome: Outcome, reason: str, accuracy: Sequence[Accuracy] = ()) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.accuracy = list(accuracy)


def static_gates(situation: Situation, text: str, operator: Operator) -> tuple[Outcome, str] | None:
    """Gates 1 and 2 on a candidate's source, before anything is spent: None when it may go on.

    Args:
        situation: The incumbent on its target.
        text: The candidate.
        operator: The operator; its golden, inputs and workloads must be untouched.
    """
    source = KernelSource(text, operator.kernel)
    try:
        require_kernel_only(situation.source, source, operator.golden)
    except ChangeRefusedError as refused:
        return Outcome.CHEATED, str(refused)
    if situation.target.dialect == "tilelang":
        trusted = KernelSource(operator.text, operator.kernel)
        if found := misplaced(source, trusted):
            return Outcome.CHEATED, found
    rule = broken_rule(source, situation.target, situation.shapes)
    return (Outcome.PRUNED, rule) if rule else None


def check_accuracy(operator: Operator, workload: Workload, call: CheckedCall) -> list[Accuracy]:
    """Gates 4 and 5 on one call: outputs against the golden, inputs unchanged, outputs wholly written.

    Raises:
        GateClosed: `accuracy_failed` or `cheated`.
    """
    records = [
        compare(
            expected,
            seen,
            operator.tolerances[str(seen.dtype)],
            workload=workload.id,
            output=name,
        )
        for name, (expected, seen) in call.outputs.items()
    ]
    evidence = [changed_input(name, own, seen) for name, (own, seen) in call.inputs.items()]
    for text in filter(None, evidence):
        raise GateClosed(Outcome.CHEATED, f"{workload.id}: {text}", records)
    for record in records:
        if not record.passed:
            raise GateClosed(Outcome.ACCURACY_FAILED, describe(record, call), records)
    return records


def describe(record: Accuracy, call: CheckedCall) -> str:
    """Why an output fails, in one line, with its figures."""
    unwritten = unwritten_output(record.output, call.outputs[record.output][1])
    if unwritten:
        return f"{record.workload}: {unwritten}"
    return (
        f"{record.workload}: {record.output}{list(record.worst_index)} is off by {record.max_abs:.2g} "
        f"(relative {record.max_rel:.2g}, allowed {record.rtol:.0e}); "
        f"{record.out_of_tolerance:.2%} of the elements are out of tolerance"
    )


def verify(lab: Lab, rig: Caller, incumbent: Rig | None = None) -> list[Accuracy]:
    """Check one fresh call of every workload; those not loaded yet are loaded.

    Args:
        lab: Where they run.
        rig: The version to check.
        incumbent: Another version, whose precision it must not fall far behind; None for one that stands alone.

    Raises:
        GateClosed: a workload is wrong.
        WorkerFailed: a call crashed or took too long.
    """
    records: list[Accuracy] = []
    for workload in lab.operator.checked:
        call = _fresh_call(rig, workload)
        records += check_accuracy(lab.operator, workload, call)
        if incumbent is not None:
            _require_precision(lab.operator, workload, call, incumbent)
    return records


def _fresh_call(rig: Caller, workload: Workload) -> CheckedCall:
    try:
        if not rig.has(workload):
            rig.load(workload)
        return rig.call(workload)
    except WorkerFailed as failure:
        raise failure.on(workload.id) from None


MUCH = 4.0  # times the incumbent's typical error


def _require_precision(
    operator: Operator, workload: Workload, call: CheckedCall, incumbent: Rig
) -> None:
    for name, (expected, seen) in call.outputs.items():
        found = typical_error(expected, seen)
        if found <= allowed_error(seen.dtype, operator.tolerances[str(seen.dtype)].rtol):
            continue
        before = typical_error(*_fresh_call(incumbent, workload).outputs[name])
        if found > MUCH * before:
            raise GateClosed(
                Outcome.CHEATED,
                f"{workload.id}: {name} is computed with less precision than {seen.dtype}: half of its elements are off "
                f"by {found:.1e} or more, relatively; the incumbent's by {before:.1e}",
            )


def check_layout(operator: Operator, text: str) -> None:
    """The layout check of a candidate's implementation, for operators whose golden stands apart.

    Raises:
        GateClosed: it breaks a rule.
    """
    if operator.golden_file is None:
        return
    files = LayoutFiles(operator.name, text, operator.golden_text, test=None, spec=None)
    for found in check_text(files, tuned=True):
        if found.file == files.impl_name:
            what = f"{found.file}:{found.line}: {found.rule}: {found.message}"
            raise GateClosed(Outcome.LAYOUT_FAILED, what)


def check_signature(incumbent: Build, candidate: Build) -> None:
    """Gate 5: the candidate takes and gives the same tensors.

    Raises:
        GateClosed: it does not.
    """
    for name, artifact in candidate.artifacts.items():
        if artifact.tensors != incumbent.artifacts[name].tensors:
            raise GateClosed(Outcome.CHEATED, f"{name}: the kernel's signature was changed")
