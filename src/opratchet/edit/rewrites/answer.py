"""What a rewrite answers: its edits, or one reason why there are none."""

from __future__ import annotations

from collections.abc import Iterable

from opratchet.edit.model import Edit, NotApplicable


def answer(found: Iterable[Edit | str], otherwise: str) -> list[Edit] | NotApplicable:
    """Edits if there are any, else the reasons (strings among `found`), else `otherwise`."""
    everything = list(found)
    edits = [one for one in everything if isinstance(one, Edit)]
    if edits:
        return sorted(edits, key=lambda edit: -edit.prior)
    reasons = dict.fromkeys(one for one in everything if isinstance(one, str))
    return NotApplicable("; ".join(reasons) or otherwise)
