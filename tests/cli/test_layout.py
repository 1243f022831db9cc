"""`layout`: the check of a PyPTO operator folder, as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opratchet.judge.layout import RULES
from tests.cli.conftest import ROOT, Command
from tests.judge.layout.folder import IMPL, line_of, swap, write


def broken(folder: Path) -> Path:
    """An operator with one tile that is no number and one unrolled loop."""
    text = swap(IMPL, "(4, 1024)", "(ROWS, 1024)")
    return write(folder, softmax_impl=swap(text, "[1]", "[4, 1]"))


def test_a_clean_folder_ends_with_0(tmp_path: Path, within: Command) -> None:
    done = within("layout", write(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"layout    clean, {len(RULES)} rules\n"


def test_findings_are_listed_and_end_with_1(tmp_path: Path, within: Command) -> None:
    done = within("layout", broken(tmp_path))
    tile, unroll, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert tile.startswith(
        f"softmax_impl.py:{line_of(IMPL, 'set_vec_tile')}  literal-tiles  `ROWS` "
    )
    assert unroll.startswith(f"softmax_impl.py:{line_of(IMPL, 'unroll_list')}  unroll-single  ")
    assert last == "layout    2 findings"


def test_tuned_allows_several_factors(tmp_path: Path, within: Command) -> None:
    done = within("layout", broken(tmp_path), "--tuned")
    assert "unroll-single" not in done.stdout and done.stdout.endswith("layout    1 finding\n")


def test_json_holds_the_same(tmp_path: Path, within: Command) -> None:
    done = within("layout", broken(tmp_path), "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["clean"]) == (1, False)
    assert [(f["file"], f["rule"]) for f in data["findings"]] == [
        ("softmax_impl.py", "literal-tiles"),
        ("softmax_impl.py", "unroll-single"),
    ]
    assert set(data["findings"][0]) == {"file", "line", "rule", "message"}


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_that_is_none_ends_with_2(tmp_path: Path, within: Command, name: str) -> None:
    (tmp_path / "empty").mkdir()
    done = within("layout", tmp_path / name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and str(tmp_path / name) in done.stderr


def test_a_name_with_control_characters_is_printed_harmless(
    tmp_path: Path, within: Command
) -> None:
    root = tmp_path / "soft\x1b[31m\udcb2max"
    write(tmp_path).rename(root)
    done = within("layout", root)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout and "soft\\x1b[31m\\udcb2max_impl.py:1" in done.stdout
    assert within("layout", root, "--json").returncode == 1


def test_the_documentation_has_the_table_of_rules() -> None:
    text = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([-\w]+)` \| (.+) \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(rule.id, rule.title, rule.why) for rule in RULES.values()]
