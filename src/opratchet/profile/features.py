"""What the source of a kernel shows without running it: the facts that a diagnosis argues from.

One walk over the syntax tree of the kernel body, with the values of the factory's arguments at hand, finds the
number of blocks, the local buffers and their bytes, and the places that keep a CPU from computing at full width:
reductions along the innermost loop, transcendental calls, divisions, and buffers that only pass data through.
Where a size cannot be known from the text it is 0 and nothing is concluded from it.
"""

from __future__ import annotations

import ast
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opratchet.profile.count import TRANSCENDENTALS
from opratchet.profile.syntax import (
    find_factory,
    kernel_body,
    known_names,
    last_name,
    mentions,
    number,
    parameters,
    parse,
    root,
)

# A statement counts as inner when it runs at least this share as often as the one that runs most.
INNER_SHARE = 1 / 8
TILE_CALLS = re.compile(r"copy|gemm|clear|fill|reduce_\w+|cumsum|npuir_\w+|v[a-z]+")


@dataclass(frozen=True)
class Mark:
    """A place in the source: its line, from 1, and what is there."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.what} (line {self.line})"


@dataclass(frozen=True)
class Features:
    """Static facts of one kernel for one workload.

    Attributes:
        blocks: Number of blocks of the grid; 0 when unknown.
        buffers: Bytes of each local buffer by name; 0 when unknown.
        stages: `num_stages` of each `T.Pipelined` loop.
        copies_in_loops: Copies that are repeated by a loop inside a block.
        reductions: Reductions along the innermost axis: each step waits for the one before.
        transcendentals: Transcendental calls in inner loops.
        divisions: Divisions in inner loops.
        copy_through: Buffers that are copied in or out and used in one other place only.
        gemms: Tile matrix products.
    """

    blocks: int
    buffers: Mapping[str, int]
    stages: tuple[int, ...]
    copies_in_loops: int
    reductions: tuple[Mark, ...]
    transcendentals: tuple[Mark, ...]
    divisions: tuple[Mark, ...]
    copy_through: tuple[str, ...]
    gemms: tuple[Mark, ...]

    @property
    def local_bytes(self) -> int:
        """Bytes of all local buffers of a block together."""
        return sum(self.buffers.values())

    def record(self) -> dict[str, Any]:
        """The facts as JSON, for the ledger."""
        marks = ("reductions", "transcendentals", "divisions", "gemms")
        return {
            "blocks": self.blocks,
            "local_bytes": self.local_bytes,
            "buffers": dict(self.buffers),
            "stages": list(self.stages),
            "copies_in_loops": self.copies_in_loops,
            "copy_through": list(self.copy_through),
            **{name: [str(mark) for mark in getattr(self, name)] for name in marks},
        }


def read_features(text: str, kernel: str, arguments: Mapping[str, Any]) -> Features:
    """Read the features of a kernel.

    Args:
        text: The whole source.
        kernel: Name of the kernel factory.
        arguments: Arguments of the factory for this workload: shape, parameters, dtype. They win over its defaults.

    Raises:
        BadInput: the text is not valid Python, or has no function of that name.
    """
    module = parse(text)
    factory = find_factory(module, kernel)
    body = kernel_body(factory)
    walk = _Walk(known_names(module, factory, arguments), parameters(body))
    for statement in body.body:
        walk.visit(statement)
    return walk.features()


def _is_tile_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and TILE_CALLS.fullmatch(last_name(node.value)) is not None
    )


@dataclass(frozen=True)
class _Loop:
    """One loop around the place of the walk: its variables (innermost last) and how often it runs."""

    node: ast.For
    variables: tuple[str, ...]
    trips: float

    @property
    def elementwise(self) -> bool:
        """Whether it holds no tile operation, so that it works on elements."""
        return not any(_is_tile_call(node) for node in ast.walk(self.node))


class _Walk(ast.NodeVisitor):
    """Collects marks along the way; which of them lie in inner loops is known at the end."""

    def __init__(self, names: dict[str, Any], tensors: frozenset[str]) -> None:
        self.names = names
        self.tensors = tensors
        self.loops: list[_Loop] = []
        self.blocks = 0
        self.buffers: dict[str, int] = {}
        self.stages: list[int] = []
        self.copies_in_loops = 0
        self.marks: dict[str, list[tuple[float, Mark]]] = defaultdict(list)
        self.ranks: dict[str, int] = {}
        self.tile_operands: set[str] = set()
        self.copied: dict[str, int] = defaultdict(int)
        self.sites: dict[str, set[int]] = defaultdict(set)
        self.most_trips = 0.0

    # What is met

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and last_name(call) == "Kernel":
                extents = [number(arg, self.names) for arg in call.args]
                self.blocks = int(math.prod(extent or 0 for extent in extents))
        self._visit_all(node.body)

    def visit_For(self, node: ast.For) -> None:
        variables = tuple(n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))
        if last_name(node.iter) == "Pipelined":
            self.stages.append(self._stages(node.iter))
        self.loops.append(_Loop(node, variables, self._trips(node.iter)))
        self._visit_all(node.body)
        self.loops.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and last_name(node.value).startswith("alloc_"):
            self._allocate(target.id, node.value)
            return
        if isinstance(target, ast.Subscript):
            self._store(node, target, _reads(node.value, target))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            self._store(node, node.target, True)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        # Indices are integers: a division in them is none of ours.
        self._use(root(node), node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Div) and self.loops:
            self._mark("divisions", node, f"a division by `{ast.unparse(node.right)}`")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = last_name(node)
        if name == "copy":
            self._copy(node)
            return
        if name == "gemm":
            self._mark("gemms", node, "T.gemm")
        elif name.startswith("reduce_") and self._innermost(node):
            self._mark("reductions", node, f"T.{name}")
        elif name in TRANSCENDENTALS and self.loops:
            self._mark("transcendentals", node, f"T.{name}")
        if TILE_CALLS.fullmatch(name):
            self.tile_operands.update(map(root, node.args))
        self.generic_visit(node)

    # What it means

    def _visit_all(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def _trips(self, iterator: ast.expr) -> float:
        """Iterations of a loop; infinite when the text does not tell, so that it counts as an inner one."""
        if not isinstance(iterator, ast.Call):
            return math.inf
        extents = [number(arg, self.names) for arg in iterator.args]
        if last_name(iterator) in ("serial", "range", "unroll") and len(extents) > 1:
            start, stop = extents[:2]
            return math.inf if start is None or stop is None else max(stop - start, 0)
        return math.prod(math.inf if extent is None else extent for extent in extents)

    def _stages(self, iterator: ast.expr) -> int:
        keywords = iterator.keywords if isinstance(iterator, ast.Call) else []
        given = [number(word.value, self.names) for word in keywords if word.arg == "num_stages"]
        return int(given[0] or 0) if given else 0

    def _allocate(self, name: str, call: ast.expr) -> None:
        assert isinstance(call, ast.Call)
        shape = call.args[0] if call.args else None
        if not isinstance(shape, (ast.Tuple, ast.List)):
            self.buffers[name] = self._item_bytes(call) if last_name(call) == "alloc_var" else 0
            return
        self.ranks[name] = len(shape.elts)
        extents = [number(extent, self.names) or 0 for extent in shape.elts]
        self.buffers[name] = int(math.prod(extents)) * self._item_bytes(call)

    def _item_bytes(self, call: ast.Call) -> int:
        """Bytes of an element from the dtype argument: a text, a name, or an attribute such as `T.float32`."""
        dtype = call.args[-1] if call.args else None
        if isinstance(dtype, ast.Name):
            text = str(self.names.get(dtype.id, ""))
        else:
            text = str(dtype.value) if isinstance(dtype, ast.Constant) else last_name(dtype or call)
        bits = re.search(r"\d+", text)
        return max(int(bits.group()) // 8, 1) if bits else 0

    def _innermost(self, reduction: ast.Call) -> bool:
        """Whether a tile reduction runs along the last axis, as it does by default."""
        given = [word.value for word in reduction.keywords if word.arg == "dim"]
        axis = (given or reduction.args[2:3] or [ast.Constant(-1)])[0]
        return number(axis, self.names) in (-1, self.ranks.get(root(reduction.args[0]), 0) - 1)

    def _store(self, node: ast.stmt, target: ast.Subscript, accumulates: bool) -> None:
        self._use(root(target), target)
        self.most_trips = max(self.most_trips, self._depth_trips())
        inner = self.loops[-1].variables[-1:] if self.loops else ()
        if accumulates and inner and not mentions(target.slice, inner[0]):
            what = f"an accumulation into `{ast.unparse(target)}` along `{inner[0]}`"
            self._mark("reductions", node, what)

    def _copy(self, node: ast.Call) -> None:
        if self.loops:
            self.copies_in_loops += 1
        roots = [root(argument) for argument in node.args[:2]]
        for name, other in zip(roots, reversed(roots), strict=True):
            if name in self.buffers and other in self.tensors:
                self.copied[name] += 1
            else:
                self._use(name, node)

    def _use(self, name: str, node: ast.AST) -> None:
        """Note where a buffer is used; all uses in one nest of elementwise loops are one place."""
        if name in self.buffers:
            nests = (loop.node for loop in self.loops if loop.elementwise)
            self.sites[name].add(id(next(nests, node)))

    def _mark(self, kind: str, node: ast.expr | ast.stmt, what: str) -> None:
        self.marks[kind].append((self._depth_trips(), Mark(node.lineno, what)))

    def _depth_trips(self) -> float:
        return math.prod(loop.trips for loop in self.loops)

    # What is told

    def features(self) -> Features:
        return Features(
            blocks=self.blocks,
            buffers=self.buffers,
            stages=tuple(self.stages),
            copies_in_loops=self.copies_in_loops,
            reductions=tuple(mark for _, mark in self.marks["reductions"]),
            transcendentals=self._inner("transcendentals"),
            divisions=self._inner("divisions"),
            copy_through=tuple(self._copy_through()),
            gemms=tuple(mark for _, mark in self.marks["gemms"]),
        )

    def _inner(self, kind: str) -> tuple[Mark, ...]:
        least = self.most_trips * INNER_SHARE
        return tuple(mark for trips, mark in self.marks[kind] if trips >= least)

    def _copy_through(self) -> list[str]:
        """Buffers with one copy and one other place, which is a loop over elements and could use memory directly."""
        return [
            name
            for name in self.buffers
            if self.copied[name] == 1
            and len(self.sites[name]) == 1
            and name not in self.tile_operands
        ]


def _reads(value: ast.expr, target: ast.Subscript) -> bool:
    """Whether a value reads the element it is stored to."""
    text = ast.unparse(target)
    return any(
        isinstance(part, ast.Subscript) and ast.unparse(part) == text for part in ast.walk(value)
    )
