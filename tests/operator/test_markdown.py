"""Which lines of a document state something, and which only show something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.operator.markdown import closing, heading, lines_of, plain, statements

DOCUMENT = """\
one
<!-- a comment --> two <!-- another -->
<!-- begins
hidden
ends --> hidden too
```python
hidden
```
~~~yaml
stated: true
```
stated: too
~~~
`<!-- not a comment` three
````YAML
four
```
````
```inline code``` five
end"""


def test_comments_and_code_state_nothing_and_yaml_does() -> None:
    said = [
        (line.number, line.text.strip(), line.is_yaml) for line in statements(lines_of(DOCUMENT))
    ]
    assert said == [
        (1, "one", False),
        (2, "two", False),
        (10, "stated: true", True),
        (11, "```", True),
        (12, "stated: too", True),
        (14, "`<!-- not a comment` three", False),
        (16, "four", True),
        (17, "```", True),
        (19, "```inline code``` five", False),
        (20, "end", False),
    ]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("", ""),
        ("text", ""),
        ("```\na", "```"),
        ("```\na\n```", ""),
        ("~~~~ yaml\n~~~\n", "~~~~"),
        ("<!-- a", "-->"),
        ("<!-- a\n-->", ""),
        ("```\n<!--", "```"),
    ],
)
def test_what_a_text_leaves_open(text: str, mark: str) -> None:
    assert closing(text) == mark


@given(
    text=st.lists(st.sampled_from(["```", "~~~~", "<!--", "-->", "\n", " ", "a", "yaml"])).map(
        "".join
    )
)
def test_the_closing_line_closes_it(text: str) -> None:
    mark = closing(text)
    assert closing(f"{text}\n{mark}") == ""
    *_, last = statements(lines_of(f"{text}\n{mark}\nafter"))
    assert last.text == "after"


def test_headings() -> None:
    assert heading("## 3. Title ##") == (2, "3. Title")
    assert heading("   # C# ") == (1, "C#")
    for line in ("#tag", "####### seven", "    # code", "text # no"):
        assert heading(line) is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_have_one_number_whatever_their_end(end: str) -> None:
    assert lines_of("\ufeff" + end.join(["a", "", "b\x0cb\u2028b", ""])) == [
        "a",
        "",
        "b\x0cb\u2028b",
    ]


def test_plain_text() -> None:
    assert plain(" **ａｌｌ_close**：`✅\ufe0f` ") == "all_close:✅"
