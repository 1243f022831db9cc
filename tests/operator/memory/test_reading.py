"""A MEMORY.md taken apart: sections, pairs and tables, with their lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.operator.memory import read_memory
from opratchet.operator.memory.reading import cells_of

DOCUMENT = """\
before: the first heading
# Plan: `softmax`

- **Runner:** `test_softmax.py`
- **数据类型**：float16
* plain: `a | b`

## Agent status

```yaml
phase: 6          # of 6
modules:
  - id: M1
    ok: "true"
# not: this
```

```python
no: pair
```

> quoted: line
- [ ] open: box
- [x] ticked: box
1. [ ] open: too
layout check | exit 0

| When | `all_close` | Note |
|------|:-----------:|------|
| 1    | ✅          | a \\| b |
| 2    |
| 3 | ❌ | x | too many |
after: the table
| no | table |
### Empty ###
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_what_is_in_it(start: str, end: str) -> None:
    memory = read_memory(start + DOCUMENT.replace("\n", end))
    assert [(s.title, s.level, s.line, s.end) for s in memory.sections] == [
        ("", 0, 1, 1),
        ("Plan: `softmax`", 1, 2, 7),
        ("Agent status", 2, 8, 34),
        ("Empty", 3, 35, 35),
    ]
    assert [(pair.line, pair.key, pair.value) for pair in memory.pairs] == [
        (1, "before", "the first heading"),
        (4, "Runner", "test_softmax.py"),
        (5, "数据类型", "float16"),
        (6, "plain", "a | b"),
        (11, "phase", "6"),
        (12, "modules", ""),
        (13, "id", "M1"),
        (14, "ok", "true"),
        (24, "ticked", "box"),
        (26, "layout check", "exit 0"),
        (33, "after", "the table"),
        (34, "no", "table"),
    ]
    [table] = memory.tables
    assert (table.line, table.end, table.header) == (28, 32, ("When", "`all_close`", "Note"))
    assert [(row.line, row.cells) for row in table.rows] == [
        (30, ("1", "✅", "a | b")),
        (31, ("2", "", "")),
        (32, ("3", "❌", "x")),
    ]


def test_pairs_below_each_other_are_one_group() -> None:
    memory = read_memory("a: 1\nb: 2\n\nc: 3\ntext\nd: 4\ne: 5\n# f\ng: 6\n")
    groups = {pair.key: pair.group for pair in memory.pairs}
    assert groups["a"] == groups["b"]
    assert groups["d"] == groups["e"]
    assert len({groups["a"], groups["c"], groups["d"]}) == 3


def test_the_last_section_of_a_title_is_the_one() -> None:
    memory = read_memory("# a\n# b\n## a\n")
    section = memory.section("a")
    assert section is not None
    assert section.line == 3
    assert memory.section("c") is None
    assert memory.section("") is None


def test_a_table_needs_a_line_of_marks_as_wide_as_its_header() -> None:
    for text in ("| a | b |\n| 1 | 2 |", "| a | b |\n|---|", "| a |\n\n|---|", "a\n---"):
        assert list(read_memory(text).tables) == []
    assert [table.header for table in read_memory("a | b\n--|--").tables] == [("a", "b")]


def test_cells() -> None:
    assert cells_of("| a | | b \\| c |") == ("a", "", "b | c")
    assert cells_of("a | b") == ("a", "b")
    assert cells_of("||") == ("",)


PIECES = ["# a", "\n", "| a | b |", "|---|---|", "```", "yaml", "<!--", "-->", "key: value", "：", "\r", " ", "- [x] ", "|", "\\", "\ufeff", "all_close", "layout"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(text=st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read_and_every_line_number_is_true(text: str) -> None:
    memory = read_memory(text)
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert memory.sections[0].line == 1
    for before, after in zip(memory.sections, memory.sections[1:], strict=False):
        assert before.end + 1 == after.line
        assert after.title in lines[after.line - 1] or "<!--" in lines[after.line - 1]
    for table in memory.tables:
        header = lines[table.line - 1].replace("\\|", "|")
        assert all(cell in header for cell in table.header) or "<!--" in header
        assert [row.line for row in table.rows] == list(range(table.line + 2, table.end + 1))
        assert all(len(row.cells) == len(table.header) for row in table.rows)
    for pair in memory.pairs:
        assert pair.text in lines[pair.line - 1] or "<!--" in lines[pair.line - 1]
