"""All flows by name. A new flow is one new file and one line here."""

from __future__ import annotations

from opratchet.errors import BadInput
from opratchet.flow import pypto, tilelang
from opratchet.flow.model import Flow

FLOWS: dict[str, Flow] = {flow.name: flow for flow in (tilelang.FLOW, pypto.FLOW)}


def get_flow(name: str) -> Flow:
    """The flow of that name.

    Raises:
        BadInput: there is none.
    """
    if name not in FLOWS:
        raise BadInput(f"unknown flow `{name}`", fix=f"Known flows: {', '.join(sorted(FLOWS))}.")
    return FLOWS[name]
