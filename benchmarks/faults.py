"""Runs that are killed at random moments and gone on with: how many trials that loses or doubles. Both must be 0.

    python benchmarks/faults.py [--points 500] [--seed N] [--every-event]

Each point is a whole run on the tests' backend, whose timing is scripted, so that what a run decides can be compared exactly with
a run that nobody disturbed. It is killed with SIGKILL at a random moment of its life, then gone on with until it is done.
`--every-event` kills at the boundary of every event instead: one run again and again, right before each event is written, then
(unless `--points 0`) a run of its own for each boundary, right before the next event is written and right after the last one.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.faults.killing import (  # noqa: E402
    Found,
    killed_after,
    killed_at,
    killed_at_every_event,
    undisturbed,
)


def points(place: Path, arguments: argparse.Namespace) -> Iterator[Found]:
    """Each killed run, as it is done."""
    wanted, events, seconds = undisturbed(place / "undisturbed")
    print(f"undisturbed: {len(wanted['trials'])} trials, {events} events, {seconds:.1f} s")
    if arguments.every_event:
        yield from killed_at_every_event(place / "every", wanted)
        for number in [] if arguments.points == 0 else [0, *range(3, events)]:
            for before in (True, False) if number else (True,):
                yield killed_at(place / f"{number}-{before}", number, wanted, before=before)
        return
    generator = random.Random(arguments.seed)
    for number in range(arguments.points):
        moment = generator.uniform(0.0, seconds)
        yield killed_after(place / str(number), moment, wanted)


def main() -> int:
    """Exit code 0 when nothing was lost, doubled, orphaned or decided otherwise."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--every-event", action="store_true")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        # Workers of a killed run leave their folders where temporary files are.
        os.environ["TMPDIR"] = tempfile.tempdir = place
        found = []
        for one in points(Path(place), arguments):
            found.append(one)
            if not one.good:
                print(one, flush=True)
    print(
        f"{len(found)} kill points: {sum(f.lost for f in found)} lost trials, {sum(f.doubled for f in found)} doubled trials, "
        f"{sum(f.orphans for f in found)} orphans, {sum(not f.same for f in found)} runs that decided otherwise"
    )
    return 0 if all(f.good for f in found) else 1


if __name__ == "__main__":
    sys.exit(main())
