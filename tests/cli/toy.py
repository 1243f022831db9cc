"""An operator that needs no compiler, as whole commands tune it: its tile decides how long it takes.

For what is about the tool and not about TileLang. With `tests.cli.scripted` in the place of `opratchet` nothing depends on real
time either.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from tests.fake_backend import FakeBackend

NAME = "tests.cli.toy:ToyBackend"
TILE = 8
MANIFEST = f"""\
[operator]
backend = "{NAME}"

[[workloads]]
id = "n64"
shape = {{ N = 64 }}
kind = "tune"

[[workloads]]
id = "n7"
shape = {{ N = 7 }}
kind = "smoke"
"""
SOURCE = f'''"""Doubles a vector."""


def jit(function):
    return function


def golden_double(X):
    return X * 2


@jit
def double(N, block_N={TILE}, dtype="float32"):
    """The longer the tile, the faster."""
    return N
'''
SECONDS = 2.0  # of a slow build


class ToyBackend(FakeBackend):
    """Time by the tile. `candidates = "build_slowly|compile_for_ever"` says what all sources but the original do."""

    name = NAME
    waits = False

    def behaviour(self, text: str) -> dict[str, str]:
        said = super().behaviour(text)
        [tile] = re.findall(r"block_N=(\d+)", text)
        if int(tile) != TILE:
            hinder(said.get("candidates", ""))
        return {**said, "time": str(400 * TILE / int(tile))}


def hinder(how: str) -> None:
    """Take long to build, or wait for a compiler."""
    if how == "build_slowly":
        time.sleep(SECONDS)
    if how == "compile_for_ever":
        subprocess.run(["sleep", "300"], check=False)


def write_toy(folder: Path, *directives: str) -> Path:
    """The operator in a folder whose path holds a blank and Chinese; directives as in `tests.fake_backend`."""
    root = folder / "算子 库" / "double"
    root.mkdir(parents=True)
    lines = "".join(f"    {directive}\n" for directive in directives)
    text = SOURCE.replace("    return N\n", f"{lines}    return N\n")
    (root / "double.py").write_text(text, encoding="utf-8")
    (root / "opratchet.toml").write_text(MANIFEST, encoding="utf-8")
    return root
