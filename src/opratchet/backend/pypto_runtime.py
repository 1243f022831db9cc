"""Running a PyPTO operator on its cost model, in a worker: what the backend `pypto-sim` does where PyPTO may be imported.

A run compiles the kernel for the given shapes and simulates it; PyPTO leaves its files in `output/` of the current folder, which
is the job's own. A plain run computes nothing: the outputs keep what they held. A *verified* run also interprets the graph with
PyPTO's own calculator, and what it found is then in the outputs. Three things stand in the way of that in PyPTO 0.2.0:

- without CANN, its copy to the host zeroes the tensors that it is given, so the data of the verification are set here instead;
- the calculator is built in each process; here it is loaded from where `pypto_calculator` keeps it;
- what the outputs hold afterwards is the result of the graph as it was written, before anything was tiled. What comes out behind
  a pass lies in a file, beside one with the result of the written graph for the same place. The pair whose second file is the
  output, byte by byte, tells which file is to be handed over instead. The pass is the last one before code is generated; where an
  axis is dynamic, that one and those before it keep only a piece of each output, so it is the last one that keeps all of it.

Most of the wall time of a run would go into the wheel's plotting scripts, which it starts as `python3`: a `python3` that does
nothing stands first on the path.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opratchet.backend.base import BuildError, OverCapacity
from opratchet.backend.modules import last_lines, load_module
from opratchet.backend.python_runtime import array_at
from opratchet.profile.swimlane import read_tasks

CALCULATOR = "PYPTO_CALCULATOR"
"""Environment variable with the path of the calculator."""

CYCLES_PER_US = 1800.0  # clock of the modelled cores, 910B2: PyPTO's own platform file
LAST_PASS, LAST_WHOLE_PASS = "CodegenPreproc", "InferDynShape"
SWIM = "CostModelSimulationOutput/_simulate.swim.json"
_TOO_LARGE = re.compile(r"exceeds (?:MEM_\w+) size")
# The cause of a failed pass, without what the log puts before it where that can be told.
_CAUSE = re.compile(r"\b(?:OP|Alloc|FwkOp) .*(?:exceeds|not aligned).*|.*(?:exceeds|not aligned).*")


@dataclass(frozen=True)
class Simulated:
    """What one run left.

    Attributes:
        outputs: What the host function returned, one tensor for each output.
        folder: Where PyPTO put its files.
    """

    outputs: tuple[Any, ...]
    folder: Path


def simulate(
    source: Path, symbol: Mapping[str, Any], inputs: Sequence[Any], *, verified: bool
) -> Simulated:
    """Run an operator once on the cost model.

    Args:
        source: The implementation.
        symbol: `entry` (the host function) and `keywords` for it.
        inputs: Torch tensors on the CPU, as the host function takes them.
        verified: Whether the numbers are interpreted too.

    Raises:
        BuildError: it does not compile, or returns what is no tensor. `OverCapacity` where a buffer does not fit.
    """
    module = load_module(source)
    entry = getattr(module, symbol["entry"], None)
    if not callable(entry):
        raise BuildError(f"the source defines no function `{symbol['entry']}`")
    for kernel in _kernels(module):
        _configure(kernel, verified=verified)
    before = _runs()
    with _quiet_plots(), _printed() as said:
        try:
            given = entry(*inputs, **symbol["keywords"])
        except MemoryError:
            raise
        except Exception as error:
            raise failure(said(), error) from error
    return Simulated(_tensors(given), _only(_runs() - before))


def load(artifact: Mapping[str, Any], addresses: Sequence[int]) -> Callable[[], object]:
    """Bind an operator to the tensors at these addresses.

    Args:
        artifact: `Artifact.to_json()` of a build.
        addresses: One address a tensor, inputs first.

    Returns:
        A call that has the operator interpreted once, puts what the last pass computed into the outputs, and gives the microseconds
        that the cost model simulated.
    """
    import torch

    symbol = json.loads(artifact["symbol"])
    arrays = [
        array_at(spec, address)
        for spec, address in zip(artifact["tensors"], addresses, strict=True)
    ]
    count = len(symbol["inputs"])

    def call() -> object:
        inputs = [torch.from_numpy(array.copy()) for array in arrays[:count]]
        done = simulate(Path(artifact["path"]), symbol, inputs, verified=True)
        outputs = arrays[count:]
        if len(done.outputs) != len(outputs):
            raise BuildError(f"{len(done.outputs)} outputs came, {len(outputs)} were built")
        for output, given in zip(outputs, done.outputs, strict=True):
            output[...] = interpreted(done.folder, given, output)
        return simulated_us(done.folder / SWIM)

    return call


def interpreted(folder: Path, given: Any, like: Any) -> Any:
    """The result of the last pass for one output.

    Args:
        folder: Where a verified run put its files.
        given: The output as the written graph has it.
        like: An array of the output's shape and dtype.

    Raises:
        BuildError: PyPTO left no result of its last pass for it.
    """
    import numpy as np

    written = given.numpy().tobytes()
    for golden in _newest_first(folder):
        passed = Path(str(golden).replace("~golden~", "~"))
        if not passed.is_file():
            continue
        whole = golden.stat().st_size == passed.stat().st_size == len(written)
        if whole and golden.read_bytes() == written:
            return np.frombuffer(passed.read_bytes(), like.dtype).reshape(like.shape)
    raise BuildError(
        f"PyPTO's verification left no result of its last pass for an output of the shape {list(like.shape)}: "
        "every output has to be written by the kernel itself, and handed over as it is"
    )


def _newest_first(folder: Path) -> list[Path]:
    found = folder.glob("verify_*/Pass_*/*~golden~*.data")
    return sorted(found, key=lambda path: int(path.stem.rsplit("~", 1)[1]), reverse=True)


def simulated_us(swim: Path) -> float:
    """Microseconds from the start of the first task on a core to the end of the last one: PyPTO's `AICore End-to-End Time`.

    Raises:
        BadInput: the file is none that the cost model writes.
    """
    return read_tasks(swim).span_cycles / CYCLES_PER_US


def _kernels(module: Any) -> Iterator[Any]:
    from pypto.frontend.parser.entry import JitCallableWrapper

    for value in vars(module).values():
        if isinstance(value, JitCallableWrapper):
            yield value


def _configure(kernel: Any, *, verified: bool) -> None:
    """Have a kernel run on the cost model, whatever it was written for."""
    import pypto

    kernel._runtime_options = {
        **(kernel._runtime_options or {}),
        "run_mode": pypto.RunMode.SIM.value,
    }
    if verified:
        _use_calculator()
        last = LAST_WHOLE_PASS if _is_dynamic(kernel) else LAST_PASS
        wanted = {"enable_pass_verify": True, "pass_verify_pass_filter": [last]}
        kernel._verify_options = {**(kernel._verify_options or {}), **wanted}


def _is_dynamic(kernel: Any) -> bool:
    """Whether an axis of one of its tensors is only known when it is called."""
    import pypto

    dynamic = (pypto.StatusType.DYN, pypto.StatusType.DYNAMIC)
    tensors, _others = kernel._cached_signature
    extents = [extent for tensor in tensors for extent in tensor.shape]
    return any(isinstance(e, pypto.SymbolicScalar) or e in dynamic for e in extents)


@cache
def _use_calculator() -> None:
    """Load the calculator, and set the data of a verification without the copy that zeroes them."""
    from pypto import pypto_impl
    from pypto._utils import BuildOnlineManager
    from pypto.frontend.parser import entry
    from pypto.runtime import _pto_verify_datas

    path = os.environ.get(CALCULATOR, "")
    if not Path(path).is_file():
        raise BuildError("PyPTO's calculator is not there: nothing can be verified without it")
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    BuildOnlineManager().calculator_loaded = True
    alive: list[Any] = []

    def set_data(tensors: Any) -> None:
        if entry.pypto.get_verify_options().get("enable_pass_verify"):
            alive.append(tensors)
            data = entry._pto_to_tensor_data(tensors)
            pypto_impl.SetVerifyData(data, [], _pto_verify_datas.get_data())

    entry.JitCallableWrapper._setup_verify_data = staticmethod(set_data)


def _tensors(given: Any) -> tuple[Any, ...]:
    import torch

    results = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for result in results:
        if type(result) is not torch.Tensor:
            raise BuildError(f"the host function returned a {type(result).__name__}, no tensor")
    return tuple(result.detach().contiguous() for result in results)


def _runs() -> set[Path]:
    """Where runs have put their files so far, a folder each."""
    return {path.resolve() for path in Path.cwd().glob("output/output_*")}


def _only(runs: set[Path]) -> Path:
    """The folder of the one run that there was: of several kernels, each is simulated alone, and no figure stands for all."""
    if len(runs) != 1:
        raise BuildError(f"the host function has to call its kernel once, and called {len(runs)}")
    [folder] = runs
    if not (folder / SWIM).is_file():
        raise BuildError("nothing was simulated: the kernel has to compute something")
    return folder


# --- what PyPTO prints ---------------------------------------------------------------------------------------------


def failure(said: str, error: Exception) -> BuildError:
    """A failed run for people: the exception says only which pass failed, the cause is printed."""
    causes = list(dict.fromkeys(match[0].strip() for match in _CAUSE.finditer(said)))
    text = "\n".join([*causes[:3], last_lines(error)])
    return OverCapacity(text) if _TOO_LARGE.search(text) else BuildError(text)


@contextmanager
def _printed() -> Iterator[Callable[[], str]]:
    """What is printed meanwhile, by C++ too; it goes on to where it was going."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)

        def said() -> str:
            sys.stdout.flush()
            sys.stderr.flush()
            return os.pread(file.fileno(), 16 << 20, 0).decode("utf-8", "replace")

        try:
            yield said
        finally:
            text = said()
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
            sys.stdout.write(text)
            sys.stdout.flush()


@contextmanager
def _quiet_plots() -> Iterator[None]:
    """A `python3` that does nothing stands first on the path."""
    before = os.environ.get("PATH", "")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        idle = Path(folder, "python3")
        idle.write_text("#!/bin/sh\nexit 0\n", encoding="ascii")
        idle.chmod(0o755)
        os.environ["PATH"] = os.pathsep.join([folder, before])
        try:
            yield
        finally:
            os.environ["PATH"] = before
