"""The two proofs that activate the PyPTO procedure: looked for before anything else, made on request.

Activation reads MEMORY.md and nothing more; what it says is contradicted or confirmed when the run's own gate makes the same checks
again. `prove` makes both and appends what it found, passed or not: a row a check, bound to this version of the implementation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opratchet.edit.source import sha256
from opratchet.errors import GateRefused
from opratchet.flow.registry import get_flow
from opratchet.gates import GateClosed, verify
from opratchet.judge.layout import Finding, check_layout
from opratchet.lab.bench import Lab
from opratchet.lab.failure import WorkerFailed
from opratchet.ledger.files import atomic_write
from opratchet.ledger.words import Accuracy
from opratchet.operator.activation import Activation, Language, activation
from opratchet.operator.files import read_exact
from opratchet.operator.memory import append_rows, read_memory
from opratchet.operator.model import Operator

MEMORY_NAME = "MEMORY.md"
DIGITS = 12  # of the implementation's hash in a row
SECTION = "Activation evidence"
COMPARED = (
    "When",
    "Tensors compared",
    "Workload",
    "rtol",
    "atol",
    "all_close",
    "Key stats",
    "Command or script",
    "impl_sha256",
)
LAID_OUT = ("When", "Check", "Exit code", "Findings", "impl_sha256")


class NotActivated(GateRefused):
    """The proofs that the procedure asks for are not on record.

    Attributes:
        activation: What is missing.
        block: What is handed back to the orchestrator.
    """

    def __init__(self, found: Activation, folder: Path, language: Language) -> None:
        super().__init__("the operator is not activated", where=str(folder / MEMORY_NAME))
        self.activation = found
        self.block = found.block(language, str(folder))


def needs_activation(operator: Operator) -> bool:
    """Whether the operator's procedure begins with the two proofs."""
    return get_flow(operator.flow).activated


def require_active(operator: Operator, language: Language) -> Activation:
    """Look for both proofs.

    Raises:
        NotActivated: one is missing.
    """
    path = operator.root / MEMORY_NAME
    text = read_exact(path) if path.is_file() else ""
    found = activation(read_memory(text), operator.outputs, sha256(operator.text))
    if not found.ok:
        raise NotActivated(found, operator.root, language)
    return found


@dataclass(frozen=True)
class Proved:
    """What making both proofs gave.

    Attributes:
        accuracy: Every comparison that was made.
        failure: Why the comparison ended without success; empty when all outputs are close.
        findings: Findings of the layout check.
    """

    accuracy: Sequence[Accuracy]
    failure: str
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Both are there."""
        return not self.failure and not self.findings


def prove(lab: Lab) -> Proved:
    """Make both checks on the implementation as it is, and append what they found to MEMORY.md.

    Raises:
        BadInput: MEMORY.md cannot be read.
        OpratchetError: it cannot be written.
    """
    operator = lab.operator
    accuracy, failure = _compared(lab)
    proved = Proved(accuracy, failure, check_layout(operator.root))
    path = operator.root / MEMORY_NAME
    before = read_exact(path) if path.is_file() else f"# {operator.name}\n"
    text = append_rows(before, SECTION, COMPARED, _comparison_rows(operator, proved))
    text = append_rows(text, SECTION, LAID_OUT, [_layout_row(operator, proved)])
    atomic_write(path, text)
    return proved


def _compared(lab: Lab) -> tuple[list[Accuracy], str]:
    try:
        build = lab.build(lab.operator.text, lab.operator.checked)
        with lab.caller(build) as rig:
            return verify(lab, rig), ""
    except GateClosed as closed:
        return list(closed.accuracy), closed.reason
    except WorkerFailed as failed:
        return [], failed.reason


def _comparison_rows(operator: Operator, proved: Proved) -> list[list[str]]:
    """A row for each output: it is close only where every output is, on every workload."""
    return [_comparison_row(operator, proved, output) for output in operator.outputs]


def _comparison_row(operator: Operator, proved: Proved, output: str) -> list[str]:
    own = [record for record in proved.accuracy if record.output == output]
    worst = max(own, key=lambda record: record.max_abs, default=None)
    close = [f"{worst.rtol:g}", f"{worst.atol:g}"] if worst else ["", ""]
    return [
        _now(),
        output,
        ", ".join(dict.fromkeys(record.workload for record in own)),
        *close,
        str(not proved.failure and bool(own)).lower(),
        f"max_diff {worst.max_abs:.3g}" if worst else proved.failure or "not compared",
        f"opratchet check --prove {operator.root.name}",
        _digits(operator),
    ]


def _layout_row(operator: Operator, proved: Proved) -> list[str]:
    rules = ", ".join(dict.fromkeys(finding.rule for finding in proved.findings))
    return [_now(), "layout check", str(int(bool(proved.findings))), rules, _digits(operator)]


def _digits(operator: Operator) -> str:
    return sha256(operator.text)[:DIGITS]


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
