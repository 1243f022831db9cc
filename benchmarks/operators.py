"""The six shipped operators, tuned alone: how far the tool gets, next to the best version by hand and to torch.

    python benchmarks/operators.py [--only softmax,gemm] [--out FOLDER] [--max-rounds 10]

Prints a table: for each operator the speed-up over the shipped baseline, the time of the final version over the best
one written by hand (`benchmarks/by_hand`), and over eager torch on one thread on the same workloads. All ratios are timed in
turns, in one run, on one CPU. Takes 10 to 20 minutes on a quiet machine; nothing else should run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from opratchet.backend.base import Artifact
from opratchet.cli.operators import load
from opratchet.contest import measured_against
from opratchet.judge.robust import trimmed
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.pairs import Timer, pairs, timing
from opratchet.lab.rig import Rig
from opratchet.lab.sandbox import Sandbox
from opratchet.ledger.means import geometric_mean
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
PAIRS = 200


def tune(place: str, out: Path, rounds: int) -> dict[str, Any]:
    """Run the tool on an operator; gives its JSON summary."""
    command = [sys.executable, "-m", "opratchet", "tune", str(EXAMPLES / place)]
    command += ["--fresh", "--out", str(out), "--max-rounds", str(rounds), "--json"]
    reply = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    summary: dict[str, Any] = json.loads(reply.stdout)
    return summary


def against_hand(lab: Lab, final: Build, hand: Build) -> float:
    """Time of the final version over the one by hand, weighted geometric mean over the workloads."""
    result, _spread = measured_against(lab, hand, final, None)
    return 1.0 / result.ratio.value


def against_torch(lab: Lab, operator: Operator, final: Build) -> float:
    """Time of the final version over eager torch, weighted geometric mean over the workloads."""
    logs = []
    with lab.open(final) as ours, torch_rig(lab, operator, final) as theirs:
        for workload in operator.tuned:
            ours.load(workload)
            theirs.load(workload)
        with timing("cpu", lab.cpu):
            for workload in operator.tuned:
                stream = pairs(Timer(theirs, workload), Timer(ours, workload))
                taken = [math.log(p.candidate.ns / p.incumbent.ns) for p in islice(stream, PAIRS)]
                logs.append(trimmed(taken).value)
    return geometric_mean(map(math.exp, logs), (w.weight for w in operator.tuned))


class TorchRig(Rig):
    """Its results are new tensors, as eager code makes them: nothing is written where a kernel would write."""

    def batch(self, workload: Workload, count: int) -> tuple[int, int]:
        """As a kernel's, on inputs that are drawn anew as often."""
        ring = self._rings[workload.id]
        ring.renew(count)
        message = {"op": "batch", "workload": workload.id, "n": count}
        return self.worker.timed(message, 60.0)


def torch_rig(lab: Lab, operator: Operator, build: Build) -> Rig:
    """A run worker that calls the golden in torch."""
    artifacts: dict[str, Artifact] = {}
    for workload in operator.tuned:
        tensors = build.artifacts[workload.id].tensors
        names = [tensor.name.lower() for tensor in tensors]
        offered = {**workload.shape, **workload.params}
        facts = {
            "source": str(operator.source),
            "golden": operator.golden,
            "inputs": [n for n in names if n in {g.lower() for g in operator.golden_parameters}],
            "keywords": {
                name: value for name, value in offered.items() if name in operator.golden_parameters
            },
        }
        content = json.dumps(facts).encode()
        path = lab.folder / "taken" / hashlib.sha256(content).hexdigest() / "torch.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        artifacts[workload.id] = replace(build.artifacts[workload.id], path=str(path))
    before = lab.backend.runtime, lab.sandbox
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    lab.backend.runtime = "torch_runtime"  # type: ignore[misc]
    lab.sandbox = Sandbox()  # the golden is trusted, and lies where no candidate may look
    try:
        return TorchRig(lab, Build(artifacts, 0.0))
    finally:
        lab.backend.runtime, lab.sandbox = before  # type: ignore[misc]


def measure(place: str, out: Path, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    summary = tune(place, out, rounds)
    operator = load(EXAMPLES / place, Overrides())
    with Lab(operator) as lab:
        final = lab.build(Path(summary["output"]).read_text(encoding="utf-8"), operator.checked)
        by_hand = HERE / "by_hand" / f"{operator.name}.py"
        hand = lab.build(by_hand.read_text(encoding="utf-8"), operator.checked)
        over_hand = against_hand(lab, final, hand)
        over_torch = against_torch(lab, operator, final)
    seconds = summary["seconds"]
    return {
        "operator": operator.name,
        "speedup": summary["speedup"],
        "low": summary["speedup_ci"][0],
        "high": summary["speedup_ci"][1],
        "over_hand": over_hand,
        "over_torch": over_torch,
        "rounds": summary["rounds"],
        "experiments": summary["experiments"],
        "seconds": seconds["total"],
        "own": seconds["own"] / seconds["total"],
    }


def show(row: dict[str, Any]) -> str:
    """A row as text."""
    return (
        f"{row['operator']:<11} {row['speedup']:6.2f}x [{row['low']:.2f}, {row['high']:.2f}]"
        f"   {row['over_hand']:8.2f}   {row['over_torch']:8.2f}   {row['rounds']:3d}"
        f"   {row['experiments']:4d}   {row['seconds']:6.0f}   {row['own']:6.1%}"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--max-rounds", type=int, default=10)
    arguments = parser.parse_args()
    only = set(filter(None, arguments.only.split(",")))
    out = arguments.out or Path(tempfile.mkdtemp(prefix="opratchet-bench-"))
    chosen = [place for place in OPERATORS if not only or place.split("/")[1] in only]
    print("metric kind: measured, one core; final / hand and final / torch: below 1 is faster")
    print("operator    speed-up over baseline   fin/hand   fin/torch  rnd   exp    seconds   own")
    rows = []
    for place in chosen:
        rows.append(measure(place, out / place, arguments.max_rounds))
        print(show(rows[-1]), flush=True)
    print(
        f"geometric mean {geometric_mean(r['speedup'] for r in rows):.2f}x   worst {min(r['low'] for r in rows):.2f}x"
        f"   fin/hand at most {max(r['over_hand'] for r in rows):.2f}"
        f"   fin/torch {geometric_mean(r['over_torch'] for r in rows):.2f}"
    )
    (out / "operators.json").write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
