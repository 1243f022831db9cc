"""JSON as a stream: the items are those that reading the whole file gives, wherever the buffer ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.profile.swimlane import json_stream
from opratchet.profile.swimlane.json_stream import json_items

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)
LAYOUTS = st.sampled_from([None, 4])


@given(items=st.lists(JSON, max_size=6), chunk=st.integers(1, 40), indent=LAYOUTS)
def test_items_of_an_array(
    items: list[Any], chunk: int, indent: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("json") / "array.json"
    path.write_text(json.dumps(items, indent=indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        assert list(json_items(path)) == items


@given(
    items=st.lists(JSON, max_size=4),
    others=st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    chunk=st.integers(1, 40),
)
def test_items_under_a_key(
    items: list[Any],
    others: dict[str, Any],
    chunk: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("json") / "object.json"
    whole = list({**others, "traceEvents": items}.items())
    path.write_text(json.dumps(dict(whole[::-1]), ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        assert list(json_items(path, "traceEvents")) == items


@example(text=" 00")
@given(text=st.text(alphabet='[]{}:,"\\ 01.eE-truefalsn\n', max_size=30))
def test_what_is_no_json_is_refused(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("json") / "any.json"
    path.write_text(text)
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(BadInput):
            list(json_items(path))
    else:
        assert list(json_items(path)) == (expected if isinstance(expected, list) else [])


@given(text=st.text(alphabet='{}[]:,"a \\1', max_size=20))
def test_what_is_no_json_object_is_refused(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("json") / "any.json"
    path.write_text("{" + text)
    try:
        json.loads("{" + text)
    except ValueError:
        with pytest.raises(BadInput):
            list(json_items(path, "a"))
    else:
        # a key that is there twice: both arrays are read, as in any stream
        list(json_items(path, "a"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("[1, 2", "`,` is missing"),
        ("[1,]", "an entry is missing"),
        ("[1] 2", "more follows after its end"),
        ("[NaN]", "NaN is no number"),
        ("[" * 100_000, "recursion"),
        ('[{"a":' * 100_000, "recursion"),
        ('["' + "x" * json_stream.LARGEST + "x" * json_stream.LARGEST, "within 32 MB"),
        ("[" + "9" * 5000 + "]", "digits"),
    ],
)
def test_why_it_is_refused(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        list(json_items(path))
    assert said in refused.value.what
    assert refused.value.where == str(path)
