"""The chips that PyPTO is tuned for, as far as edits have to know them."""

from __future__ import annotations

from opratchet.edit.model import Target

# Bytes of the memories of one core of a 910B2, the chip of PyPTO's cost model: PyPTO's own platform file.
MEMORIES_910B = {"UB": 196608, "L1": 524288, "L0A": 65536, "L0B": 65536, "L0C": 131072}


def pypto_target(backend: str) -> Target:
    """The target of a PyPTO backend."""
    return Target(backend=backend, dialect="pypto", memories=MEMORIES_910B)
