"""What a candidate may not touch.

Of the names at the top level of the source, everything is frozen but the kernel itself and what only serves the
kernel: the golden, whatever the golden needs, the test code (`run_case`, `run_L0`, `main`, ...), input makers,
workloads, imports. A constant that both the kernel and the test code use, such as a block size, stays open; one that
the golden uses does not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from opratchet.operator.model import Operator
from opratchet.operator.python_source import PythonSource, bound_names

_TESTS = re.compile(r"main|run_.+|test_.+|golden_.+|(?:make|gen|get|generate)_inputs?|WORKLOADS")


def frozen_names(operator: Operator) -> frozenset[str]:
    """Top-level names (functions, classes, constants, imports) whose definition has to stay the same tree."""
    source = PythonSource(Path(operator.source), operator.text)
    uses = _uses(source.statements)
    frozen = {name for name in uses if _TESTS.fullmatch(name)} | _reached({operator.golden}, uses)
    open_to_change = _reached({operator.kernel}, uses) - frozen
    return frozenset(set(uses) - open_to_change - {operator.kernel})


def _uses(statements: Iterable[ast.stmt]) -> dict[str, set[str]]:
    """For each top-level name, the names that its definitions mention."""
    uses: dict[str, set[str]] = {}
    for statement in statements:
        mentioned = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        for name in bound_names(statement):
            uses.setdefault(name, set()).update(mentioned)
    return uses


def _reached(roots: Iterable[str], uses: Mapping[str, set[str]]) -> set[str]:
    """The roots and all top-level names that they need, directly or not."""
    reached: set[str] = set()
    pending = [name for name in roots if name in uses]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += [used for used in uses[name] if used in uses]
    return reached
