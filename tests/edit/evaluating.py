"""Runs a kernel's source on given tensors in plain Python, one block, float64: the compute statements of TileLang."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from opratchet.edit.source import KernelSource
from tests.edit.interpreter import Tensor, language
from tests.edit.sources import HEAD

GARBAGE = 1  # seed of what is in memory that nobody has set


def gemm(a: np.ndarray, b: np.ndarray, c: np.ndarray, *order: bool, **named: bool) -> None:
    turned = {**dict(zip(("transpose_A", "transpose_B"), order, strict=False)), **named}
    c += (a.T if turned.get("transpose_A") else a) @ (b.T if turned.get("transpose_B") else b)


def _reducer(function: Any) -> Any:
    def reduce(source: np.ndarray, target: np.ndarray, dim: int = -1, clear: bool = True) -> None:
        found = function.reduce(source, axis=dim, keepdims=target.ndim == source.ndim)
        target[...] = found if clear else function(target, found)

    return reduce


def full_language() -> SimpleNamespace:
    """What the source calls `T`, with all that the compute-shape rewrites read and write."""
    names = vars(language(0, np.random.default_rng(GARBAGE)))
    extra = {
        "unroll": range,
        "fill": lambda target, value: target.fill(value),
        "infinity": lambda dtype: math.inf,
        "max": max,
        "min": min,
        "gemm": gemm,
        "reduce_sum": _reducer(np.add),
        "reduce_max": _reducer(np.maximum),
        "reduce_min": _reducer(np.minimum),
    }
    return SimpleNamespace(**{**names, **extra})


def evaluate(source: KernelSource, shape: dict[str, int], *tensors: np.ndarray) -> None:
    """Run the only block of a kernel in place on its tensors, of two dims each."""
    scope: dict[str, Any] = {"T": full_language()}
    exec(source.text.removeprefix(HEAD), scope)
    scope["op"](**shape)(*map(Tensor, tensors))
