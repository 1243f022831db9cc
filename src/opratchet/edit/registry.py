"""All strategies by id. A new strategy is one new file and one line here."""

from __future__ import annotations

from opratchet.edit.model import Strategy

STRATEGIES: dict[str, Strategy] = {}
