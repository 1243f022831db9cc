"""Numbers of things in English."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 round`, `3 rounds`. For nouns whose plural ends in a plain s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
