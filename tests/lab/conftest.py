"""Labs for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opratchet.lab.bench import Lab
from opratchet.lab.sandbox import Mode
from tests.lab.boxes import boxed, opened


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with the sandbox."""
    with opened(tmp_path_factory.mktemp("boxed"), Mode.REQUIRE) as lab:
        yield lab


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab without."""
    with opened(tmp_path_factory.mktemp("off"), Mode.OFF) as lab:
        yield lab


@pytest.fixture(params=[pytest.param("lab", marks=boxed), "bare"], ids=["boxed", "off"])
def either(request: pytest.FixtureRequest) -> Lab:
    """Both, one after the other."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Lab)
    return found
