"""`golden-fallback`: what the host does when the kernel fails.

Three ways to hide a failure are looked for: an `except` that computes the result in another way, one that goes on as if nothing
had happened, and their relatives `contextlib.suppress` and `return` in a `finally`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from opratchet.judge.layout.code import Code, has_word, walk
from opratchet.judge.layout.kernel import Kernel
from opratchet.judge.layout.model import Finding

SUPPRESS = "contextlib.suppress"

# Functions and modules of torch that compute nothing: they make tensors, or ask and tell something of the surroundings.
_NO_MATH = frozenset(
    (
        "arange",
        "as_tensor",
        "backends",
        "cuda",
        "device",
        "empty",
        "empty_like",
        "from_numpy",
        "full",
        "full_like",
        "get_default_dtype",
        "is_tensor",
        "manual_seed",
        "npu",
        "ones",
        "ones_like",
        "set_default_dtype",
        "set_num_threads",
        "Size",
        "tensor",
        "zeros",
        "zeros_like",
    )
)


def check(kernel: Kernel) -> Iterator[Finding]:
    """`golden-fallback`."""
    for node in kernel.code.nodes:
        if what := _what(kernel, node):
            yield kernel.code.finding("golden-fallback", node, f"{what}: let the error through")


def _what(kernel: Kernel, node: ast.AST) -> str:
    """What a node does that hides a failure; `""` for nothing."""
    match node:
        case ast.ExceptHandler(body=body):
            if other := _computes(kernel.code, body):
                return f"this `except` computes a result with `{other}`"
            if kernel.drives(_guarded(kernel.code, node)) and not _raises(body):
                return "this `except` hides that the kernel failed"
        case ast.With(items=items, body=body):
            if _suppresses(kernel.code, items) and kernel.drives(body):
                return "this `suppress` hides that the kernel failed"
        case ast.Try(body=body, finalbody=[_, *_] as final):
            if _returns(final) and kernel.drives(body):
                return "the `return` in this `finally` hides that the kernel failed"
    return ""


def _guarded(code: Code, handler: ast.ExceptHandler) -> Sequence[ast.stmt]:
    """The statements whose errors a handler takes."""
    body: Sequence[ast.stmt] = getattr(next(code.around(handler)), "body", [])
    return body


def _computes(code: Code, body: Sequence[ast.stmt]) -> str:
    """What a piece of code, or a function that it reaches, computes with; `""` when it computes nothing."""
    for node in walk([*body, *code.reached(code.named(body))]):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return "@"
        path = code.path(node.func) if isinstance(node, ast.Call) else ""
        if _is_math(path) or any(has_word(part, "golden") for part in path.split(".")):
            return path
    return ""


def _is_math(path: str) -> bool:
    module, _, name = path.partition(".")
    return module == "torch" and name.split(".")[0] not in _NO_MATH


def _suppresses(code: Code, items: Sequence[ast.withitem]) -> bool:
    managers = (item.context_expr for item in items)
    return any(isinstance(m, ast.Call) and code.path(m.func) == SUPPRESS for m in managers)


def _returns(body: Iterable[ast.AST]) -> bool:
    return any(isinstance(node, ast.Return) for node in walk(body))


def _raises(body: Sequence[ast.stmt]) -> bool:
    """Whether a handler ends in an error on every way through it."""
    return _ends_raising(body) and not _returns(body)


def _ends_raising(body: Sequence[ast.stmt]) -> bool:
    match body:
        case [*_, ast.Raise()]:
            return True
        case [*_, ast.With(body=inner)]:
            return _ends_raising(inner)
        case [*_, ast.If(body=then, orelse=otherwise)]:
            return _ends_raising(then) and _ends_raising(otherwise)
    return False
