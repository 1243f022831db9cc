"""Loops: which there may be inside the graph, where they may be unrolled, and that the host has none around the kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from opratchet.judge.layout.code import Code, walk
from opratchet.judge.layout.kernel import Kernel
from opratchet.judge.layout.model import Finding
from opratchet.judge.layout.tiles import written

LOOPS = ("pypto.loop", "pypto.loop_unroll")
HOST_LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def check(kernel: Kernel, *, tuned: bool) -> Iterator[Finding]:
    """All rules about loops.

    Args:
        kernel: The implementation.
        tuned: Whether an `unroll_list` may hold several values.
    """
    yield from _graph_loops(kernel)
    yield from _host_loops(kernel)
    yield from _innermost(kernel.code)
    if not tuned:
        yield from _single(kernel.code)


def _graph_loops(kernel: Kernel) -> Iterator[Finding]:
    code = kernel.code
    loops = [node for node in kernel.nodes if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
    for loop in loops:
        if isinstance(loop, ast.While):
            message = "`while` is no loop of the graph: write `for ... in pypto.loop(...)`"
            yield code.finding("graph-loops", loop, message)
        elif not _is_graph_loop(code, loop):
            message = (
                f"the loop runs over `{code.shown(loop.iter)}`: "
                "take `pypto.loop`, `pypto.loop_unroll` or `range`"
            )
            yield code.finding("graph-loops", loop, message)
    heads = set(walk(loop.iter for loop in loops if not isinstance(loop, ast.While)))
    for call in code.calls(*LOOPS):
        if call in kernel.nodes and call not in heads:
            message = f"`{code.path(call.func)}` stands outside the head of a `for`: put it there"
            yield code.finding("graph-loops", call, message)


def _is_graph_loop(code: Code, loop: ast.For | ast.AsyncFor) -> bool:
    head = loop.iter
    return (
        isinstance(loop, ast.For)
        and isinstance(head, ast.Call)
        and code.path(head.func) in (*LOOPS, "range")
    )


def _host_loops(kernel: Kernel) -> Iterator[Finding]:
    reported: set[ast.AST] = set()
    for node in kernel.code.nodes:
        if not isinstance(node, HOST_LOOPS) or node in kernel.nodes or not kernel.drives([node]):
            continue
        if reported.isdisjoint(kernel.code.around(node)):
            reported.add(node)
            message = (
                "this loop calls the kernel again and again: "
                "call it once, with a `pypto.loop` inside"
            )
            yield kernel.code.finding("host-loop", node, message)


def _innermost(code: Code) -> Iterator[Finding]:
    inside = set(code.calls(*LOOPS))
    for node in code.nodes:
        if not isinstance(node, ast.For) or node.iter not in inside or not _unroll(node.iter):
            continue
        reached = code.reached(code.named(node.body))
        if not inside.isdisjoint([*walk(node.body), *walk(reached)]):
            message = (
                "`unroll_list` stands on a loop with another one inside: move it to the inner loop"
            )
            yield code.finding("unroll-innermost", node.iter, message)


def _single(code: Code) -> Iterator[Finding]:
    for call in code.calls(*LOOPS):
        for value in _unroll(call):
            match value:
                case ast.List(elts=[only]) if written(only):
                    continue
            message = (
                f"`unroll_list` is `{code.shown(value)}`: "
                "before tuning write one number in a list, e.g. `[1]`"
            )
            yield code.finding("unroll-single", value, message)


def _unroll(call: ast.AST) -> list[ast.expr]:
    """The `unroll_list` of a loop, as a list of one, or of none."""
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return [keyword.value for keyword in keywords if keyword.arg == "unroll_list"]
