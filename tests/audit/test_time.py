"""Times of writing: a clock that was set back is a remark, what is no time is a finding."""

from __future__ import annotations

import json
from pathlib import Path

from opratchet.audit.examine import examine
from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, read_lines, unseal
from opratchet.report.views import rebuild
from tests.audit.recorded import write_chain


def retime(run: Path, number: int, at: str) -> None:
    """Another time for one line, and the reports after it."""
    path = run / LEDGER
    bodies = [json.loads(unseal(raw)[0]) for raw in path.read_bytes().splitlines()]
    times = {json.dumps(body["event"]): body["at"] for body in bodies}
    times[json.dumps(bodies[number]["event"])] = at
    write_chain(path, [body["event"] for body in bodies], times)
    rebuild(run, fold(read_lines(path)))


def test_a_clock_set_back_is_a_remark(run: Path) -> None:
    retime(run, 8, "2020-01-01T00:00:00.000+00:00")
    audit = examine(run)
    assert audit.is_clean
    assert [(r.line, r.key) for r in audit.remarks] == [(9, "at")]


def test_what_is_no_time_is_a_finding(run: Path) -> None:
    retime(run, 8, "noon")
    assert [(f.line, f.key) for f in examine(run).findings] == [(9, "at")]
