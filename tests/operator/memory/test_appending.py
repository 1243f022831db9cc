"""Adding to a MEMORY.md: what is there stays, byte by byte, and what is added can be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.operator.memory import append_rows, append_section, read_memory

HEADER = ("When", "all_close")
TEXT = "# Plan\n\n## Log\n\ntext\n\n## After\n\nend\n"


def test_a_section_comes_at_the_end() -> None:
    assert append_section("", "New", "body") == "## New\n\nbody\n"
    assert append_section("a\n", "New", "body\n") == "a\n\n## New\n\nbody\n"
    assert append_section("a\n\n", "New", "one\ntwo") == "a\n\n## New\n\none\ntwo\n"


def test_line_ends_a_byte_order_mark_and_a_missing_last_line_end_are_kept() -> None:
    assert append_section("a\r\n", "New", "one\ntwo") == "a\r\n\r\n## New\r\n\r\none\r\ntwo\r\n"
    assert append_section("a\rb\r", "New", "x") == "a\rb\r\r## New\r\rx\r"
    assert append_section("\ufeff", "New", "x") == "\ufeff## New\n\nx\n"
    assert append_section("\ufeffa", "New", "x") == "\ufeffa\n\n## New\n\nx"
    assert append_section("a\r\nb", "New", "x") == "a\r\nb\r\n\r\n## New\r\n\r\nx"


def test_what_is_left_open_is_closed_first() -> None:
    assert append_section("```\na\n", "New", "x") == "```\na\n```\n\n## New\n\nx\n"
    assert append_section("<!-- a", "New", "x") == "<!-- a\n-->\n\n## New\n\nx"


def test_rows_begin_a_table_in_a_new_section() -> None:
    assert append_rows("a\n", "Log", HEADER, [("1", "true")]) == (
        "a\n\n## Log\n\n| When | all_close |\n| --- | --- |\n| 1 | true |\n"
    )


def test_rows_begin_a_table_in_a_section_that_has_none() -> None:
    added = "\n| When | all_close |\n| --- | --- |\n| 1 | true |\n"
    assert append_rows(TEXT, "Log", HEADER, [("1", "true")]) == TEXT.replace(
        "text\n", "text\n" + added
    )
    assert append_rows(TEXT, "After", HEADER, [("1", "true")]) == TEXT + added
    close = TEXT.replace("text\n\n", "text\n")
    assert append_rows(close, "Log", HEADER, [("1", "true")]) == close.replace(
        "text\n", "text\n" + added + "\n"
    )


def test_rows_come_at_the_end_of_the_table_that_is_there() -> None:
    text = "## Log\r\n|When|all_close|\r\n|--|--|\r\n|1|true|\r\nafter\r\n## b\r\n"
    assert append_rows(text, "Log", HEADER, [("2", "a|b"), ("3", "one\r\ntwo")]) == text.replace(
        "|1|true|\r\n", "|1|true|\r\n| 2 | a\\|b |\r\n| 3 | one two |\r\n"
    )
    no_end = "## Log\n|When|all_close|\n|--|--|"
    assert append_rows(no_end, "Log", HEADER, [("1", "no")]) == no_end + "\n| 1 | no |"


def test_a_table_with_other_columns_is_left_alone() -> None:
    text = "## Log\n\n| When |\n|---|\n| 1 |\n"
    grown = append_rows(text, "Log", HEADER, [("1", "true")])
    assert grown == text + "\n| When | all_close |\n| --- | --- |\n| 1 | true |\n"


def test_no_rows_change_nothing_in_a_table_that_is_there() -> None:
    text = "## Log\n\n| When | all_close |\n|---|---|\n"
    assert append_rows(text, "Log", HEADER, []) == text


def test_a_row_has_as_many_cells_as_the_header() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        append_rows("", "Log", HEADER, [("1",)])


PIECES = ["## Log", "## Log\n", "\n", "\r\n", "\r", "| When | all_close |\n", "|---|---|\n", "| 1 | true |", "```", "~~~", "<!--", "-->", "text", " ", "\ufeff", "# b\n"]  # fmt: skip
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
CELLS = st.text(max_size=6) | st.sampled_from(["|", "\\", "\\|", "a|b", "-", "# a", "```", "<!--"])


def is_within(part: list[str], whole: list[str]) -> bool:
    """Whether all of one list are in the other, in their order."""
    rest = iter(whole)
    return all(any(line == other for other in rest) for line in part)


def lines(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, body=st.text(alphabet="ab \n", max_size=12))
def test_a_section_leaves_the_text_as_it_is_and_can_be_read(text: str, body: str) -> None:
    grown = append_section(text, "Log", f"note: x\n{body}")
    assert grown.startswith(text)
    last = read_memory(grown).sections[-1]
    assert (last.title, last.level) == ("Log", 2)
    assert last.pairs[0].value == "x"
    if text.removeprefix("\ufeff"):
        assert grown.endswith(("\n", "\r")) == text.endswith(("\n", "\r"))


@settings(max_examples=500, deadline=None)
@given(text=TEXTS, rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=3))
def test_rows_leave_every_line_in_its_place_and_can_be_read(
    text: str, rows: list[tuple[str, str]]
) -> None:
    """Two calls, as a table grows from run to run."""
    grown = text
    for row in rows:
        before, grown = grown, append_rows(grown, "Log", HEADER, [row])
        # a last "\r" and a line feed that is added are one line end, with no byte of the text changed
        assert is_within(lines(before), lines(grown)) or before.endswith("\r")
        assert is_within(list(before), list(grown))
    section = read_memory(grown).section("Log")
    assert section is not None
    table = next(table for table in reversed(section.tables) if table.header == HEADER)
    assert [row.cells for row in table.rows[-len(rows) :]] == [
        tuple(re.sub("(?:\r\n|\r|\n)+", " ", cell).strip() for cell in row) for row in rows
    ]
