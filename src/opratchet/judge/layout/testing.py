"""The test of an operator: that it compares with the shared helper, and at both levels.

An operator is tested at two levels: L0, small shapes for a fast look, and L1, the P0 shapes of SPEC.md. A level is a function of
its own, `test_softmax_l0`, or a case of a parametrised one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain

from opratchet.judge.layout.code import Code, names, walk
from opratchet.judge.layout.loops import HOST_LOOPS
from opratchet.judge.layout.model import Finding
from opratchet.operator.python_source import FunctionNode, assignment, called

HELPER = "detailed_tensor_compare"

# `l0`, `level0`, `level_0` as a word of a name; likewise 1, which upstream also calls P0 for the shapes it takes.
LEVELS = {
    "L0": re.compile(r"(?:^|_)(?:l|level_?)0(?:_|$)"),
    "L1": re.compile(r"(?:^|_)(?:(?:l|level_?)1|p0)(?:_|$)"),
}
_MAX_DIFFERENCE = re.compile(r"max.*(?:diff|err)|(?:diff|err).*max")


def check(code: Code, golden: Code | None, op: str) -> Iterator[Finding]:
    """All rules about the test.

    Args:
        code: The test.
        golden: The golden, which tells how many outputs there are; None where it cannot be read.
        op: Name of the operator.
    """
    tests = {level: tests_at(code, level, op) for level in LEVELS}
    for level, functions in tests.items():
        if not functions:
            message = f"there is no test at {level}: call it `test_{op}_{level.lower()}`"
            yield code.finding("test-levels", None, message)
    every = dict.fromkeys(function for functions in tests.values() for function in functions)
    yield from _compares(code, list(every), outputs_of(golden, op) if golden else 1)
    yield from _by_hand(code)


def tests_at(code: Code, level: str, op: str) -> list[FunctionNode]:
    """The tests of a level."""
    tests = (function for function in code.definitions if function.name.startswith("test"))
    return [test for test in tests if any(LEVELS[level].search(w) for w in _words(code, test, op))]


def _words(code: Code, test: FunctionNode, op: str) -> Iterator[str]:
    """A test's name, and the names of its cases, as words between underscores.

    The operator's own name may hold such a word, as `l1_norm` does.
    """
    yield test.name.lower().removeprefix(f"test_{op.lower()}")
    for decorator in test.decorator_list:
        if code.path(called(decorator)).endswith("parametrize"):
            yield from _cases(code, decorator)


def _cases(code: Code, decorator: ast.expr) -> Iterator[str]:
    """The texts in a parametrisation and in the constants that it names; for the argument `level` also its numbers."""
    values = [decorator, *_constants(code, names([decorator]))]
    constants = [n.value for n in walk(values) if isinstance(n, ast.Constant)]
    texts = [re.sub(r"\W", "_", value.lower()) for value in constants if isinstance(value, str)]
    yield from texts
    if "level" in texts:
        yield from (f"l{value}" for value in constants if value in (0, 1))


def _constants(code: Code, wanted: Iterable[str]) -> Iterator[ast.expr]:
    bound = dict(assignment(statement) for statement in code.tree.body)
    for name in wanted:
        if (value := bound.get(name)) is not None:
            yield value


def outputs_of(golden: Code, op: str) -> int:
    """How many outputs a golden returns, as far as a `return` shows it; 1 where it does not."""
    returned = (
        node.value
        for function in golden.functions.get(f"{op}_golden", [])
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value
    )
    return max((_leaves(value) for value in returned), default=1)


def _leaves(value: ast.expr) -> int:
    """The tensors in a tuple, list or dict that is written out."""
    count, pending = 0, [value]
    while pending:
        match pending.pop():
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                pending += parts
            case _:
                count += 1
    return count


def _compares(code: Code, tests: Sequence[FunctionNode], outputs: int) -> Iterator[Finding]:
    for function in code.functions.get(HELPER, []):
        message = f"`{HELPER}` is written anew here: import the one that all operators use"
        yield code.finding("compare-helper", function, message)
    if not _comparisons(code, [code.tree]):
        yield code.finding("compare-helper", None, f"`{HELPER}` is never called: compare with it")
        return
    for test in tests:
        count = _compared(code, test)
        if not count:
            message = f"`{test.name}` does not reach a call of `{HELPER}`: compare its outputs"
            yield code.finding("compare-helper", test, message)
        elif count < outputs:
            message = (
                f"the golden has {outputs} outputs, and `{test.name}` compares {count}: "
                "compare each of them, one by one or in a loop"
            )
            yield code.finding("compare-helper", test, message)


def _compared(code: Code, test: FunctionNode) -> float:
    """How many outputs a test compares; infinitely many for a comparison in a loop, as its length is not to be seen.

    A comparison is a call of the helper, or of a function of this file that reaches one. Of the functions that a test reaches,
    the one with the most comparisons counts.
    """
    reached = code.reached([test])
    comparing = {f.name for f in reached if f is not test and _comparisons(code, code.reached([f]))}
    calls = [_calls(code, function.body, {HELPER, *comparing}) for function in reached]
    holders = (holder for call in chain(*calls) for holder in code.around(call))
    in_loop = any(isinstance(holder, HOST_LOOPS) for holder in holders)
    return float("inf") if in_loop else max(map(len, calls))


def _comparisons(code: Code, body: Iterable[ast.AST]) -> list[ast.Call]:
    """The calls of the helper in a piece of code."""
    return _calls(code, body, {HELPER})


def _calls(code: Code, body: Iterable[ast.AST], wanted: Container[str]) -> list[ast.Call]:
    """The calls of functions by the last word of their name."""
    return [
        node
        for node in walk(body)
        if isinstance(node, ast.Call) and code.path(node.func).split(".")[-1] in wanted
    ]


def _by_hand(code: Code) -> Iterator[Finding]:
    """Bounds on the largest difference in functions that do not use the helper."""
    for node in code.nodes:
        if isinstance(node, ast.Assert) and _bounds_difference(code, node.test):
            holders = [h for h in code.around(node) if isinstance(h, FunctionNode)]
            if not _comparisons(code, code.reached(holders)):
                message = f"only the largest difference is bounded: compare with `{HELPER}`"
                yield code.finding("compare-helper", node, message)


def _bounds_difference(code: Code, test: ast.expr) -> bool:
    """Whether a condition bounds something called `max_diff`, or the largest of something."""
    inside = list(ast.walk(test))
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    if not any(isinstance(order, orders) for order in inside):
        return False
    return any(_is_largest(node) for node in inside)


def _is_largest(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in ("max", "amax")
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return bool(_MAX_DIFFERENCE.search(name.lower()))
    return False
