"""Splices put items into lists and take them out again, to the byte."""

from __future__ import annotations

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.edit.source import KernelSource
from opratchet.edit.splice import Places, Splice, spliced

FORMS = [
    "f(a)",
    "f(a, b=1)",
    "f(\n    a,\n    b=1,\n)",
    "f(\r\n\ta,\r\n\tb=1,\r\n)",
    "f(a,\n  b=1)",
    "f(\n    a,\n    b=1,  # why\n)",
    "f()",
    "[1, 2]",
    "[\n    1,\n    2,  # two\n]",
    "[]",
    "(1, 2)",
    '{"a": 1, **b}',
    "{}",
]


def items_of(node: cst.BaseExpression) -> list[cst.Arg | cst.BaseElement | cst.BaseDictElement]:
    if isinstance(node, cst.Call):
        return list(node.args)
    assert isinstance(node, (cst.List, cst.Tuple, cst.Dict))
    return list(node.elements)


def parsed(text: str) -> tuple[KernelSource, cst.BaseExpression]:
    source = KernelSource(text, "")
    line = source.module.body[0]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    return source, line.body[0].value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_append_then_drop_gives_back_every_byte(form: str, mark: str) -> None:
    source, node = parsed(f"{mark}x = {form}  # é\n")
    item = '"k": 2' if isinstance(node, cst.Dict) else "k=2" if isinstance(node, cst.Call) else "k"
    text = spliced(source.text, [Places(source).append(items_of(node), node, item)])
    after, node = parsed(text)
    codes = [cst.Module([]).code_for_node(one) for one in items_of(node)]
    which = next(k for k, code in enumerate(codes) if "k" in code)
    assert len(codes) == len(items_of(parsed(source.text)[1])) + 1
    assert spliced(text, [Places(after).drop(items_of(node), which)]) == source.text


def test_new_item_stays_in_front_of_a_comment_on_the_last() -> None:
    source, node = parsed("x = [\n    1,\n    2,  # two\n]\n")
    text = spliced(source.text, [Places(source).append(items_of(node), node, "3")])
    assert text == "x = [\n    1,\n    3,\n    2,  # two\n]\n"


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_dropping_any_items_leaves_the_others(case: tuple[int, set[int]]) -> None:
    count, which = case
    source, node = parsed(f"x = {list(range(count))}\n")
    text = spliced(source.text, Places(source).drop_all(items_of(node), sorted(which)))
    assert text == f"x = {[k for k in range(count) if k not in which]}\n"


def test_offsets_count_bytes_behind_the_mark() -> None:
    assert spliced("\ufeffé = 1\r\n", [Splice(5, 6, "22")]) == "\ufeffé = 22\r\n"
