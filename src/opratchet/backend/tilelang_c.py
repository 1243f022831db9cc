"""Backend `tilelang-c`: real TileLang, its `c` target, code that g++ compiles and this machine's CPU runs.

The build goes through TileLang's own path (`@tilelang.jit` factory, lowering, code generation, g++), with two
additions that change no generated code: the kernel cache is off, because it may return an old binary after a
source change; and the half-precision library, most of what g++ has to read, is left out of kernels that do not use
it, which takes a build from two seconds to less than half of one.

The run worker needs neither TileLang nor torch: the shared object exports `call(float*, ...)`, which is called through
ctypes (`opratchet.backend.native`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
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
    package_version,
)
from opratchet.backend.modules import last_lines, load_module
from opratchet.edit.knobs.tables import gcc_flag_groups
from opratchet.edit.model import Target
from opratchet.errors import BadInput
from opratchet.ledger.words import Bottleneck, Latency, MetricKind
from opratchet.operator.model import Operator, Workload
from opratchet.profile.count import count_operations
from opratchet.profile.diagnosis import cpu_facts, diagnose, headline, over_workloads
from opratchet.profile.diagnosis import facts as workload_facts
from opratchet.profile.features import read_features
from opratchet.profile.machine import read_machine
from opratchet.profile.peaks import read_peaks
from opratchet.profile.roofline import Floor, Work, physical_floor_us, position, work_of

WITHOUT_HALF = Path(__file__).with_name("without_half.hpp")
# The host entry takes the tensors in the order of the signature; the kernel behind it may order them anew.
ENTRY = "call"


class TileLangC(Backend):
    """TileLang on the CPU, one core, a real clock."""

    name = "tilelang-c"
    metric_kind = MetricKind.MEASURED
    preload = ("torch", "tilelang", "tilelang.language")
    summary = "TileLang's `c` target: real kernels, compiled by g++, timed on this CPU (one core)"

    def requirements(self) -> list[Requirement]:
        """g++, TileLang and torch."""
        extra = 'pip install "opratchet[tilelang]"'
        return [
            Requirement("g++", shutil.which(_compiler()) or "", "apt-get install g++"),
            Requirement("tilelang", package_version("tilelang"), extra),
            Requirement("torch", package_version("torch"), extra),
        ]

    def target(self) -> Target:
        """The CPU as a target: no asynchronous copies, local buffers live on the stack."""
        return Target(
            backend=self.name,
            dialect="tilelang",
            vector_bytes=_vector_bytes(),
            local_bytes=4 << 20,
            pipelining=False,
            multi_buffering=False,
            compile_flags=gcc_flag_groups(_vector_bytes()),
        )

    def toolchain(self) -> dict[str, str]:
        """TileLang, torch and g++ versions."""
        return {
            "tilelang": package_version("tilelang"),
            "torch": package_version("torch"),
            "g++": _compiler_version(),
            "python": sys.version.split()[0],
        }

    def diagnose(
        self,
        operator: Operator,
        text: str,
        artifacts: Mapping[str, Artifact],
        latency: Mapping[str, Latency],
    ) -> tuple[list[Bottleneck], dict[str, Any]]:
        """Roofline of each workload on this machine's own peaks, and what the source shows."""
        machine = read_machine()
        peaks, target = read_peaks(machine), cpu_facts(machine)
        found: dict[str, list[Bottleneck]] = {}
        facts: dict[str, Any] = {"peaks": peaks.record(), "workloads": {}}
        for workload in operator.tuned:
            arguments = {**workload.shape, **workload.params, "dtype": workload.dtype}
            features = read_features(text, operator.kernel, arguments)
            work = _work_of(operator, workload, artifacts[workload.id])
            roofline = position(work, latency[workload.id].us, peaks)
            found[workload.id] = diagnose(features, work, roofline, target)
            record = workload_facts(features, work, roofline, target)
            record["headline"] = headline(roofline, found[workload.id])
            facts["workloads"][workload.id] = record
        return over_workloads(found), facts

    def floor(self, operator: Operator, workload: Workload, artifact: Artifact) -> Floor:
        """Bytes at the best cache bandwidth, declared operations at the multiply-add peak, with wide margins."""
        work = _work_of(operator, workload, artifact)
        return physical_floor_us(work, read_peaks(read_machine()))

    def build(self, job: BuildJob) -> Artifact:
        """Lower and compile through TileLang itself."""
        import tilelang

        tilelang.disable_cache()
        tempfile.tempdir = job.folder
        factory = _factory(job)
        tilelang.disable_cache()  # the source may have turned it on again
        flags = _flag_list(factory)
        try:
            kernel = _compile(factory, flags, job.arguments)
        except MemoryError:
            raise
        except Exception as error:
            raise BuildError(last_lines(error)) from error
        return _artifact(kernel, flags)


def _factory(job: BuildJob) -> Any:
    module = load_module(Path(job.source))
    try:
        factory = getattr(module, job.kernel)
    except AttributeError:
        raise BuildError(f"the source defines no `{job.kernel}`") from None
    if not hasattr(factory, "compile_flags"):
        raise BuildError(f"`{job.kernel}` is not decorated with @tilelang.jit")
    return factory


def _compile(factory: Any, flags: Sequence[str], arguments: Mapping[str, Any]) -> Any:
    """Compile without the half-precision library where that goes, else with it."""
    if " " not in str(WITHOUT_HALF):  # TileLang splits flags at blanks
        factory.compile_flags = [*flags, f"-include {WITHOUT_HALF}"]
        try:
            return factory(**arguments)
        except Exception as error:
            if "half" not in str(error):
                raise
    factory.compile_flags = list(flags)
    return factory(**arguments)


def _artifact(kernel: Any, flags: Sequence[str]) -> Artifact:
    adapter, prim_func = kernel.adapter, kernel.prim_func
    code = kernel.get_kernel_source()
    tensors = tuple(
        TensorSpec(
            str(buffer.name), tuple(int(extent) for extent in buffer.shape), str(buffer.dtype)
        )
        for buffer in (prim_func.buffer_map[param] for param in prim_func.params)
    )
    identity = hashlib.sha256("\0".join([code, *flags]).encode()).hexdigest()
    return Artifact(str(adapter.libpath), ENTRY, tensors, identity, _work(prim_func))


def _work(prim_func: Any) -> dict[str, int]:
    """Counted work of a call; empty where it cannot be counted."""
    try:
        operations = count_operations(prim_func)
    except BadInput:
        return {}
    return {name: int(amount) for name, amount in operations.items()}  # type: ignore[call-overload]


def _work_of(operator: Operator, workload: Workload, artifact: Artifact) -> Work:
    """Work of a workload; where the kernel could not be counted, its tensors and what the manifest declares."""
    tensors = sum(spec.size * np.dtype(spec.dtype).itemsize for spec in artifact.tensors)
    counted = artifact.work or {"bytes": tensors, "flops": 0, "transcendentals": 0, "traffic": 0}
    return work_of(counted, operator.flops, workload.shape)


def _flag_list(factory: Any) -> list[str]:
    flags = factory.compile_flags or []
    return flags.split() if isinstance(flags, str) else [f for item in flags for f in item.split()]


def _compiler() -> str:
    return os.environ.get("CXX") or "g++"


def _compiler_version() -> str:
    path = shutil.which(_compiler())
    if path is None:
        return ""
    reply = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True, check=False)
    return reply.stdout.strip()


def _vector_bytes() -> int:
    try:
        flags = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return 16
    if "avx512f" in flags:
        return 64
    return 32 if "avx2" in flags else 16
