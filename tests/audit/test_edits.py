"""One edit a version: found out again from the sources, whatever the ledger says of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from opratchet.audit.examine import examine
from opratchet.ledger.store import LEDGER
from tests.audit.recorded import Events, first, forge


def replace_version(run: Path, number: int, change: Callable[[str], str]) -> None:
    """Another source for the version of a round, everywhere in the folder."""
    version = run / f"rmsnorm_opt_v{number}.py"
    old = version.read_text()
    new = change(old)
    assert new != old
    before, after = (hashlib.sha256(text.encode()).hexdigest() for text in (old, new))
    (run / "objects" / f"{before}.py").unlink()
    (run / "objects" / f"{after}.py").write_text(new)
    for path in run.glob("*.py"):
        if path.name != "baseline.py" and path.read_text() == old:
            path.write_text(new)

    def everywhere(events: Events) -> None:
        events[:] = json.loads(json.dumps(events).replace(before, after))

    forge(run, everywhere)


@pytest.mark.parametrize(
    ("number", "old", "new", "expected"),
    [
        (1, "X * torch.rsqrt(", "X * 2 * torch.rsqrt(", "golden"),
        (1, "run_case(33, 1000)", "run_case(1, 1)", "outside the kernel"),
        (1, "import torch", "import torch\nimport os", "outside the kernel"),
        (1, '"-O3", ', "", "gives another source"),
        (3, "T.sqrt(", "T.rsqrt(", "gives another source"),
        (3, "def rmsnorm(", "def rmsnorm_(", "cannot be read"),
    ],
)
def test_a_version_that_is_more_than_its_edit_is_named(
    run: Path, number: int, old: str, new: str, expected: str
) -> None:
    replace_version(run, number, lambda text: text.replace(old, new, 1))
    found = [f for f in examine(run).findings if f.check == "edits"]
    assert f"rmsnorm_opt_v{number}.py" in {f.file for f in found}
    assert any(expected in f.what for f in found), [f.what for f in found]


def test_comments_and_blank_space_are_no_change(run: Path) -> None:
    replace_version(
        run, 3, lambda text: text.replace("T.copy(W", "# a remark\n            T.copy(W")
    )
    assert not [f for f in examine(run).findings if f.check == "edits"]


def test_an_edit_under_another_name_is_named(run: Path) -> None:
    def rename(events: Events) -> None:
        last = first(events, "trial_started", 6)
        last["edit"], last["strategy"] = "lanes/nothing:4", "lanes"
        first(events, "round_started", 2)["planned"] = ["lanes/nothing:4"]

    forge(run, rename)
    [found] = [f for f in examine(run).findings if f.check == "edits"]
    assert "does not offer" in found.what
    assert found.key == "lanes/nothing:4"


def test_no_rewrite_of_that_name(run: Path) -> None:
    def rename(events: Events) -> None:
        last = first(events, "trial_started", 6)
        last["edit"], last["strategy"] = "magic/x", "magic"
        first(events, "round_started", 2)["planned"] = ["magic/x"]

    forge(run, rename)
    [found] = [f for f in examine(run).findings if f.check == "edits"]
    assert "no rewrite is called magic" in found.what
    assert LEDGER not in found.file


def test_an_edit_of_another_version_of_the_tool_is_a_remark(run: Path) -> None:
    def rename(events: Events) -> None:
        first(events, "run_started")["tool_version"] = "0.0.1"
        last = first(events, "trial_started", 6)
        last["edit"], last["strategy"] = "lanes/nothing:4", "lanes"
        first(events, "round_started", 2)["planned"] = ["lanes/nothing:4"]

    forge(run, rename)
    audit = examine(run)
    assert audit.is_clean
    [remark] = [r for r in audit.remarks if r.check == "edits"]
    assert "0.0.1" in remark.what
