"""What an audit says: findings, which mean that something is not as the ledger has it, and remarks, which do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from opratchet.ledger.state import RunState

SHOWN = 160
"""Characters of a value that are shown at most."""


@dataclass(frozen=True)
class Finding:
    """One thing that an audit has to say.

    Attributes:
        check: What was being checked: `ledger`, `order`, `stop`, `figures`, `files`, `edits`, `views`, `measured`.
        file: The file, relative to the folder that is audited.
        what: What is wrong, in one sentence.
        line: Its line, from 1; 0 when it is about the whole file.
        key: Key within the line or the event, where there is one.
        found: What stands there, as far as it is of use.
        expected: What should.
        remark: True when it is worth knowing and nothing is wrong.
    """

    check: str
    file: str
    what: str
    line: int = 0
    key: str = ""
    found: str = ""
    expected: str = ""
    remark: bool = False

    @property
    def where(self) -> str:
        """`opt_log.md:17`, `ledger.jsonl:4 (ratio.value)`."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} ({self.key})" if self.key else place

    def in_print(self) -> Finding:
        """The same with texts that may be printed anywhere: they hold what stands in files of unknown origin."""
        return replace(
            self,
            file=printable(self.file),
            what=printable(self.what),
            key=printable(self.key),
            found=printable(self.found),
            expected=printable(self.expected),
        )

    def record(self) -> dict[str, Any]:
        """As one JSON object."""
        return {key: value for key, value in asdict(self).items() if key != "remark"}


@dataclass
class Audit:
    """The result.

    Attributes:
        folder: What was audited.
        running: Process that writes in the folder now; None when none does.
        complete: Whether the run has delivered.
        state: The fold of its ledger, as far as it can be read.
        counts: How much was checked, by what.
        findings: What is wrong.
        remarks: What is worth knowing.
    """

    folder: Path
    running: int | None = None
    complete: bool = False
    state: RunState = field(default_factory=RunState)
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    remarks: list[Finding] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def has_sound_ledger(self) -> bool:
        """Whether nothing is wrong with the ledger itself."""
        return not any(f.check in ("ledger", "order") for f in self.findings)

    def add(self, finding: Finding) -> None:
        """Take in a finding or a remark, once."""
        listed = self.remarks if finding.remark else self.findings
        if (printed := finding.in_print()) not in listed:
            listed.append(printed)

    def take(self, findings: Iterable[Finding]) -> None:
        """Take in several."""
        for finding in findings:
            self.add(finding)

    def record(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "clean": self.is_clean,
            "folder": self.folder.as_posix(),
            "running": self.running is not None,
            "complete": self.complete,
            "counts": self.counts,
            "findings": [finding.record() for finding in self.findings],
            "remarks": [remark.record() for remark in self.remarks],
        }


def printable(text: str) -> str:
    """A text of unknown origin on one line, without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(text: str, around: int = 0) -> str:
    """A text cut to `SHOWN` characters around a place, with dots where something was left out.

    Args:
        text: The text.
        around: Index of the character that must be seen.
    """
    start = max(0, around - SHOWN // 2)
    part = text[start : start + SHOWN]
    return f"{'…' if start else ''}{printable(part)}{'…' if start + SHOWN < len(text) else ''}"
