"""Operators to read, made of a small source and whatever a test puts beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opratchet.errors import BadInput
from opratchet.operator.discover import load_operator
from opratchet.operator.model import Operator

BACKENDS = ("tilelang-c", "tilelang-npuir", "tilelang-ascend", "pypto-sim")
FLOWS = ("tilelang", "pypto")

SOURCE = """\
import tilelang
import tilelang.language as T
import torch

EPS = 1e-6


def golden_norm(X, eps: float = EPS):
    return X / torch.sqrt(X.pow(2).mean(-1, keepdim=True) + eps)


@tilelang.jit(target="c")
def norm(M, N, eps=EPS, block_M=4, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M) as bx:
            Y[bx, 0] = X[bx, 0]

    return main


def run_case(M: int, N: int, dtype: str = "float32", seed: int = 0) -> None:
    raise SystemExit("a source must be read, never run")


def run_L0() -> None:
    run_case(64, 128)


raise SystemExit("a source must be read, never run")
"""

MANIFEST = """\
[operator]
backend = "tilelang-c"
flow = "tilelang"

[inputs.X]
distribution = "normal"

[[workloads]]
id = "big"
shape = { M = 64, N = 128 }

[[workloads]]
id = "odd"
shape = { M = 3, N = 5 }
kind = "smoke"
"""


def write(folder: Path, source: str | bytes = SOURCE, **beside: str) -> Path:
    """A folder `norm/` with `norm.py` and further files (`manifest=` is `opratchet.toml`, `DESIGN=` is `DESIGN.md`)."""
    root = folder / "proj" / "norm"
    root.mkdir(parents=True, exist_ok=True)
    raw = source.encode() if isinstance(source, str) else source
    (root / "norm.py").write_bytes(raw)
    for name, text in beside.items():
        file = {"manifest": "opratchet.toml", "design": "design.py"}.get(name, f"{name}.md")
        (root / file).write_text(text, encoding="utf-8")
    return root


def load(path: Path, **options: Any) -> Operator:
    """`load_operator` with the backends and flows that there are."""
    return load_operator(path, known_backends=BACKENDS, known_flows=FLOWS, **options)


def refused(action: Callable[[], object]) -> str:
    """The message of the `BadInput` that the action has to raise; it must say where, what and how to mend it."""
    with pytest.raises(BadInput) as caught:
        action()
    assert caught.value.exit_code == 2
    assert caught.value.fix
    return str(caught.value)


def line_of(text: str, part: str) -> int:
    """Line number of the first line that holds the part."""
    return next(n for n, line in enumerate(text.splitlines(), start=1) if part in line)
