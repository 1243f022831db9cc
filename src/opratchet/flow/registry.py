"""All flows by name. A new flow is one new file and one line here."""

from __future__ import annotations

from opratchet.errors import BadInput
from opratchet.flow import tilelang
from opratchet.flow.model import Flow

FLOWS: dict[str, Flow] = {tilelang.FLOW.name: tilelang.FLOW}


def get_flow(name: str) -> Flow:
    """The flow of that name.

    Raises:
        BadInput: there is none.
    """
    if name not in FLOWS:
        raise BadInput(f"unknown flow `{name}`", fix=f"Known flows: {', '.join(sorted(FLOWS))}.")
    return FLOWS[name]
