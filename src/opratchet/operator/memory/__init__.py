"""`MEMORY.md` of a PyPTO operator: the log that every step of the procedure reads and appends to.

`reading` takes the text apart into sections, `key: value` lines and tables, `evidence` finds in them the two proofs that
an operator's accuracy is frozen, `appending` adds sections and rows and changes nothing that is there already.
"""

from __future__ import annotations

from opratchet.operator.memory.appending import append_rows, append_section
from opratchet.operator.memory.evidence import Evidence, compare_evidence, layout_evidence
from opratchet.operator.memory.reading import Memory, Pair, Row, Section, Table, read_memory

__all__ = [
    "Evidence",
    "Memory",
    "Pair",
    "Row",
    "Section",
    "Table",
    "append_rows",
    "append_section",
    "compare_evidence",
    "layout_evidence",
    "read_memory",
]
