"""Fast math: compute `exp`, `exp2`, `erf`, `tanh` or `sigmoid` by a polynomial inside the loop, not by a library call.

    y[i, j] = T.exp(x[i, j] - row_max[i])        becomes        y[i, j] = inline_exp(x[i, j] - row_max[i])

A call of `expf` is one element at a time, and keeps the whole loop from being vectorised. The macro that takes its
place (see `macros`) is nothing but arithmetic, so g++ turns the loop into vectors with no flag beyond `-O3
-march=native`. It is written into the kernel factory, in front of the kernel. The results differ from the library's in
the last few bits, which is for the accuracy gate to judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import libcst as cst

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import numbered
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.macros import MACROS, macro
from opratchet.edit.source import code, dotted, functions
from opratchet.edit.tree import (
    Surgery,
    children,
    fingerprint,
    free_names,
    fresh_name,
    positional,
)

_IN_ORDER = ("grid", "serial", "unroll", "range")
_BRANCHES = ("if_then_else", "Select")
# As seen: `exp` in softmax 1.9 (in attention, where it is little of the work, 1.1), `erf` in gelu 7; loops that do nothing
# else gained 4 (`exp`, `exp2`, `sigmoid`), 13 (`erf`) and 17 (`tanh`).
_PRIOR = {"exp": 1.9, "exp2": 1.9, "sigmoid": 1.9, "erf": 7.0, "tanh": 8.0}


class InlineMath(Strategy):
    """Replace a call of a transcendental function by a polynomial."""

    id = "inline-math"
    row = "fast_math"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "内联多项式超越函数",
        "en": "inline polynomial for exp/erf/tanh",
    }
    gain = (0.0, 2.0)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each call in a loop."""
        if situation.target.backend != "tilelang-c":
            return NotApplicable(
                "only C code gains; other targets have vector instructions for these functions"
            )
        kernel = tl.Kernel.of(situation.source)
        if kernel.source.body is kernel.source.factory:
            return NotApplicable(
                "there is no place for a macro: the kernel is not inside a factory"
            )
        sites = list(_sites(kernel))
        labels = numbered(f"{site.function}:{site.target}" for site in sites)
        found = [
            _why_not(kernel, site) or self._edit(kernel, site, label)
            for site, label in zip(sites, labels, strict=True)
        ]
        return answer(found, f"no loop calls {', '.join(MACROS)}")

    def _edit(self, kernel: tl.Kernel, site: _Site, label: str) -> Edit:
        surgery = Surgery(kernel.source.module)
        name = _with_macro(kernel, surgery, site)
        surgery.replace(site.call, site.call.with_changes(func=cst.Name(name)))
        title = f"compute {code(site.call)} by an inline polynomial"
        return Edit(self.id, label, title, surgery.apply(), _PRIOR[site.function])


@dataclass(frozen=True)
class _Site:
    """A call in the right side of an assignment.

    Attributes:
        call: The call.
        function: What it calls, e.g. `exp`.
        line: The assignment.
        target: Name of what is assigned to.
        guarded: Whether it is only evaluated on a condition, inside an expression.
    """

    call: cst.Call
    function: str
    line: tl.Assign
    guarded: bool

    @property
    def target(self) -> str:
        return self.line.target.base


def _sites(kernel: tl.Kernel) -> Iterator[_Site]:
    """Calls with a macro to take their place, in source order, that depend on something at run time."""
    for line in kernel.find(tl.assign):
        for call, guarded in _calls(line.value, False):
            if free_names(call) & kernel.values and kernel.loops_around(line.node):
                yield _Site(call, tl.primitive(call), line, guarded)


def _calls(node: cst.CSTNode, guarded: bool) -> Iterator[tuple[cst.Call, bool]]:
    if isinstance(node, cst.Call) and _library(node) and len(positional(node)) == 1:
        yield node, guarded
    inside = guarded or tl.primitive(node) in _BRANCHES
    for child in children(node):
        yield from _calls(child, inside)


def _library(call: cst.Call) -> bool:
    """Whether a call is `T.exp(...)` or its like; a macro of an earlier edit has no module in front."""
    return tl.primitive(call) in MACROS and isinstance(call.func, cst.Attribute)


def _why_not(kernel: tl.Kernel, site: _Site) -> str:
    text = f"`{code(site.call)}`"
    if site.guarded:
        # The macro's statements stand in front of the whole assignment, where the condition does not hold them back.
        return f"{text} is evaluated on a condition, and may not be outside of it"
    kind = kernel.loops_around(site.line.node)[-1].kind
    if kind not in _IN_ORDER:
        return f"{text} stands in a loop over T.{kind}, whose vectors a macro would break up"
    other = sorted(_dtypes(kernel, site.call) - {"float32"})
    return f"{text} computes with {other[0]}; the polynomials are for float32" if other else ""


def _dtypes(kernel: tl.Kernel, node: cst.BaseExpression) -> set[str]:
    """Dtypes of the tensors that an expression mentions; a parameter of the factory counts as its default."""
    tensors: dict[str, tl.Alloc | tl.Parameter] = {**kernel.parameters, **kernel.allocs}
    written = {tensors[name].dtype for name in free_names(node) & tensors.keys()}
    parameters = kernel.source.factory.params.params
    defaults = {p.name.value: code(p.default) for p in parameters if p.default is not None}
    return {defaults.get(text, text).strip("\"'").rpartition(".")[2] for text in written}


def _with_macro(kernel: tl.Kernel, surgery: Surgery, site: _Site) -> str:
    """Name of the macro for a call; it is added in front of the kernel unless it is there."""
    assert isinstance(site.call.func, cst.Attribute)
    module, wanted = dotted(site.call.func.value), f"inline_{site.function}"
    there = {function.name.value: function for function in functions(kernel.source.factory)}
    made = macro(site.function, wanted, module)
    if wanted in there and fingerprint(there[wanted]) == fingerprint(made):
        return wanted
    name = fresh_name(wanted, kernel.names)
    surgery.insert_before(kernel.source.body, [macro(site.function, name, module)])
    return name
