"""Backend `python`: plain Python functions over NumPy arrays, timed on one core.

It needs nothing but NumPy, so that whoever has a kernel and a golden can check, measure and compare them, and so that the
tool can be tried on a bare machine. The kernel is a factory, as in TileLang: it is given the shape and gives the function that
is timed. What that function takes and gives is said by its annotations, each a shape and a dtype:

    def softmax(M, N, dtype="float32"):
        def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

        return main

The artefact is the source itself, so what is timed is the text that is on record. See docs/python.md.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opratchet.backend.base import (
    Artifact,
    Backend,
    BuildError,
    BuildJob,
    Requirement,
    TensorSpec,
    not_the_source,
)
from opratchet.backend.modules import last_lines, load_module
from opratchet.edit.model import Target
from opratchet.ledger.words import Bottleneck, Latency, MetricKind
from opratchet.operator.model import Operator

EXAMPLE = 'def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}'
UNSAID = (
    "the factory has to return a function whose annotations say shape and dtype of each input and output, "
    f"e.g. `{EXAMPLE}`"
)


class Python(Backend):
    """Python functions over NumPy arrays on the CPU, one core, a real clock."""

    name = "python"
    metric_kind = MetricKind.MEASURED
    preload = ("numpy",)
    runtime = "opratchet.backend.python_runtime"
    summary = "plain Python functions over NumPy arrays, timed on this CPU (one core)"

    def requirements(self) -> list[Requirement]:
        """NumPy, which the tool itself needs."""
        return [Requirement("numpy", np.__version__, "pip install numpy")]

    def target(self) -> Target:
        """Plain Python: no strategy applies to it."""
        return Target(backend=self.name, dialect="python")

    def toolchain(self) -> dict[str, str]:
        """Versions of Python and NumPy."""
        return {"python": platform.python_version(), "numpy": np.__version__}

    def build(self, job: BuildJob) -> Artifact:
        """Run the source and its factory once, to see that they run and what the kernel takes and gives."""
        factory = getattr(load_module(Path(job.source)), job.kernel, None)
        if not callable(factory):
            raise BuildError(f"the source defines no function `{job.kernel}`")
        try:
            kernel = factory(**job.arguments)
        except MemoryError:
            raise
        except Exception as error:
            raise BuildError(last_lines(error)) from error
        inputs, outputs = signature_of(kernel)
        symbol = json.dumps(entry_of(job, kernel, len(inputs)), sort_keys=True)
        text = Path(job.source).read_text(encoding="utf-8-sig")
        return Artifact(job.source, symbol, (*inputs, *outputs), _identity(text, symbol))

    def doubt(self, artifact: Artifact, text: str) -> str:
        """The artefact has to be the source, letter for letter."""
        return not_the_source(artifact, text)

    def diagnose(
        self,
        operator: Operator,
        text: str,
        artifacts: Mapping[str, Artifact],
        latency: Mapping[str, Latency],
    ) -> tuple[list[Bottleneck], dict[str, Any]]:
        """Nothing: what binds an interpreter cannot be told from shapes."""
        headline = "plain Python is not diagnosed"
        return [], {"workloads": {w.id: {"headline": headline} for w in operator.tuned}}


def signature_of(kernel: Callable[..., Any]) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of a kernel, as its annotations say.

    Raises:
        BuildError: they do not say it.
    """
    notes = dict(getattr(kernel, "__annotations__", {}))
    results = notes.pop("return", None)
    if not isinstance(results, dict) or not results:
        raise BuildError(UNSAID)
    named = parameters(kernel)
    taken = tuple(name for name in named if name not in results)
    placed = named[len(taken) :]
    if not taken or tuple(name for name in notes if name not in results) != taken:
        raise BuildError(UNSAID)
    if placed and placed != tuple(results):
        raise BuildError("a kernel that is given its outputs takes all of them, behind its inputs")
    return (
        [_spec(name, notes[name]) for name in taken],
        [_spec(*item) for item in results.items()],
    )


def parameters(kernel: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a kernel's parameters; none for what is no function."""
    code = getattr(kernel, "__code__", None)
    return () if code is None else tuple(code.co_varnames[: code.co_argcount])


def entry_of(job: BuildJob, kernel: Callable[..., Any], inputs: int) -> dict[str, Any]:
    """What the runtime has to know: the factory, its arguments, and how the kernel is called."""
    return {
        "kernel": job.kernel,
        "arguments": dict(job.arguments),
        "inputs": inputs,
        "in_place": len(parameters(kernel)) > inputs,
    }


def _spec(name: str, note: Any) -> TensorSpec:
    try:
        shape, dtype = note
        extents = tuple(int(extent) for extent in shape)
        return TensorSpec(str(name), extents, np.dtype(dtype).name)
    except (TypeError, ValueError):
        raise BuildError(
            f"the annotation of `{name}` is not a shape and a dtype that NumPy has, as in `{EXAMPLE}`: {note!r:.80}"
        ) from None


def _identity(text: str, symbol: str) -> str:
    """Identity of the code: comments and blank space do not count."""
    return hashlib.sha256(f"{ast.dump(ast.parse(text))}\0{symbol}".encode()).hexdigest()
