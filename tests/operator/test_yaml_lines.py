"""Values and lines of YAML, checked against texts whose lines the test writes itself."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.operator.yaml_lines import read_yaml
from tests.operator.folder import refused


def values(text: str) -> Any:
    return read_yaml(text, "SPEC.md")[0]


SCALARS = {
    "1": 1,
    "-12": -12,
    "4_096": 4096,
    "1e-3": 1e-3,
    "1.0e-6": 1e-6,
    "1E3": 1000.0,
    ".5": 0.5,
    "2.": 2.0,
    "true": True,
    "no": False,
    "~": None,
    "": None,
    '"1e-3"': "1e-3",
    "'7'": "7",
    "010": "010",
    "2026-11-30": "2026-11-30",
    "1:30": "1:30",
    "1/sqrt(K)": "1/sqrt(K)",
    "首跑成功性能的 2 倍": "首跑成功性能的 2 倍",
}


@pytest.mark.parametrize("text", SCALARS)
def test_a_scalar_is_what_a_person_means_by_it(text: str) -> None:
    read = values(f"key: {text}")["key"]
    assert read == SCALARS[text]
    assert type(read) is type(SCALARS[text])


def test_what_is_not_finite_is_read_as_such() -> None:
    assert values("[.inf, -.inf]") == [math.inf, -math.inf]
    assert math.isnan(values("[.nan]")[0])


def test_every_key_and_element_has_its_line() -> None:
    text = "a: 1\n# remark\nb:\n  - [1, 2]\n  - {c: 3,\n     d: 4}\n"
    data, lines = read_yaml(text, "SPEC.md", first_line=10)
    assert data == {"a": 1, "b": [[1, 2], {"c": 3, "d": 4}]}
    assert lines == {
        ("a",): 10,
        ("b",): 12,
        ("b", 0): 13,
        ("b", 0, 0): 13,
        ("b", 0, 1): 13,
        ("b", 1): 14,
        ("b", 1, "c"): 14,
        ("b", 1, "d"): 15,
    }


REFUSED = {
    "a: 1\nb: [1": ("SPEC.md:2", "not valid YAML"),
    "a: 1\n\tb: 2": ("SPEC.md:2", "not valid YAML"),
    "a: \x07": ("SPEC.md:1", "not valid YAML"),
    "a: 1\na: 2": ("SPEC.md:2", "`a` is given twice"),
    "a: &x [1]\nb: *x": ("SPEC.md:1", "alias"),
    "a: &x [*x]": ("SPEC.md:1", "alias"),
    "? [1, 2]\n: 3": ("SPEC.md:1", "a key is not a word"),
    "a:\n  b: 9223372036854775808": ("SPEC.md:2", "64 bits"),
    "a: 1" + "0" * 5000: ("SPEC.md:1", "64 bits"),
    "[" * 5000: ("SPEC.md:1", "nested too deep"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_read_is_told_with_its_line(text: str) -> None:
    place, what = REFUSED[text]
    message = refused(lambda: values(text))
    assert message.startswith(f"{place}: ")
    assert what in message


def test_aliases_cannot_unfold_into_gigabytes() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "alias" in refused(lambda: values("\n".join(["a0: &a0 [1]", *levels])))


PIECES = ["a", ":", " ", "\n", "- ", "[", "]", "{", "}", ",", "1", "e", "&x", "*x", "!!int", "|", "'", '"', "#", "?", "-", "<<", "\t", "%"]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text())
def test_any_text_is_read_or_told(text: str) -> None:
    try:
        read_yaml(text, "SPEC.md")
    except BadInput as error:
        assert error.where.startswith("SPEC.md:")
        assert error.fix


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text("abx :#-'\"\\", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab c", max_size=3), inner),
    max_leaves=8,
)


@given(data=PLAIN)
def test_what_json_writes_is_read_back(data: Any) -> None:
    """JSON is a part of YAML, and its writer is not ours."""
    import json

    assert values(json.dumps(data)) == data
