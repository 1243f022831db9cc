"""Tiles: that they are set, by numbers that can be read, and that the numbers fit the hardware.

The bounds are those of PyPTO's documentation for `set_vec_tile_shapes` and `set_cube_tile_shapes`. What else a tile has to
fit, capacities above all, depends on the chip and is a matter of static legality, not of the layout.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from opratchet.judge.layout.code import Code
from opratchet.judge.layout.kernel import Kernel
from opratchet.judge.layout.model import Finding

VECTOR = "pypto.set_vec_tile_shapes"
CUBE = "pypto.set_cube_tile_shapes"
SETTERS = (VECTOR, CUBE)
MAX_AXES = 4
BLOCK_BYTES = 32

# Bytes of an element as the package itself has it (`pypto.bytes_of`): types of 4 bits take a whole byte there.
ELEMENT_BYTES = {
    "DT_INT4": 1,
    "DT_INT8": 1,
    "DT_INT16": 2,
    "DT_INT32": 4,
    "DT_INT64": 8,
    "DT_FP8": 1,
    "DT_FP16": 2,
    "DT_FP32": 4,
    "DT_BF16": 2,
    "DT_HF4": 1,
    "DT_HF8": 1,
    "DT_FP8E4M3": 1,
    "DT_FP8E5M2": 1,
    "DT_FP8E8M0": 1,
    "DT_FP4_E2M1X2": 1,
    "DT_FP4_E1M2X2": 1,
    "DT_UINT8": 1,
    "DT_UINT16": 2,
    "DT_UINT32": 4,
    "DT_UINT64": 8,
    "DT_BOOL": 1,
    "DT_DOUBLE": 8,
}

_AXES = ("m", "k", "n")


def check(kernel: Kernel) -> Iterator[Finding]:
    """All rules about tiles."""
    code = kernel.code
    setters = code.calls(*SETTERS)
    if kernel.entries and not any(call in kernel.nodes for call in setters):
        message = (
            "neither the jit function nor what it calls sets a tile: "
            "call `pypto.set_vec_tile_shapes` or `pypto.set_cube_tile_shapes` there"
        )
        yield code.finding("tile-setter", kernel.entries[0], message)
    yield from _handed_on(code, setters)
    element = smallest_element(kernel)
    for call in code.calls(VECTOR):
        yield from _vector(code, call, element)
    for call in code.calls(CUBE):
        yield from _cube(code, call)


def smallest_element(kernel: Kernel) -> int | None:
    """Bytes of the smallest dtype in the annotations of the jit functions; None where they name none."""
    annotations = (
        argument.annotation
        for entry in kernel.entries
        for argument in (*entry.args.posonlyargs, *entry.args.args, *entry.args.kwonlyargs)
        if argument.annotation
    )
    named = (kernel.code.path(node) for part in annotations for node in ast.walk(part))
    sizes = (ELEMENT_BYTES.get(path.removeprefix("pypto.")) for path in named)
    return min((size for size in sizes if size), default=None)


def _handed_on(code: Code, setters: Sequence[ast.Call]) -> Iterator[Finding]:
    """Uses of a setter other than calling it."""
    functions = {call.func for call in setters}
    for node in code.nodes:
        if code.path(node) in SETTERS and node not in functions:
            message = "a tile setter is bound to another name or handed on: call it by its own name"
            yield code.finding("literal-tiles", node, message)


def _vector(code: Code, call: ast.Call, element: int | None) -> Iterator[Finding]:
    tiles = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not tiles:
        yield code.finding("literal-tiles", call, "the tile has no axis: write its numbers")
        return
    if len(tiles) > MAX_AXES:
        message = f"the tile has {len(tiles)} axes, and may have {MAX_AXES} at most"
        yield code.finding("vector-axes", call, message)
    yield from (_not_literal(code, tile) for tile in tiles if not written(tile))
    last = tiles[-1]
    if element and written(last) * element % BLOCK_BYTES:
        message = (
            f"the last axis holds {code.shown(last)} elements of {element} bytes, no multiple of "
            f"{BLOCK_BYTES} bytes: take a multiple of {BLOCK_BYTES // element} elements"
        )
        yield code.finding("vector-alignment", last, message)


def written(node: ast.expr) -> int:
    """The whole number over 0 that is written out here; 0 for anything else."""
    value = node.value if isinstance(node, ast.Constant) else 0
    return max(value, 0) if type(value) is int else 0


def _not_literal(code: Code, node: ast.expr) -> Finding:
    message = f"`{code.shown(node)}` is no positive whole number written out: write the number here"
    return code.finding("literal-tiles", node, message)


def _cube(code: Code, call: ast.Call) -> Iterator[Finding]:
    given = dict(zip(_AXES, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in _AXES}
    for axis in _AXES:
        if axis in given:
            yield from _cube_axis(code, axis, given[axis])
        else:
            yield code.finding("cube-tiles", call, f"`{axis}` is not given: write it as `[L0, L1]`")


def _cube_axis(code: Code, axis: str, tile: ast.expr) -> Iterator[Finding]:
    if not isinstance(tile, ast.List):
        message = f"`{code.shown(tile)}` is no list written out: write `{axis}` as `[L0, L1]`"
        yield code.finding("literal-tiles", tile, message)
        return
    levels = [written(level) for level in tile.elts]
    if not all(levels):
        yield from (_not_literal(code, level) for level in tile.elts if not written(level))
    elif wrong := _wrong_levels(axis, levels):
        message = f"`{axis}` is `{code.shown(tile)}`: {wrong}"
        yield code.finding("cube-tiles", tile, message)


def _wrong_levels(axis: str, levels: Sequence[int]) -> str:
    """What is wrong with the tile of one axis, L0 first; `""` for nothing."""
    forms: dict[int, str] = {2: "`[L0, L1]`"}
    if axis == "k":
        forms[3] = "`[L0, A_L1, B_L1]`"
    if len(levels) not in forms:
        return f"it has to be {' or '.join(forms.values())}"
    small, *large = levels
    if any(small > level for level in large):
        return "L0 may not be larger than L1"
    if any(level % small for level in large):
        return "L1 has to be a multiple of L0"
    return ""
