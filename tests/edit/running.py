"""Compile a source with the real TileLang and compare what it computes with a reference.

Most of a compilation is TileLang's own header, which is the same each time: it is compiled once, and the compiler is told to
begin with that.
"""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from opratchet.edit.dialects.tilelang import Kernel
from opratchet.edit.source import KernelSource


@cache
def flags() -> str:
    """Flags for a compilation that takes little time, as they stand in a source."""
    from tilelang.contrib.cc import get_cplus_compiler
    from tilelang.env import TILELANG_TEMPLATE_PATH

    header = Path(tempfile.mkdtemp()) / "head.h"
    header.write_text("#include <tl_templates/cpp/common.h>\n")
    command = [get_cplus_compiler(), "-std=c++17", "-fPIC", "-O0", f"-I{TILELANG_TEMPLATE_PATH}"]
    subprocess.run([*command, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
    return f'"-O0", "-include", "{header}"'


def load(source: KernelSource, folder: Path) -> ModuleType:
    """Import a source as a module of its own, with little optimisation so that it compiles fast."""
    path = folder / f"{source.kernel}_{source.sha256[:12]}.py"
    path.write_text(source.text.replace('"-O3", "-march=native"', flags()), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(source: KernelSource, folder: Path, **shape: int) -> tuple[list[Any], Any]:
    """Inputs and output (the last parameter) of one call on random float32 tensors."""
    import tilelang
    import torch

    tilelang.disable_cache()
    torch.manual_seed(0)
    module = load(source, folder)
    dims = [parameter.dims for parameter in Kernel(source).parameters.values()]
    tensors = [torch.randn(*(eval(dim, dict(shape)) for dim in one)) for one in dims]
    tensors[-1].fill_(float("nan"))
    getattr(module, source.kernel)(**shape)(*tensors)
    return tensors[:-1], tensors[-1]


def assert_matches_golden(text: str, original: KernelSource, folder: Path, **shape: int) -> None:
    """The edited text computes what the golden of the original says."""
    import torch

    inputs, output = run(KernelSource(text, original.kernel), folder, **shape)
    golden = getattr(load(original, folder), f"golden_{original.kernel}")
    torch.testing.assert_close(output, golden(*inputs), rtol=1e-4, atol=1e-4)
