"""Runtime that calls a golden in eager torch on one thread, so that it can be timed in turns with a kernel."""

from __future__ import annotations

import ctypes
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """The golden on the input tensors at these addresses; its result is dropped, as eager code would make a new one."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    facts = json.loads(Path(artifact["path"]).read_text())
    inputs = []
    for tensor, address in zip(artifact["tensors"], addresses, strict=True):
        if tensor["name"].lower() in facts["inputs"]:
            count = int(np.prod(tensor["shape"]))
            memory = (ctypes.c_float * count).from_address(address)
            inputs.append(
                torch.from_numpy(np.frombuffer(memory, np.float32)).reshape(tensor["shape"])
            )
    golden = _golden(facts["source"], facts["golden"])
    return lambda: golden(*inputs, **facts["keywords"])


def _golden(source: str, name: str) -> Callable[..., Any]:
    """The golden alone: only what its source file imports from torch is needed, not TileLang."""
    import ast

    tree = ast.parse(Path(source).read_text(encoding="utf-8"))
    wanted = [
        node
        for node in tree.body
        if (isinstance(node, ast.FunctionDef) and node.name == name)
        or (isinstance(node, ast.Import) and node.names[0].name in ("torch", "math"))
    ]
    spec = importlib.util.spec_from_loader("golden", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(ast.Module(wanted, []), source, "exec"), vars(module))
    function: Callable[..., Any] = getattr(module, name)
    return function
