"""What people read of an edit: its title tells it apart from every other one."""

from __future__ import annotations

from collections import defaultdict

import pytest

from opratchet.edit.model import NotApplicable
from opratchet.edit.registry import STRATEGIES
from tests.edit.knobbed import situation
from tests.edit.sources import EXAMPLES, example

NAMES = sorted(path.stem for path in EXAMPLES.glob("*/*/*.py") if path.stem == path.parent.name)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_edits_of_a_source_share_a_title_or_an_id(name: str) -> None:
    by_title: dict[str, list[str]] = defaultdict(list)
    here = situation(example(name))
    for strategy in STRATEGIES.values():
        found = strategy.edits(here)
        if not isinstance(found, NotApplicable):
            for edit in found:
                by_title[edit.title].append(edit.id)
    assert len(by_title) > 20
    assert {title: ids for title, ids in by_title.items() if len(ids) > 1} == {}
    ids = [one for ids in by_title.values() for one in ids]
    assert len(ids) == len(set(ids))
