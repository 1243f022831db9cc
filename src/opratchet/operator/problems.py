"""What is wrong with what a person gave us, and how it is told: place, sentence, remedy.

Reading goes on after the first problem where it can, so that one run names all of them. `refuse` turns the
collection into the single `BadInput` that the command line shows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opratchet.errors import BadInput


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: what, where (file, line, key) and what to do about it."""

    what: str
    where: str
    fix: str


def refuse(problems: Sequence[Problem]) -> None:
    """Do nothing when there are no problems.

    Raises:
        BadInput: there is at least one problem; the message holds all of them.
    """
    if not problems:
        return
    if len(problems) == 1:
        only = problems[0]
        raise BadInput(only.what, where=only.where, fix=only.fix)
    listed = "".join(f"\n  {p.where}: {p.what}\n    {p.fix}" for p in problems)
    raise BadInput(
        f"{len(problems)} things are wrong:{listed}", fix="Mend them all, then run again."
    )


def advice(word: str, known: Iterable[str]) -> str:
    """`Did you mean ...? Known: ...` for a word that is not among the known ones."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    guess = f"Did you mean `{near[0]}`? " if near else ""
    listed = f"Known: {', '.join(names)}." if names else "None are known here."
    return guess + listed


def shown(value: object, limit: int = 60) -> str:
    """A value as it can stand in a sentence: its `repr`, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
