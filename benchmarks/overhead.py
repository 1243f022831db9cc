"""What it costs that candidates are not trusted, on the shipped operators.

    python benchmarks/overhead.py [--only softmax,gemm] [--repeats 7]

A batch: the wall time of asking for a timed batch, without the time between its start and its end. That is the drawing of
fresh inputs, the poisoning, the messages, and the looks behind it; what any harness would need of it is not taken off.
A candidate: the static gate on its source, and how much longer its build takes, and the start of its worker with one
checked call of every workload, inside a sandbox than without one, taken in turns. All are medians; nothing else should run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from opratchet.cli.operators import load
from opratchet.edit.onechange import require_kernel_only
from opratchet.edit.source import KernelSource
from opratchet.edit.untrusted import misplaced
from opratchet.gates import verify
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.pairs import Timer, timing
from opratchet.lab.rig import Rig
from opratchet.lab.sandbox import Sandbox, choose
from opratchet.operator.discover import Overrides
from opratchet.operator.model import Operator, Workload

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
OPERATORS = (
    "activation/softmax",
    "norm/rmsnorm",
    "norm/layernorm",
    "activation/gelu",
    "matmul/gemm",
    "attention/attention",
)
BATCHES = 200
MOST_BATCH = 0.010
MOST_CANDIDATE = 0.5


def seconds(work: Callable[[], object]) -> float:
    """Wall time of a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def static_gate(operator: Operator, text: str) -> None:
    """Both looks at a candidate's source, parsed anew as each candidate is."""
    trusted = KernelSource(operator.text, operator.kernel)
    source = KernelSource(text, operator.kernel)
    require_kernel_only(trusted, source, operator.golden)
    misplaced(source, trusted)


def checked_start(lab: Lab, build: Build) -> None:
    """Start a worker, and check one call of every workload."""
    with lab.open(build) as rig:
        verify(lab, rig)


def batches(lab: Lab, rig: Rig, workload: Workload) -> list[float]:
    """Seconds of each batch that are not its calls'."""
    rig.load(workload)
    with timing("cpu", lab.cpu):
        timer = Timer(rig, workload)
        timer.reserve(timer.size())
        extra = []
        for _ in range(BATCHES):
            start = time.perf_counter_ns()
            inside = rig.batch(workload, timer.count)[1]
            extra.append((time.perf_counter_ns() - start - inside) / 1e9)
        return extra


def in_turns(work: Callable[[Lab], object], labs: Sequence[Lab], repeats: int) -> float:
    """How much longer work takes in the second lab than in the first, by the medians of runs in turns."""
    taken: list[list[float]] = [[] for _ in labs]
    for _ in range(repeats):
        for times, lab in zip(taken, labs, strict=True):
            times.append(seconds(partial(work, lab)))
    return median(taken[1]) - median(taken[0])


def measure(place: str, repeats: int) -> tuple[float, float, float, float, float]:
    """Of one operator: a batch's extra (median and 95th percentile of its worst workload), then the three of a candidate."""
    operator = load(EXAMPLES / place, Overrides())
    source, grid = operator.text, "        with T.Kernel("
    texts = [source.replace(grid, f"        unused = {n}\n{grid}") for n in range(repeats)]
    gate = median(seconds(partial(static_gate, operator, text)) for text in texts)
    with Lab(operator, sandbox=Sandbox()) as bare, Lab(operator, sandbox=choose()) as shut:
        builds = {lab: lab.build(source, operator.checked) for lab in (bare, shut)}
        for lab, build in builds.items():
            checked_start(lab, build)  # the golden's worker starts with the first call
        building = in_turns(lambda lab: lab.build(source, operator.checked), [bare, shut], repeats)
        starting = in_turns(lambda lab: checked_start(lab, builds[lab]), [bare, shut], repeats)
        with shut.open(builds[shut], watched=True) as rig:
            taken = [batches(shut, rig, workload) for workload in operator.tuned]
    worst = max(taken, key=median)
    return median(worst), quantiles(worst, n=20)[-1], gate, building, starting


def main() -> None:
    """Print the table, and whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    wanted = {name for name in arguments.only.split(",") if name}
    print("a timed batch: ms beside its calls; a candidate: seconds more than without the defences")
    print(
        f"{'operator':<11} {'batch':>6} {'95 %':>6} {'gate':>7} {'build':>7} {'start':>7} {'candidate':>9}"
    )
    within = True
    for place in OPERATORS:
        if wanted and Path(place).name not in wanted:
            continue
        batch, high, gate, building, starting = measure(place, arguments.repeats)
        candidate = gate + building + starting
        within = within and batch <= MOST_BATCH and candidate <= MOST_CANDIDATE
        print(
            f"{Path(place).name:<11} {1e3 * batch:6.2f} {1e3 * high:6.2f} {gate:7.3f} {building:7.3f} "
            f"{starting:7.3f} {candidate:9.3f}",
            flush=True,
        )
    print(f"at most 10 ms a batch and 0.5 s a candidate: {'holds' if within else 'MISSED'}")


if __name__ == "__main__":
    main()
