"""A trace of 200 MB: seconds and memory that a machine without much of either can spare."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.profile.swimlane.build import TRACE, flow, task, thread

BYTES = 200_000_000
LANES = 72
OPERANDS = "[{11: {'shape': [512, 1024], 'dtype': 7, 'rawmagic': 14, 'mem_usage': 2097152}}]"

READ = """
    import json, resource, sys, time
    from pathlib import Path
    from opratchet.profile.swimlane import analyse
    started = time.perf_counter()
    found = analyse(Path(sys.argv[1]))
    print(json.dumps({
        "seconds": time.perf_counter() - started,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "tasks": sum(row.tasks for row in found.subgraphs),
        "steps": len(found.critical_path.steps),
    }))
"""


def event_texts() -> Iterator[str]:
    """Lanes, then tasks without end: one on each core at a time, each released by the one before it on its core."""
    for lane in range(LANES):
        yield json.dumps(thread(1000 + lane, f"AIV_{lane}"), indent=4)
    number = 0
    while True:
        lane, at = number % LANES, float(number // LANES)
        event = task(1000 + lane, number, at, 1.0, **{"ioperand-hint": OPERANDS, "color": "a"})
        yield json.dumps(event, indent=4)
        if at:
            for end in flow(10**7 + number, (1000 + lane, at), (1000 + lane, at)):
                yield json.dumps(end, indent=4)
        number += 1


def write_large(path: Path) -> int:
    """A trace of at least `BYTES`; the number of its tasks."""
    size = tasks = 0
    with path.open("w") as file:
        file.write('{\n    "traceEvents": [\n')
        for text in event_texts():
            # no flow is cut in two: the file ends after the second event of one
            if size >= BYTES and '"ph": "X"' in text:
                break
            tasks += '"ph": "X"' in text
            size += file.write(text if not size else f",\n{text}")
        file.write("\n]\n}\n")
    return tasks


@pytest.mark.long
def test_200_megabytes_take_under_30_seconds_and_1_gigabyte(tmp_path: Path) -> None:
    tasks = write_large(tmp_path / TRACE)
    assert (tmp_path / TRACE).stat().st_size >= BYTES
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READ), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    print(found)
    assert found["tasks"] == tasks
    assert found["steps"] == -(-tasks // LANES)
    assert found["seconds"] < 30
    assert found["megabytes"] < 1000
