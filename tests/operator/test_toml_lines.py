"""The line of each key, checked against documents whose lines are known because the test writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.operator.toml_lines import key_lines, line_of, parse_toml

DOCUMENT = '''\
title = "a = 1"          # top = "no key"
"quoted.key" = 'x'
a.b . "c d" = 1

[table]                   # 5
text = """
fake = 1
[not.a.table]
\\""" still inside"""
after = [                 # 10
  1, # one
  { deep = [ {x = 1},
     {y = 2} ] },
]
[[list]]                  # 15
id = 1
[list.sub]
k = 1
[[list]]
inline = { p = { q = "}" }, r = ']' }   # 20
[[list.inner]]
z = 1979-05-27 07:32:00
literal = \'\'\'
= [ \' \'\'\'
last = 1                  # 25
'''

PLACES = {
    ("title",): 1,
    ("quoted.key",): 2,
    ("a", "b", "c d"): 3,
    ("table",): 5,
    ("table", "text"): 6,
    ("table", "after"): 10,
    ("table", "after", 0): 11,
    ("table", "after", 1, "deep"): 12,
    ("table", "after", 1, "deep", 1, "y"): 13,
    ("list", 0): 15,
    ("list", 0, "id"): 16,
    ("list", 0, "sub", "k"): 18,
    ("list", 1): 19,
    ("list", 1, "inline", "p", "q"): 20,
    ("list", 1, "inline", "r"): 20,
    ("list", 1, "inner", 0, "z"): 22,
    ("list", 1, "inner", 0, "literal"): 23,
    ("list", 1, "inner", 0, "last"): 25,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_each_key_has_its_line(newline: str) -> None:
    text = DOCUMENT.replace("\n", newline)
    parse_toml(text)
    lines = key_lines(text)
    assert {path: lines[path] for path in PLACES} == PLACES


def test_nothing_inside_a_string_is_taken_for_a_key() -> None:
    names = {part for path in key_lines(DOCUMENT) for part in path}
    assert not names & {"fake", "not", "top"}


def test_what_is_absent_is_placed_at_the_nearest_table() -> None:
    lines = key_lines(DOCUMENT)
    assert line_of(lines, ("list", 0, "sub", "absent")) == 17
    assert line_of(lines, ("absent", "altogether")) == 1


KEYS = st.text(alphabet="ab1-_", min_size=1, max_size=3) | st.text(max_size=3)
SCALARS = st.sampled_from(
    ["1", "-2.5", "true", "nan", '"a # \\" ] }"', "'[x]'", '"""\n\n"]"""', "1979-05-27", "'''\n'''"]
)


def _quoted(key: str) -> str:
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in key) + '"'


@given(
    tables=st.lists(
        st.tuples(
            KEYS, st.lists(st.tuples(KEYS, SCALARS), max_size=4, unique_by=lambda pair: pair[0])
        )
    )
)
def test_arrays_of_tables_keep_their_count(tables: list[tuple[str, list[tuple[str, str]]]]) -> None:
    """Write `[[key]]` tables line by line, noting the line of each, and compare."""
    text, expected, count = "", {}, dict.fromkeys((name for name, _ in tables), 0)
    for name, pairs in tables:
        place = (name, count[name])
        count[name] += 1
        expected[place] = text.count("\n") + 1
        text += f"[[ {_quoted(name)} ]] # [x]\n"
        for key, scalar in pairs:
            expected[(*place, key)] = text.count("\n") + 1
            text += f"{_quoted(key)} = {scalar}\n"
    parse_toml(text)
    lines = key_lines(text)
    assert {path: lines.get(path) for path in expected} == expected
