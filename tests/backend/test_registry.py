"""Backends by name, those that ship and those that somebody else has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.backend.registry import BACKENDS, get_backend
from opratchet.cli.operators import load
from opratchet.errors import BadInput
from opratchet.operator.discover import Overrides
from tests.cli.toy import NAME, write_toy


@pytest.mark.parametrize("name", BACKENDS)
def test_each_is_what_it_is_called(name: str) -> None:
    assert get_backend(name).name == name


def test_one_that_is_not_registered_is_named_by_its_place(tmp_path: Path) -> None:
    assert get_backend(NAME).name == NAME
    operator = load(write_toy(tmp_path), Overrides(backend=NAME))
    assert operator.backend == NAME
    assert operator.provenance["backend"] == "command line"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "unknown backend `nothing`"),
        ("no.such.module:Class", "No module named 'no'"),
        ("tests.cli.toy:Missing", "has no attribute 'Missing'"),
        ("pathlib:PurePath", "is no backend"),
        (":", "cannot be loaded"),
        ("a:b:c", "cannot be loaded"),
    ],
)
def test_what_is_no_backend_is_told_in_one_line(name: str, why: str) -> None:
    with pytest.raises(BadInput) as told:
        get_backend(name)
    assert why in str(told.value)
    assert "package.module:Class" in told.value.fix or "Known backends" in told.value.fix
