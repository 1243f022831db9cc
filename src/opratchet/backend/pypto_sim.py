"""Backend `pypto-sim`: real PyPTO on its own cost model, on any x86 machine.

A build compiles the operator for a workload's shapes and simulates it; the latency is the span from the start of the first task
on a core to the end of the last one, which PyPTO prints as `AICore End-to-End Time`. It is *simulated*: the same source gives the same cycles every time, and how well they foretell a
device is not known. Numbers are *interpreted*: PyPTO's calculator runs the graph as it is behind the last pass before code is
generated, and the supervisor compares that with the golden. Mistakes of code generation, races and synchronisation cannot be
seen this way. See docs/pypto-sim.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opratchet.backend.base import (
    Artifact,
    Backend,
    BuildError,
    BuildJob,
    Requirement,
    TensorSpec,
    not_the_source,
    package_version,
)
from opratchet.backend.pypto_calculator import build_calculator, cmake_path
from opratchet.backend.pypto_runtime import CALCULATOR, CYCLES_PER_US, SWIM, simulate, simulated_us
from opratchet.edit.model import Target
from opratchet.edit.pypto.target import pypto_target
from opratchet.ledger.words import Bottleneck, Latency, MetricKind
from opratchet.operator.model import Operator
from opratchet.profile.diagnosis import over_workloads
from opratchet.profile.swimlane import Rates, analyse

NAMES = ("core_use", "bubble", "load_balance")


class PyptoSim(Backend):
    """PyPTO on its cost model: simulated latency, interpreted numbers."""

    name = "pypto-sim"
    metric_kind = MetricKind.SIMULATED
    preload = ("torch", "pypto")
    runtime = "opratchet.backend.pypto_runtime"
    summary = (
        "PyPTO on its own cost model: simulated latency of an Ascend 910B2, numbers interpreted"
    )

    def requirements(self) -> list[Requirement]:
        """PyPTO, torch, and what PyPTO compiles with."""
        extra = 'pip install "opratchet[pypto]"'
        return [
            Requirement("pypto", package_version("pypto"), extra),
            Requirement("torch", package_version("torch"), extra),
            Requirement("cmake", cmake_path(), extra),
            Requirement("g++", shutil.which("g++") or "", "apt-get install g++"),
        ]

    def target(self) -> Target:
        """The modelled chip, and what its cores hold."""
        return pypto_target(self.name)

    def toolchain(self) -> dict[str, str]:
        """Versions of PyPTO and torch, and the chip that is modelled."""
        return {
            "pypto": package_version("pypto"),
            "torch": package_version("torch"),
            "python": sys.version.split()[0],
            "chip": "Ascend 910B2, PyPTO's cost model",
        }

    def prepare(self, tell: Callable[[str], None]) -> None:
        """Build PyPTO's calculator, once for a machine, and let workers know of it and of its logs."""
        os.environ[CALCULATOR] = str(build_calculator(tell))
        # With these PyPTO says why a pass failed. They are read when it is loaded.
        os.environ.setdefault("ASCEND_SLOG_PRINT_TO_STDOUT", "1")
        os.environ.setdefault("ASCEND_GLOBAL_LOG_LEVEL", "3")

    def shown(self) -> list[Path]:
        """The calculator."""
        return [Path(os.environ[CALCULATOR])]

    def build(self, job: BuildJob) -> Artifact:
        """Compile and simulate one workload; no numbers yet."""
        import torch

        shapes, dtype = job.arguments["tensors"], job.arguments["dtype"]
        inputs = [
            torch.zeros(tuple(shape), dtype=getattr(torch, dtype)) for shape in shapes.values()
        ]
        symbol = {
            "entry": job.arguments["entry"],
            "inputs": list(shapes),
            "keywords": job.arguments["keywords"],
        }
        done = simulate(Path(job.source), symbol, inputs, verified=False)
        tensors = [_spec(*item) for item in zip(shapes, inputs, strict=True)]
        names = job.arguments["outputs"]
        if len(names) != len(done.outputs):
            raise BuildError(
                f"`{symbol['entry']}` returns {len(done.outputs)} tensors, not {len(names)}"
            )
        tensors += [_spec(*item) for item in zip(names, done.outputs, strict=True)]
        swim = done.folder / SWIM
        return Artifact(
            job.source,
            json.dumps(symbol, sort_keys=True),
            tuple(tensors),
            hashlib.sha256(swim.read_bytes()).hexdigest(),
            reports={"swim": str(swim)},
        )

    def doubt(self, artifact: Artifact, text: str) -> str:
        """What is interpreted has to be the source, letter for letter."""
        return not_the_source(artifact, text)

    def modelled_us(self, artifact: Artifact) -> float:
        """The simulated span of all tasks."""
        return simulated_us(Path(artifact.reports["swim"]))

    def diagnose(
        self,
        operator: Operator,
        text: str,
        artifacts: Mapping[str, Artifact],
        latency: Mapping[str, Latency],
    ) -> tuple[list[Bottleneck], dict[str, Any]]:
        """What the simulated swimlanes show: idle cores, bubbles, uneven load."""
        found: dict[str, list[Bottleneck]] = {}
        facts: dict[str, Any] = {"workloads": {}}
        for workload in operator.tuned:
            rates = _rates(Path(artifacts[workload.id].reports["swim"]))
            found[workload.id] = bottlenecks(rates)
            facts["workloads"][workload.id] = {**vars(rates), "headline": _headline(rates)}
        return over_workloads(found, NAMES), facts


def bottlenecks(rates: Rates) -> list[Bottleneck]:
    """What binds a version, from the honest rates of its cores."""
    idle, uneven = 1 - rates.core_utilisation, 1 - rates.load_balance
    return [
        Bottleneck(name="core_use", score=idle, evidence=f"{idle:.0%} of the core time is idle"),
        Bottleneck(
            name="bubble",
            score=rates.bubble,
            evidence=f"cores idle in {rates.bubble:.0%} of the core time although a task is ready",
        ),
        Bottleneck(
            name="load_balance",
            score=uneven,
            evidence=f"the busiest core works {uneven:.0%} longer than the mean, of its own time",
        ),
    ]


def _headline(rates: Rates) -> str:
    return (
        f"cores busy in {rates.core_utilisation:.0%} of their time, bubble {rates.bubble:.0%}, "
        f"load balance {rates.load_balance:.0%}"
    )


def _rates(swim: Path) -> Rates:
    """Honest rates of one simulation, from the tasks that its cores executed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, SWIM)
        place.parent.mkdir()
        shutil.copyfile(swim, place)
        return analyse(Path(folder), cycles_per_us=CYCLES_PER_US).honest


def _spec(name: str, tensor: Any) -> TensorSpec:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSpec(name, tuple(int(extent) for extent in tensor.shape), dtype)
