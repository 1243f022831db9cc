"""Backend `tilelang-c`: real TileLang, its `c` target, code that g++ compiles and this machine's CPU runs.

The build goes through TileLang's own path (`@tilelang.jit` factory, lowering, code generation, g++), with two
additions that change no generated code: the kernel cache is off, because it may return an old binary after a
source change, and the one large header that all generated files include is precompiled once for each set of
flags, which takes a build from about two seconds to a quarter. GCC checks that a precompiled header fits the
flags and reads the header's text when it does not, so a mismatch costs time and never correctness.

The run worker needs neither TileLang nor torch: the shared object exports `{kernel}_kernel(float*, ...)`, which is
called through ctypes (`opratchet.backend.native`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from opratchet.backend.base import (
    Artifact,
    Backend,
    BuildError,
    BuildJob,
    Requirement,
    TensorSpec,
)
from opratchet.backend.modules import last_lines, load_module
from opratchet.edit.model import Target
from opratchet.errors import BadInput
from opratchet.ledger.words import Bottleneck, Latency, MetricKind
from opratchet.operator.model import Operator
from opratchet.profile.count import count_operations
from opratchet.profile.diagnosis import cpu_facts, diagnose, headline, over_workloads
from opratchet.profile.diagnosis import facts as workload_facts
from opratchet.profile.features import read_features
from opratchet.profile.machine import read_machine
from opratchet.profile.peaks import read_peaks
from opratchet.profile.roofline import position, work_of

HEADER = "tl_templates/cpp/common.h"


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
            Requirement("tilelang 0.1.15", _version("tilelang"), extra),
            Requirement("torch", _version("torch"), extra),
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
        )

    def toolchain(self) -> dict[str, str]:
        """TileLang, torch and g++ versions."""
        return {
            "tilelang": _version("tilelang"),
            "torch": _version("torch"),
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
            if not artifacts[workload.id].work:
                continue
            arguments = {**workload.shape, **workload.params, "dtype": workload.dtype}
            features = read_features(text, operator.kernel, arguments)
            work = work_of(artifacts[workload.id].work, operator.flops, workload.shape)
            roofline = position(work, latency[workload.id].us, peaks)
            found[workload.id] = diagnose(features, work, roofline, target)
            record = workload_facts(features, work, roofline, target)
            record["headline"] = headline(roofline, found[workload.id])
            facts["workloads"][workload.id] = record
        return (over_workloads(found) if found else []), facts

    def build(self, job: BuildJob) -> Artifact:
        """Lower and compile through TileLang itself."""
        import tilelang

        tilelang.disable_cache()
        tempfile.tempdir = job.folder
        factory = _factory(job)
        flags = _flag_list(factory)
        factory.compile_flags = [*flags, *_precompiled_header(flags, Path(job.cache))]
        try:
            kernel = factory(**job.arguments)
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


def _artifact(kernel: Any, flags: Sequence[str]) -> Artifact:
    adapter, prim_func = kernel.adapter, kernel.prim_func
    code = kernel.get_kernel_source()
    symbol = f"{prim_func.attrs['global_symbol']}_kernel"
    tensors = tuple(
        TensorSpec(
            str(buffer.name), tuple(int(extent) for extent in buffer.shape), str(buffer.dtype)
        )
        for buffer in (prim_func.buffer_map[param] for param in prim_func.params)
    )
    identity = hashlib.sha256("\0".join([code, *flags]).encode()).hexdigest()
    return Artifact(str(adapter.libpath), symbol, tensors, identity, _work(prim_func))


def _work(prim_func: Any) -> dict[str, int]:
    """Counted work of a call; empty where it cannot be counted, and then the diagnosis says so."""
    try:
        return {name: int(amount) for name, amount in count_operations(prim_func).items()}  # type: ignore[call-overload]
    except BadInput:
        return {}


def _flag_list(factory: Any) -> list[str]:
    flags = factory.compile_flags or []
    return flags.split() if isinstance(flags, str) else [f for item in flags for f in item.split()]


def _precompiled_header(flags: Sequence[str], cache: Path) -> list[str]:
    """Options that make g++ use the precompiled header for these flags; built on first use, once, under a lock."""
    templates = _templates()
    text = (templates / HEADER).read_bytes()
    key = hashlib.sha256(
        "\0".join([_compiler_version(), hashlib.sha256(text).hexdigest(), *flags]).encode()
    ).hexdigest()[:16]
    folder = cache / f"header-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    header = folder / "common.hpp"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "common.hpp.gch").exists():
            _compile_header(header, flags, templates)
    return [f"-include {header}"] if " " not in str(header) else []


def _compile_header(header: Path, flags: Sequence[str], templates: Path) -> None:
    header.write_text(f"#include <{HEADER}>\n")
    scratch = header.with_suffix(f".{os.getpid()}.tmp")
    command = [
        _compiler(),
        "-std=c++17",
        "-fPIC",
        *flags,
        f"-I{templates}",
        "-x",
        "c++-header",
        str(header),
        "-o",
        str(scratch),
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        scratch.replace(header.with_suffix(".hpp.gch"))


def _templates() -> Path:
    from tilelang.env import TILELANG_TEMPLATE_PATH

    return Path(TILELANG_TEMPLATE_PATH)


def _compiler() -> str:
    return os.environ.get("CXX") or "g++"


def _compiler_version() -> str:
    path = shutil.which(_compiler())
    if path is None:
        return ""
    reply = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True, check=False)
    return reply.stdout.strip()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _vector_bytes() -> int:
    try:
        flags = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return 16
    if "avx512f" in flags:
        return 64
    return 32 if "avx2" in flags else 16

