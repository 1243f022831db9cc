"""Reading a time from what a command printed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.lab.printed import by_json_key, by_regex, objects

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NOISE = st.text(st.characters(codec="utf-8", exclude_characters="{"), max_size=40)
JSON = st.dictionaries(
    NAMES,
    st.recursive(
        st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"time: ([0-9.]+)", "warm\ntime: 3.25 ms\n", 3.25),
        (r"^t=(.*)$", "x t=1\nt=2e-3\nt=9", 0.002),
        (r"(\d+) runs, (?P<time>\d+) us", "10 runs, 42 us", 42.0),
        (r"t=(.*)", "t=nothing", "nothing"),
    ],
)
def test_a_regex_reads_the_group_that_is_meant(pattern: str, text: str, expected: object) -> None:
    assert by_regex(pattern)(text) == expected


@pytest.mark.parametrize("pattern", ["time: (", "time: .*", "(?:a)"])
def test_a_regex_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="`"):
        by_regex(pattern)


@pytest.mark.parametrize(("pattern", "text"), [("t=(.)", "nothing"), ("a|t=(.)", "a")])
def test_a_regex_without_a_match_says_so(pattern: str, text: str) -> None:
    with pytest.raises(LookupError, match="match"):
        by_regex(pattern)(text)


@given(NUMBERS, NOISE, NOISE)
def test_a_regex_gives_back_the_number_that_was_printed(
    number: float, before: str, after: str
) -> None:
    assert by_regex(r"\[\[<(.*?)>\]\]")(f"{before}[[<{number!r}>]]{after}") == number


@pytest.mark.parametrize(
    ("key", "expected"), [("us", 3), ("runs.1.us", 2.5), ("runs.0", {"us": 1}), ("名", 7)]
)
def test_a_key_goes_through_objects_and_arrays(key: str, expected: object) -> None:
    data = {"us": 3, "runs": [{"us": 1}, {"us": 2.5}], "名": 7}
    assert by_json_key(key)(f"log\n{json.dumps(data, indent=2)}\ndone") == expected


def test_the_last_object_counts() -> None:
    assert by_json_key("t")('{"t": 1}\n{broken {"t": 2} tail {') == 2


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("x", "there is no `x` in the last JSON object; there are us, runs"),
        ("runs.2", "no `2` under `runs`; it holds 1 values"),
        ("runs.-1", "no `-1`"),
        ("us.x", "no `x` under `us`; it is no object"),
    ],
)
def test_a_key_that_is_not_there_says_what_is(key: str, expected: str) -> None:
    with pytest.raises(LookupError) as caught:
        by_json_key(key)('{"us": 3, "runs": [1]}')
    assert expected in caught.value.args[0]


@pytest.mark.parametrize("text", ["", "no object", "[1, 2]", "{", '{"a": ', '{"a":' * 3000])
def test_no_object_is_said(text: str) -> None:
    with pytest.raises(LookupError, match="no JSON object"):
        by_json_key("a")(text)


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        by_json_key("")


@given(st.lists(st.tuples(NOISE, JSON), min_size=1, max_size=4), NOISE)
def test_every_object_is_found_whatever_stands_between(
    parts: list[tuple[str, dict[str, Any]]], end: str
) -> None:
    text = "".join(before + json.dumps(data) for before, data in parts) + end
    assert [*objects(text)] == [data for _before, data in parts]


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1),
        min_size=1,
        max_size=5,
    ),
    NUMBERS,
)
def test_what_lies_at_a_dotted_key_is_found(path: list[str], number: float) -> None:
    data: Any = number
    for part in reversed(path):
        data = {part: data}
    assert by_json_key(".".join(path))(json.dumps(data)) == number


@given(st.text(max_size=200))
def test_any_output_gives_a_value_or_a_lookup_error(text: str) -> None:
    for reader in (by_json_key("a.0"), by_regex("a(.*)")):
        try:
            reader(text)
        except LookupError as error:
            assert error.args[0]
