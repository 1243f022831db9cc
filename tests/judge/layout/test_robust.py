"""Folders and texts of any kind: damaged, foreign, hostile. There are findings or a clear error, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.judge.layout import LayoutFiles, check_layout, check_text
from opratchet.judge.layout.code import MAX_DEPTH
from opratchet.judge.layout.tiles import ELEMENT_BYTES
from tests.judge.layout.folder import GOLDEN, IMPL, SPEC, TEST, files, line_of, swap, write

ANY = st.text() | st.text(st.characters())
PIECES = st.sampled_from(
    [
        *IMPL.splitlines(True),
        *GOLDEN.splitlines(True),
        *TEST.splitlines(True),
        "    ",
        "\f",
        "\r",
        "é\n",
    ]
)
MIXED = st.lists(PIECES | st.text(max_size=3), max_size=40).map("".join)


@given(impl=ANY | MIXED, golden=ANY | MIXED, test=ANY | MIXED, spec=ANY, tuned=st.booleans())
@settings(max_examples=300, deadline=None)
def test_no_text_raises(impl: str, golden: str, test: str, spec: str, tuned: bool) -> None:
    found = check_text(LayoutFiles("softmax", impl, golden, test, spec), tuned=tuned)
    assert found == sorted(
        found, key=lambda finding: (finding.file, finding.line, finding.rule, finding.message)
    )
    assert all(finding.line >= 1 for finding in found)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_no_cut_of_an_operator_raises(data: st.DataObject) -> None:
    lines = IMPL.splitlines(True)
    order = data.draw(st.lists(st.sampled_from(lines), max_size=30))
    start = data.draw(st.integers(0, len(lines)))
    check_text(files(impl="".join([*lines[:start], *order])))


@given(raw=st.binary())
@settings(max_examples=50, deadline=None)
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    root = write(tmp_path_factory.mktemp("op"))
    for file in root.iterdir():
        file.write_bytes(raw)
    assert check_layout(root) or not raw.strip()


@pytest.mark.parametrize(
    "text",
    [
        "x = a" + ".b" * 5000,
        "x = " + "-" * 5000 + "1",
        "x = " + " + ".join(["a"] * 5000),
        "if a: pass\n" + "elif b: pass\n" * 5000,
        "x = " + "(" * 5000,
    ],
    ids=["attributes", "signs", "sums", "elifs", "parentheses"],
)
def test_code_that_is_nested_too_deep_is_a_finding(text: str) -> None:
    found = check_text(files(impl=text))
    assert [(f.file, f.rule) for f in found] == [("softmax_impl.py", "syntax")]


def test_what_is_not_too_deep_is_read() -> None:
    deep = " + ".join(["a"] * (MAX_DEPTH - 20))
    assert check_text(files(impl=f"{IMPL}\nx = {deep}\n")) == []


def test_numbers_too_long_to_print_are_judged() -> None:
    long = "0x" + "f" * 10000
    for tile in (f"vec_tile_shapes(4, {long})", f"cube_tile_shapes([{long}, 1], [1, 1], [1, 1])"):
        found = check_text(files(impl=IMPL.replace("vec_tile_shapes(4, 1024)", tile)))
        assert len(found) == 1 and len(found[0].message) < 200


def test_many_functions_that_call_each_other_are_followed_in_time() -> None:
    chain = "".join(f"def f{i}():\n    f{i + 1}()\n    f{i + 1}()\n" for i in range(600))
    found = check_text(files(impl=f"{IMPL}\n{chain}def f600():\n    softmax_wrapper(1)\n"))
    assert found == []


def test_a_file_that_is_not_utf8_is_a_finding_with_its_line(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "softmax_impl.py").write_bytes(IMPL.encode() + b"# \xb2\xe2\n")
    (root / "SPEC.md").write_bytes(b"\xff")
    found = [(f.file, f.line, f.rule) for f in check_layout(root)]
    assert found == [
        ("SPEC.md", 1, "syntax"),
        ("softmax_impl.py", IMPL.count("\n") + 1, "syntax"),
    ]


def test_line_ends_and_marks_of_other_systems_change_nothing(tmp_path: Path) -> None:
    root = write(tmp_path)
    text = swap(IMPL, "(4, 1024)", "(4, ROWS)")
    (root / "softmax_impl.py").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    found = check_layout(root)
    assert [(f.line, f.rule) for f in found] == [(line_of(text, "ROWS)"), "literal-tiles")]


def test_what_is_no_file_counts_as_missing(tmp_path: Path) -> None:
    root = write(tmp_path)
    for name in ("softmax_impl.py", "SPEC.md"):
        (root / name).unlink()
    (root / "softmax_impl.py").mkdir()
    os.mkfifo(root / "SPEC.md")
    found = [(f.file, f.rule) for f in check_layout(root)]
    assert found == [("SPEC.md", "missing-file"), ("softmax_impl.py", "missing-file")]


def test_nothing_of_the_folder_is_run(tmp_path: Path) -> None:
    root = write(tmp_path)
    for name in ("softmax_impl.py", "softmax_golden.py", "test_softmax.py"):
        file = root / name
        file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + file.read_text())
    check_layout(root)
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path / "missing", file, loop, tmp_path):
        with pytest.raises(BadInput) as refused:
            check_layout(path)
        assert str(path) in str(refused.value) and refused.value.fix


def test_the_folder_gives_the_name_of_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path)
    monkeypatch.chdir(root)
    assert check_layout(Path()) == []
    link = tmp_path / "link"
    link.symlink_to(root)
    assert check_layout(link) == []


def test_sizes_of_elements_are_those_of_pypto() -> None:
    pypto = pytest.importorskip("pypto")
    known = {name for name in dir(pypto.DataType) if name.startswith("DT_")} - {"DT_BOTTOM"}
    assert {name: pypto.bytes_of(getattr(pypto, name)) for name in known} == ELEMENT_BYTES


def test_files_carry_their_names() -> None:
    op = LayoutFiles("softmax", IMPL, GOLDEN, TEST, SPEC)
    assert (op.impl_name, op.golden_name, op.test_name) == (
        "softmax_impl.py",
        "softmax_golden.py",
        "test_softmax.py",
    )
