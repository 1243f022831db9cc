"""How much work a kernel does, counted in the tile program that TileLang builds before it lowers anything.

`factory.get_tir(**shape)` gives that program: loops with fixed extents, elementwise stores, and tile operations
(`copy`, `gemm`, `reduce`, `fill`). One walk over the tree is enough: the work of a loop is its extent times the work
of its body. A loop whose extent depends on an outer variable, as in a causal attention, is counted by going through
the values of that variable.

What is counted is what this version of the kernel does, padding of the last tile included: `2 M N K` for a matrix
product whose tiles divide the shape, a little more for one whose tiles do not. Integer arithmetic (indices), casts,
comparisons and choices are no operations; of two branches the heavier one counts. An operation that this module does
not know is an error, never a silent zero: then the author declares `flops` in the manifest.

Nodes are told apart by the names of their types, so nothing heavy is imported here; tested with TileLang 0.1.15.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from opratchet.errors import BadInput

# Keys are "flops", "transcendentals", and for bytes of main memory ("read" or "write", buffer name, buffer bytes).
Key = str | tuple[str, str, int]
Tally = Counter[Key]
Values = Mapping[Any, int]

LONGEST_ENUMERATION = 4096


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARITHMETIC = _words("Add Sub Mul Div Mod Min Max")
INTEGER_KINDS = _words("FloorDiv FloorMod EQ NE LT LE GT GE And Or")
LEAVES = _words("IntImm FloatImm StringImm Var SizeVar")
OPERANDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ARITHMETIC, ("a", "b")),
    **dict.fromkeys(INTEGER_KINDS, ("a", "b")),
    **dict.fromkeys(LEAVES, ()),
    "Not": ("a",),
    "Cast": ("value",),
    "Broadcast": ("value",),
    "Ramp": ("base", "stride"),
    "Let": ("value", "body"),
}
FLOPS_OF_CALL = {
    "sqrt": 1,
    "rsqrt": 2,
    "ieee_add": 1,
    "ieee_sub": 1,
    "ieee_mul": 1,
    "ieee_fdiv": 1,
    "ieee_fsqrt": 1,
    "ieee_frcp": 1,
    "ieee_frsqrt": 2,
    "ieee_fmaf": 2,
    "fma": 2,
    "fast_rcp": 1,
    "fmod": 1,
    "ldexp": 1,
    "clamp": 2,
}
TRANSCENDENTALS = _words(
    "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh "
    "tanh asinh acosh atanh sigmoid erf erfc pow power"
)
FREE_CALLS = _words(
    "if_then_else infinity fabs abs floor ceil round trunc nearbyint isnan isinf isfinite "
    "likely reinterpret region bitwise_and bitwise_or bitwise_xor bitwise_not shift_left "
    "shift_right max_value min_value launch_thread_idx max_finite_value copysign "
    "tvm_access_ptr address_of"
)
MOVING_TILES = _words("copy async_copy tma_copy fill transpose im2col reducer_init")
FLOPS_OF_REDUCTION = {"sum": 1, "max": 1, "min": 1, "abssum": 1, "absmax": 1}
INTEGERS: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Min": min,
    "Max": max,
}


class Operations(TypedDict):
    """Work of one call.

    Keys:
        flops: Floating-point additions, multiplications, divisions, roots, minima and maxima.
        transcendentals: Calls of `exp`, `erf`, `tanh` and the like.
        bytes: Bytes of main memory that are read or written at least once.
        traffic: Bytes that the blocks ask main memory for; a block asks for no byte of a buffer twice.
    """

    flops: int
    transcendentals: int
    bytes: int
    traffic: int


class _UnboundError(Exception):
    """A loop extent depends on a variable whose value is not fixed yet."""

    def __init__(self, variable: Any) -> None:
        super().__init__(str(variable))
        self.variable = variable


def count_operations(prim_func: Any) -> Operations:
    """Count the work of one call of a kernel.

    Args:
        prim_func: The tile program, as `factory.get_tir(...)` returns it.

    Raises:
        BadInput: an extent is not fixed by the shape, or an operation is not known here.
    """
    try:
        tally = _statement(prim_func.body, {})
    except _UnboundError as unbound:
        raise _uncountable(f"the length of a loop depends on `{unbound}`") from None
    return Operations(
        flops=tally["flops"],
        transcendentals=tally["transcendentals"],
        bytes=_moved(_once(tally)),
        traffic=_moved(tally),
    )


def _uncountable(what: str) -> BadInput:
    return BadInput(
        f"the operations of this kernel cannot be counted: {what}",
        fix='Declare them in the manifest, e.g. `flops = "2 * M * N * K"`.',
    )


def _work(*, flops: int = 0, transcendentals: int = 0) -> Tally:
    return Counter({"flops": flops, "transcendentals": transcendentals})


def _total(tallies: Iterable[Tally]) -> Tally:
    total: Tally = Counter()
    for tally in tallies:
        total.update(tally)
    return total


def _times(tally: Tally, factor: int) -> Tally:
    return Counter({key: amount * factor for key, amount in tally.items()})


def _once(tally: Tally) -> Tally:
    """The same work with each byte of main memory moved at most once each way."""
    return Counter(
        {k: min(amount, k[2]) if isinstance(k, tuple) else amount for k, amount in tally.items()}
    )


def _moved(tally: Tally) -> int:
    return sum(amount for key, amount in tally.items() if isinstance(key, tuple))


# Statements


def _statement(node: Any, values: Values) -> Tally:
    kind = type(node).__name__
    if kind not in STATEMENTS:
        raise _uncountable(f"the statement `{kind}` is not known")
    return STATEMENTS[kind](node, values)


def _loop(node: Any, values: Values) -> Tally:
    extent = _integer(node.extent, values)
    if _bound_to(node, "threadIdx"):
        extent = 1  # the threads of a block share its tile operations
    try:
        return _times(_iteration(node, values), extent)
    except _UnboundError as unbound:
        if not unbound.variable.same_as(node.loop_var) or extent > LONGEST_ENUMERATION:
            raise
    start = _integer(node.min, values)
    steps = range(start, start + extent)
    return _total(_iteration(node, {**values, node.loop_var: step}) for step in steps)


def _iteration(node: Any, values: Values) -> Tally:
    """One iteration; a block, which is one of the innermost grid loop, has its data at hand after the first access."""
    tally = _statement(node.body, values)
    is_block = _bound_to(node, "blockIdx") and not _bound_to(node.body, "blockIdx")
    return _once(tally) if is_block else tally


def _bound_to(node: Any, tag: str) -> bool:
    binding = getattr(node, "thread_binding", None)
    return binding is not None and str(binding.thread_tag).startswith(tag)


def _branch(node: Any, values: Values) -> Tally:
    taken = _statement(node.then_case, values)
    other = _statement(node.else_case, values) if node.else_case is not None else Counter()
    return _total([_expression(node.condition), _heavier(taken, other)])


def _heavier(first: Tally, second: Tally) -> Tally:
    return max(first, second, key=lambda tally: tally["flops"] + tally["transcendentals"])


def _store(node: Any, values: Values) -> Tally:
    indices = (_expression(index) for index in node.indices)
    return _total([_expression(node.value), _access("write", node.buffer, 1), *indices])


def _evaluate(node: Any, values: Values) -> Tally:
    call = node.value
    if _called(call).startswith("tl.tileop."):
        return _tile(_called(call).rsplit(".", 1)[1], list(call.args), values)
    return _expression(call)


STATEMENTS: dict[str, Callable[[Any, Values], Tally]] = {
    "For": _loop,
    "IfThenElse": _branch,
    "BufferStore": _store,
    "Evaluate": _evaluate,
    "SeqStmt": lambda node, values: _total(_statement(part, values) for part in node.seq),
    "SBlockRealize": lambda node, values: _statement(node.block, values),
    "SBlock": lambda node, values: _statement(node.body, values),
    "AttrStmt": lambda node, values: _statement(node.body, values),
    "Bind": lambda node, values: _expression(node.value),
    "AllocBuffer": lambda node, values: Counter(),
    "DeclBuffer": lambda node, values: Counter(),
}


# Tile operations


def _tile(name: str, arguments: list[Any], values: Values) -> Tally:
    regions = (argument for argument in arguments if _called(argument) == "tl.region")
    moved = (_region_access(region, values) for region in regions)
    return _total([_work(flops=_tile_flops(name, arguments, values)), *moved])


def _tile_flops(name: str, arguments: list[Any], values: Values) -> int:
    """Operations of a tile operation; argument places as in TileLang's `gemm_op.py` and `reduce_op.py`."""
    if name in MOVING_TILES:
        return 0
    if name == "gemm":
        rows, columns, depth = (_integer(extent, values) for extent in arguments[5:8])
        return 2 * rows * columns * depth
    if name == "reduce" and arguments[2].value in FLOPS_OF_REDUCTION:
        return _elements(arguments[0], values) * FLOPS_OF_REDUCTION[arguments[2].value]
    if name == "cumsum":
        return _elements(arguments[0], values)
    raise _uncountable(f"the tile operation `{name}` is not known")


def _region_access(region: Any, values: Values) -> Tally:
    """Traffic of a `region(first element, access, extents...)`; access is 1 to read, 2 to write, 3 for both."""
    access = int(region.args[1].value)
    elements = _elements(region, values)
    ways = [way for bit, way in ((1, "read"), (2, "write")) if access & bit]
    return _total(_access(way, region.args[0].buffer, elements) for way in ways)


def _elements(region: Any, values: Values) -> int:
    return math.prod(_integer(extent, values) for extent in region.args[2:])


def _access(way: str, buffer: Any, elements: int) -> Tally:
    if buffer.scope() != "global":
        return Counter()
    return Counter({(way, buffer.name, _size(buffer)): elements * _item_bytes(buffer)})


# Expressions


def _expression(node: Any) -> Tally:
    """Operations of an expression, computed once."""
    kind = type(node).__name__
    if kind == "BufferLoad":
        indices = (_expression(index) for index in node.indices)
        return _total([_access("read", node.buffer, 1), *indices])
    if kind == "Call":
        return _call(node)
    if kind == "Select":
        return _choice(node.condition, node.true_value, node.false_value)
    if kind not in OPERANDS:
        raise _uncountable(f"the expression `{kind}` is not known")
    own = _work(flops=int(kind in ARITHMETIC and _computes(node)))
    return _total([own, *(_expression(getattr(node, name)) for name in OPERANDS[kind])])


def _call(node: Any) -> Tally:
    name = _called(node).rsplit(".", 1)[-1].lstrip("_")
    if name == "if_then_else":
        return _choice(*node.args)
    inside = (_expression(argument) for argument in node.args)
    if name in TRANSCENDENTALS:
        return _total([_work(transcendentals=1), *inside])
    if name in FLOPS_OF_CALL:
        return _total([_work(flops=FLOPS_OF_CALL[name]), *inside])
    if name in FREE_CALLS:
        return _total(inside)
    raise _uncountable(f"the function `{name}` is not known")


def _choice(condition: Any, first: Any, second: Any) -> Tally:
    return _total([_expression(condition), _heavier(_expression(first), _expression(second))])


def _computes(node: Any) -> bool:
    """A floating-point operation on something that is not constant."""
    return "float" in str(node.dtype) and not all(map(_constant, (node.a, node.b)))


def _constant(node: Any) -> bool:
    return type(node).__name__ in ("IntImm", "FloatImm") or _called(node).endswith("infinity")


def _called(node: Any) -> str:
    """Full name of the operation that a call calls; empty for anything but a call."""
    return str(getattr(node.op, "name", node.op)) if type(node).__name__ == "Call" else ""


# Integers


def _integer(node: Any, values: Values) -> int:
    """Value of an extent; `_UnboundError` when it depends on a variable without a value."""
    if isinstance(node, int):
        return node
    kind = type(node).__name__
    if kind == "IntImm":
        return int(node.value)
    if kind in INTEGERS:
        return INTEGERS[kind](_integer(node.a, values), _integer(node.b, values))
    if kind == "Cast":
        return _integer(node.value, values)
    if node in values:
        return values[node]
    raise _UnboundError(node)


def _item_bytes(buffer: Any) -> int:
    """Bytes of an element: the first number in `float32`, `int8`, `float8_e4m3`; a `bool` takes one."""
    bits = re.search(r"\d+", str(buffer.dtype))
    return max(int(bits.group()) // 8, 1) if bits else 1


def _size(buffer: Any) -> int:
    return math.prod(_integer(extent, {}) for extent in buffer.shape) * _item_bytes(buffer)
