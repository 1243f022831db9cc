"""Errors that are meant for people.

Each says what was wrong, where, and what to do; each carries the exit code of the command line.
Nothing else that can be foreseen may reach a user as a traceback.
"""

from __future__ import annotations


class OpratchetError(Exception):
    """Base of every foreseen failure.

    Args:
        what: What was wrong, in one sentence.
        where: File and line, manifest key or option that caused it; empty when there is none.
        fix: What the user can do about it.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  {self.fix}" if self.fix else head


class BadInput(OpratchetError):
    """The operator, the manifest or an option cannot be used as given; nothing was written."""

    exit_code = 2


class GateRefused(OpratchetError):
    """The activation gate is closed: the operator's accuracy is not proven."""

    exit_code = 3


class BaselineFailed(OpratchetError):
    """The baseline could not be built or measured, so there is nothing to compare with."""

    exit_code = 4


class UserStopped(OpratchetError):
    """The user stopped the run before it had anything to deliver."""

    exit_code = 5


class EnvironmentMissing(OpratchetError):
    """A tool or package that the chosen backend needs is not on this machine."""

    exit_code = 6


class LedgerError(OpratchetError):
    """The ledger is damaged, or does not belong to what it is used with."""

    exit_code = 2
