"""Backend `pypto-sim`: real PyPTO on its own cost model, on any x86 machine.

A build compiles the operator for a workload's shapes and simulates it; the latency is the span from the start of the first task
to the end of the last one. It is *simulated*: the same source gives the same cycles every time, and how well they foretell a
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
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from opratchet.backend.base import (
    Artifact,
    Backend,
    BuildError,
    BuildJob,
    Requirement,
    TensorSpec,
)
from opratchet.backend.pypto_calculator import build_calculator, cmake_path
from opratchet.backend.pypto_runtime import CALCULATOR, SWIM, simulate, simulated_us
from opratchet.edit.model import Target
from opratchet.ledger.words import Bottleneck, Latency, MetricKind
from opratchet.operator.model import Operator

# Bytes of the memories of one core of the modelled chip: PyPTO's platform file of 910B2.
MEMORIES = {"UB": 196608, "L1": 524288, "L0A": 65536, "L0B": 65536, "L0C": 131072}


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
            Requirement("pypto", _version("pypto"), extra),
            Requirement("torch", _version("torch"), extra),
            Requirement("cmake", cmake_path(), extra),
            Requirement("g++", shutil.which("g++") or "", "apt-get install g++"),
        ]

    def target(self) -> Target:
        """The modelled chip, and what its cores hold."""
        return Target(backend=self.name, dialect="pypto", memories=MEMORIES)

    def toolchain(self) -> dict[str, str]:
        """Versions of PyPTO and torch, and the chip that is modelled."""
        return {
            "pypto": _version("pypto"),
            "torch": _version("torch"),
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
        names = job.arguments["outputs"] or [f"out{i}" for i in range(len(done.outputs))]
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
        if Path(artifact.path).read_bytes() != text.encode("utf-8"):
            return "what is to be interpreted is not the source of the candidate"
        return ""

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
        """What the simulated swimlanes show."""
        headline = "simulated"
        return [], {"workloads": {w.id: {"headline": headline} for w in operator.tuned}}


def _spec(name: str, tensor: Any) -> TensorSpec:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSpec(name, tuple(int(extent) for extent in tensor.shape), dtype)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
