"""Surgery on source texts: only what was named changes, and comments stay with what they speak of."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.edit.source import code
from opratchet.edit.tree import (
    Surgery,
    block_of,
    expression,
    free_names,
    fresh_name,
    spoken,
    statement,
    substitute,
    walk,
)
from tests.edit.sources import EXAMPLES

TEXT = """def f():
    # About a.
    a = 1  # one

    # About b.
    b = 2
    c = 3
    # The end.
"""


def surgery(text: str = TEXT) -> tuple[Surgery, tuple[cst.CSTNode, ...]]:
    module = cst.parse_module(text)
    return Surgery(module), block_of(module.body[0])


def test_nothing_to_do_changes_nothing() -> None:
    assert surgery()[0].apply() == TEXT


def test_what_is_inserted_takes_the_blank_line_and_leaves_the_comment() -> None:
    change, (_, b, _) = surgery()
    change.insert_before(b, [statement("x = 0\n")])
    assert change.apply() == TEXT.replace("    # About b.", "    x = 0\n    # About b.")


def test_a_removed_statement_leaves_its_comment_to_the_next() -> None:
    change, (_, b, _) = surgery()
    change.remove(b)
    assert change.apply() == TEXT.replace("    b = 2\n", "")


def test_a_discarded_statement_takes_its_comment_along() -> None:
    change, (_, b, _) = surgery()
    change.discard(b)
    assert change.apply() == TEXT.replace("\n    # About b.\n    b = 2\n", "")


def test_the_last_statement_leaves_its_comment_to_the_block() -> None:
    change, (_, b, c) = surgery()
    change.remove(b)
    change.remove(c)
    assert change.apply() == TEXT.replace("    b = 2\n    c = 3\n", "").replace("one\n\n", "one\n")


def test_several_statements_in_the_place_of_one_inherit_its_comment() -> None:
    change, (a, _, _) = surgery()
    change.expand(a, [statement("x = 0\n"), statement("y = 1\n")])
    assert change.apply() == TEXT.replace("    a = 1  # one\n", "    x = 0\n    y = 1\n")


def test_a_block_does_not_begin_with_a_blank_line() -> None:
    change, (a, _) = surgery("def f():\n    a = 1\n\n    b = 2\n")
    change.remove(a)
    assert change.apply() == "def f():\n    b = 2\n"


def test_changes_inside_and_around_a_statement_go_together() -> None:
    change, (_, b, c) = surgery()
    assert isinstance(b, cst.SimpleStatementLine) and isinstance(b.body[0], cst.Assign)
    change.replace(b.body[0].value, expression("x + 1"))
    change.insert_before(b, [statement("x = 1\n")])
    change.insert_after(c, [statement("d = 4\n")])
    assert [line.strip() for line in change.apply().splitlines() if "=" in line] == [
        "a = 1  # one",
        "x = 1",
        "b = x + 1",
        "c = 3",
        "d = 4",
    ]


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_comments_survive_whatever_is_removed_or_inserted(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(EXAMPLES.glob("*/*/*.py"))))
    module = cst.parse_module(Path(path).read_text(encoding="utf-8"))
    change, added = Surgery(module), 0
    for parent in walk(module):
        for line in block_of(parent):
            action = data.draw(st.sampled_from(["keep", "remove", "before", "after"]))
            added += action in ("before", "after")
            if action == "remove" and isinstance(line, cst.SimpleStatementLine):
                change.remove(line)
            elif action == "before":
                change.insert_before(line, [statement("added = 0\n")])
            elif action == "after":
                change.insert_after(line, [statement("added = 0\n")])
    text = change.apply()
    cst.parse_module(text)
    assert text.count("added = 0") == added
    own_lines = [s for s in module.code.splitlines() if s.strip().startswith("#")]
    assert [s for s in text.splitlines() if s.strip().startswith("#")] == own_lines


LEAVES = st.sampled_from(["a", "b", "3", "7"])
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner)
        | st.builds("{} {} {}".format, inner, st.sampled_from("+-*"), inner)
    ),
    max_leaves=6,
)


@given(FORMULAS, FORMULAS, st.integers(-9, 9), st.integers(-9, 9))
def test_substitution_means_the_same_as_naming_the_value(
    formula: str, value: str, a: int, b: int
) -> None:
    replaced = code(substitute(expression(formula), {"a": expression(value)}))
    named = eval(formula, {"a": eval(value, {"a": a, "b": b}), "b": b})
    assert eval(replaced, {"a": a, "b": b}) == named


def test_attributes_and_keywords_are_no_names() -> None:
    assert free_names(expression("T.copy(a.b, dim=c)")) == {"T", "a", "c"}


@given(st.sets(st.sampled_from(["x", "x_2", "x_3", "y"])))
def test_a_fresh_name_is_not_taken(taken: set[str]) -> None:
    assert fresh_name("x", taken) not in taken


def test_spoken_names() -> None:
    assert spoken(expression("row_sum[i] / N")) == "row_sum_over_N"
    assert spoken(expression("T.exp(x[i, j] - m[i])")) == "exp_x_minus_m"
    assert spoken(expression("X[bx + i, j]")) == "x"
    assert spoken(expression("a[i] * a[i] * a[i] * a[i] * a[i] * a[i]")) == "value"
