"""Executing a source file as a module. Only ever called in a worker, never in the supervisor."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from opratchet.backend.base import BuildError


def load_module(path: Path) -> ModuleType:
    """Execute a source file and give its module back.

    Raises:
        BuildError: the file raised an exception; the text holds its message.
    """
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except MemoryError:
        raise
    except Exception as error:
        raise BuildError(last_lines(error)) from error
    return module


def last_lines(error: BaseException) -> str:
    """The message of an error: its last lines, where compilers and TVM put what matters."""
    lines = [line for line in f"{type(error).__name__}: {error}".splitlines() if line.strip()]
    return "\n".join(lines[-12:])[-2000:]
