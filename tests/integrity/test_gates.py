"""Every kernel of the corpus through the real gates: no exploit is adopted or does damage, no honest twin is refused.

`make test` tries the first exploit of each family; `make test-long` and `opratchet selftest integrity` try them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from _pytest.mark import ParameterSet

from opratchet.backend.registry import get_backend
from opratchet.integrity.driver import Bench, Fate
from opratchet.integrity.entries import Entry, read_corpus

ENTRIES = read_corpus()


def params(backend: str) -> Sequence[ParameterSet]:
    """The kernels for a backend; all but the first exploit of each family take long together."""
    entries = [entry for entry in ENTRIES if entry.backend == backend]
    exploits = [entry for entry in entries if not entry.is_twin]
    first = {entry.family: entry for entry in reversed(exploits)}
    return [
        pytest.param(
            entry, id=entry.name, marks=[] if entry is first.get(entry.family) else pytest.mark.long
        )
        for entry in entries
    ]


@pytest.fixture(scope="module")
def numpy_bench() -> Iterator[Bench]:
    with Bench("python") as bench:
        yield bench


@pytest.fixture(scope="module")
def tilelang_bench() -> Iterator[Bench]:
    if missing := get_backend("tilelang-c").missing():
        pytest.skip(f"NOT COVERED: {', '.join(need.what for need in missing)} is not here")
    with Bench("tilelang-c") as bench:
        yield bench


@pytest.mark.parametrize("entry", params("python"))
def test_plain_python(numpy_bench: Bench, entry: Entry) -> None:
    holds(numpy_bench, entry)


@pytest.mark.tilelang
@pytest.mark.parametrize("entry", params("tilelang-c"))
def test_tilelang(tilelang_bench: Bench, entry: Entry) -> None:
    holds(tilelang_bench, entry)


def holds(bench: Bench, entry: Entry) -> None:
    """Try it; what becomes of it is what has to become of it."""
    tried = bench.tried(entry)
    if tried.fate is Fate.NOT_COVERED:
        pytest.skip(f"NOT COVERED: {tried.evidence}")
    said = f"{tried.outcome}: {tried.evidence} {tried.damage}"
    assert tried.fate in ((Fate.ACCEPTED,) if entry.is_twin else (Fate.CAUGHT, Fate.IN_VAIN)), said
    assert tried.is_foreseen, said
