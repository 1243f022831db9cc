"""A runtime for tests: loading an artefact runs the Python text in it, as a hostile shared object would run its initialiser.

What the text leaves in `told` is the error that the supervisor gets to see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """Run the text."""
    space: dict[str, Any] = {"told": ""}
    exec(Path(artifact["path"]).read_text(), space)
    raise OSError(f"told: {space['told']}")
