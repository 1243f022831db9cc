"""Labs with the sandbox and without it, for the tests of what a candidate can reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opratchet.lab.bench import Lab
from opratchet.lab.limits import Limits
from opratchet.lab.sandbox import Mode, choose
from tests.engine.scripted import ROOT, make_operator

WORKS = choose()
NEEDS = "these tests of the sandbox need bubblewrap: apt-get install bubblewrap"
boxed = pytest.mark.skipif(not WORKS.active, reason=f"{NEEDS} ({WORKS.why_not})")
apart = pytest.mark.skipif(
    not WORKS.sets_apart, reason=f"{NEEDS} ({WORKS.why_not or WORKS.shared})"
)
LIMITS = Limits(build_seconds=20.0, call_seconds=20.0, scratch_bytes=4 << 20, file_bytes=8 << 20)


@contextmanager
def opened(folder: Path, mode: Mode) -> Iterator[Lab]:
    """A lab, and a run's folder in its operator's."""
    operator = make_operator(folder)
    run = operator.root / "perf_opt"
    run.mkdir()
    (run / "ledger.jsonl").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with Lab(operator, LIMITS, choose(mode).hiding([run])) as lab:
            yield lab
