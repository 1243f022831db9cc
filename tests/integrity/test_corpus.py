"""The corpus itself: every file is complete, every family has its honest twin."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from opratchet.errors import BadInput, OpratchetError
from opratchet.integrity.entries import FOLDER, chosen, in_place_of, read_corpus, read_entry

ENTRIES = read_corpus()
GOOD = '''"""Does nothing.

Caught: by everybody.
"""

FAMILY = "idle"
ENDS = ("cheated",)


def softmax(M, N):
    return None
'''


def test_it_is_as_large_as_it_has_to_be() -> None:
    exploits = [entry for entry in ENTRIES if not entry.is_twin]
    assert sum(entry.backend == "python" for entry in exploits) >= 45
    assert sum(entry.backend == "tilelang-c" for entry in exploits) >= 6
    assert len(ENTRIES) == len(list(FOLDER.glob("*.py")))


@pytest.mark.parametrize("family", sorted({entry.family for entry in ENTRIES}))
def test_each_family_has_exploits_and_an_honest_twin(family: str) -> None:
    own = [entry for entry in ENTRIES if entry.family == family]
    assert any(entry.is_twin for entry in own)
    assert any(not entry.is_twin for entry in own)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_file_says_what_it_does_and_what_stops_it(entry) -> None:  # type: ignore[no-untyped-def]
    assert entry.story.endswith(".")
    assert entry.is_twin == entry.name.removeprefix("tilelang_").startswith("honest_")
    assert entry.is_twin or entry.caught.endswith(".")
    assert entry.needs in ("", "sandbox")


@pytest.mark.parametrize(
    "cut", ['FAMILY = "idle"', "Does nothing.", "Caught: by everybody.", 'ENDS = ("cheated",)']
)
def test_a_file_that_lacks_something_is_an_error(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "idle.py"
    path.write_text(GOOD)
    assert read_entry(path).family == "idle"
    path.write_text(GOOD.replace(cut, ""))
    with pytest.raises(OpratchetError, match="needs a docstring"):
        read_entry(path)


def test_a_factory_takes_the_place_of_the_hosts_own_and_nothing_else_changes() -> None:
    host = "import x\n\n\n@d\ndef softmax(M):\n    return 1\n\n\nTAIL = 1\n"
    made = in_place_of(host, "softmax", "@e(\n    1\n)\ndef softmax(N):\n    return 2\n")
    assert made == "import x\n\n\n@e(\n    1\n)\ndef softmax(N):\n    return 2\n\n\nTAIL = 1\n"
    for entry in ENTRIES:
        ast.parse(in_place_of(host, "softmax", entry.factory))


def test_only_takes_names_and_families() -> None:
    assert [e.name for e in chosen(ENTRIES, ["memo_by_shape"])] == ["memo_by_shape"]
    assert len(chosen(ENTRIES, ["memoising"])) > 3
    assert chosen(ENTRIES, []) == ENTRIES
    with pytest.raises(BadInput, match="memo_by_shap"):
        chosen(ENTRIES, ["memo_by_shap"])
