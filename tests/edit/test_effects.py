"""What statements read and write, and that doubt is on the safe side."""

from __future__ import annotations

import libcst as cst
import pytest

from opratchet.edit.dialects.tilelang import alloc
from opratchet.edit.effects import assigned, effects, fills, is_pure
from opratchet.edit.tree import expression

BUFFERS = {"x", "y", "s", "X"}


def accesses(text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    found = effects(cst.parse_statement(text), BUFFERS)
    return [(a.name, "write" if a.writes else "read", a.key) for a in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "y[i, j] = x[i, j] * s[i]",
            [("x", "read", ("i", "j")), ("s", "read", ("i",)), ("y", "write", ("i", "j"))],
        ),
        (
            "s[i] += x[i, k]",
            [("x", "read", ("i", "k")), ("s", "read", ("i",)), ("s", "write", ("i",))],
        ),
        ("v = x[0, 0]", [("x", "read", ("0", "0")), ("v", "write", ())]),
        ("T.copy(X[b, 0], x)", [("X", "read", ("b", "0")), ("x", "write", ())]),
        (
            "T.reduce_max(x, s, dim=1, clear=False)",
            [("x", "read", ()), ("s", "read", ()), ("s", "write", ())],
        ),
        ("T.reduce_max(x, s, dim=1)", [("x", "read", ()), ("s", "write", ())]),
        (
            "T.gemm(x, X, y)",
            [("x", "read", ()), ("X", "read", ()), ("y", "read", ()), ("y", "write", ())],
        ),
        ("T.fill(y, s[0])", [("s", "read", ("0",)), ("y", "write", ())]),
        ("x = T.alloc_local((4,), dtype)", []),
        ("helper(x)", [("x", "read", ()), ("x", "write", ())]),
        ("y[x[i], 0] = 1.0", [("x", "read", ("i",)), ("y", "write", ("x[i]", "0"))]),
    ],
)
def test_accesses_in_order(text: str, expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert accesses(text) == expected


def test_a_call_inside_an_expression_that_is_not_known_may_write_what_it_is_given() -> None:
    assert ("x", "write", ()) in accesses("v = helper(x)")


def test_names_bound_in_any_form_count_as_assigned() -> None:
    text = "for i in T.serial(4):\n    a, b = pair()\n    c = 1; d = 2\n    with f() as g:\n        pass\n"
    assert assigned([cst.parse_statement(text)], BUFFERS) >= {"a", "b", "c", "d", "g", "i"}


def test_a_branch_is_never_sure_to_write() -> None:
    found = effects(
        cst.parse_statement("if c:\n    T.clear(y)\nelse:\n    T.copy(X[0], y)\n"), BUFFERS
    )
    assert [a.covers for a in found if a.name == "y"] == [False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for i, j in T.grid(m, n):\n    y[i, j] = 0.0\n", True),
        (
            "for i in T.serial(m):\n    r = s[i]\n    for j in T.serial(n):\n        y[i, j] = r\n",
            True,
        ),
        ("T.clear(y)\n", True),
        ("for i, j in T.grid(m, n):\n    y[j, i] = 0.0\n", False),
        ("for i, j in T.grid(m, 8):\n    y[i, j] = 0.0\n", False),
        ("for i, j in T.grid(m, n):\n    y[i, j] = y[i, j] + 1.0\n", False),
        ("for i, j in T.grid(m, n):\n    if i > 2:\n        y[i, j] = 0.0\n", False),
        ("for i in T.serial(m):\n    y[i, 0] = 0.0\n", False),
        ("for i, j, k in T.grid(m, n, 2):\n    y[i, j] = 0.0\n", False),
    ],
)
def test_a_loop_fills_a_buffer_only_if_it_sets_every_element_first(
    text: str, expected: bool
) -> None:
    buffer = alloc(cst.parse_statement("y = T.alloc_local((m, n), dtype)"))
    assert buffer is not None
    assert fills(cst.parse_statement(text), buffer) is expected


def test_purity() -> None:
    assert is_pure(expression("T.exp(x[i, j]) / N"))
    assert not is_pure(expression("helper(x[i, j])"))
    assert not is_pure(expression("(v := x[i, j])"))
