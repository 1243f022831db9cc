"""Knobs: the values in a source that may change, found in it by themselves, each with its legal values.

`find_knobs` lists them. A knob knows its present value, its legal ones for the target and the workloads, and how to
write another value into the text so that nothing else changes. The finders are small and know one place each:
`tiles` (block sizes), `loops` (kinds of loops, pipeline depth), `jit` (compile flags, pass configurations). The manifest
adds knobs and overrides legal values.
"""

from __future__ import annotations

from opratchet.edit.knobs.finding import find_knobs, knobs_of, unknown_knobs
from opratchet.edit.knobs.model import Knob, KnobKind, Value

__all__ = ["Knob", "KnobKind", "Value", "find_knobs", "knobs_of", "unknown_knobs"]
