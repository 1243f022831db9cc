"""Which machine this is: the identity that every measured figure belongs to.

Linux tells it in `/proc` and `/sys`, a container or a virtual machine tells less. What is not told is unknown
(0 or an empty string), never an error. The `fingerprint` covers what decides how fast one core is, and leaves out
what changes from boot to boot; the peaks of the machine are cached by it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

# Instruction sets that decide the width and the number of multiply-adds a cycle.
VECTOR_SETS = ("sse2", "avx", "avx2", "fma", "avx512f", "amx_tile", "asimd", "sve", "sve2")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Machine:
    """One machine as this process sees it.

    Attributes:
        model: Name of the processor, e.g. `AMD EPYC`.
        architecture: Instruction set architecture, e.g. `x86_64`.
        vector_sets: Vector extensions, in the order of `VECTOR_SETS`.
        mhz: Nominal frequency of one core in MHz; 0 when unknown.
        l1d: Bytes of the level 1 data cache of one core; 0 when unknown.
        l2: Bytes of the level 2 cache; 0 when unknown.
        l3: Bytes of the level 3 cache; 0 when there is none or it is unknown.
        cores: Cores online.
        affinity: Numbers of the cores this process may run on.
        governor: Frequency governor, e.g. `performance`; empty when unknown.
        virtual: `virtual machine`, `container`, both with a comma, or empty.
        memory: Bytes of main memory; 0 when unknown.
        kernel: Release of the operating system kernel.
    """

    model: str
    architecture: str
    vector_sets: tuple[str, ...]
    mhz: int
    l1d: int
    l2: int
    l3: int
    cores: int
    affinity: tuple[int, ...]
    governor: str
    virtual: str
    memory: int
    kernel: str

    @property
    def fingerprint(self) -> str:
        """SHA-256 over what decides the speed of one core; the same after a reboot or a kernel update."""
        identity = (
            self.model,
            self.architecture,
            self.vector_sets,
            round(self.mhz, -2),  # the kernel calibrates the clock at each boot
            (self.l1d, self.l2, self.l3),
            self.governor,
            self.virtual,
        )
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()

    @property
    def caches(self) -> tuple[int, ...]:
        """Bytes of each known cache level, smallest first."""
        return tuple(sorted(size for size in (self.l1d, self.l2, self.l3) if size))

    def record(self) -> dict[str, object]:
        """The machine as it is written to the ledger, its fingerprint included."""
        return {**asdict(self), "fingerprint": self.fingerprint}

    def __str__(self) -> str:
        core = f"1 core of {self.model}"
        return f"{core}, {self.mhz / 1000:.1f} GHz" if self.mhz else core


def read_machine(root: Path = Path("/"), affinity: Collection[int] | None = None) -> Machine:
    """Read the identity of this machine.

    Args:
        root: Where `proc` and `sys` are found.
        affinity: Cores this process may use; asked of the operating system when not given.
    """
    usable = tuple(sorted(affinity if affinity is not None else _affinity()))
    cpuinfo = _cpuinfo(root)
    cpu = root / f"sys/devices/system/cpu/cpu{usable[0]}"
    caches = _caches(cpu / "cache")
    flags = _flags(cpuinfo)
    return Machine(
        model=_model(cpuinfo),
        architecture=platform.machine(),
        vector_sets=tuple(name for name in VECTOR_SETS if name in flags),
        mhz=_mhz(cpu / "cpufreq", cpuinfo),
        l1d=caches.get(1, 0),
        l2=caches.get(2, 0),
        l3=caches.get(3, 0),
        cores=_online(root) or os.cpu_count() or 1,
        affinity=usable,
        governor=_text(cpu / "cpufreq/scaling_governor"),
        virtual=_virtual(root, flags),
        memory=_memory(root),
        kernel=platform.release(),
    )


def _affinity() -> Collection[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return range(os.cpu_count() or 1)


def _text(path: Path) -> str:
    """Content of a small file, stripped; empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float:
    """First number in a text; 0 when there is none."""
    found = re.search(r"\d+(\.\d+)?", text)
    return float(found.group()) if found else 0.0


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor of `/proc/cpuinfo`, its keys in lower case."""
    pairs: dict[str, str] = {}
    for line in _text(root / "proc/cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip().lower(), value.strip())
    return pairs


def _flags(cpuinfo: dict[str, str]) -> frozenset[str]:
    return frozenset((cpuinfo.get("flags") or cpuinfo.get("features") or "").split())


def _model(cpuinfo: dict[str, str]) -> str:
    """Marketing name on x86; on Arm the numbers of implementer and part, which are all the kernel tells."""
    name = cpuinfo.get("model name") or cpuinfo.get("hardware") or cpuinfo.get("cpu model")
    if not name and "cpu part" in cpuinfo:
        name = f"Arm {cpuinfo.get('cpu implementer', '?')}/{cpuinfo['cpu part']}"
    name = re.sub(r"\((R|TM|r|tm)\)|\bCPU\b|@.*", " ", name or "")
    return " ".join(name.split()) or f"{platform.machine()} processor"


def _mhz(cpufreq: Path, cpuinfo: dict[str, str]) -> int:
    """Nominal frequency. Without cpufreq, BogoMIPS is twice the nominal clock on x86 and steadier than `cpu MHz`."""
    khz = _number(_text(cpufreq / "base_frequency")) or _number(_text(cpufreq / "cpuinfo_max_freq"))
    if khz:
        return round(khz / 1000)
    if "cpu mhz" in cpuinfo:
        return round(_number(cpuinfo.get("bogomips", "")) / 2 or _number(cpuinfo["cpu mhz"]))
    return 0


def _caches(folder: Path) -> dict[int, int]:
    """Bytes by level, of the caches that hold data."""
    sizes: dict[int, int] = {}
    for index in sorted(folder.glob("index*")):
        level = int(_number(_text(index / "level")))
        if level and _text(index / "type") != "Instruction":
            sizes[level] = _bytes(_text(index / "size"))
    return sizes


def _bytes(text: str) -> int:
    """`32K` is 32768; 0 for what is not a size."""
    found = re.fullmatch(r"(\d+)([KMG]?)B?", text)
    return int(found.group(1)) * UNITS[found.group(2)] if found else 0


def _online(root: Path) -> int:
    """Number of cores in a list such as `0-3,6`; 0 when it is not told."""
    spans = re.findall(r"(\d+)(?:-(\d+))?", _text(root / "sys/devices/system/cpu/online"))
    return sum(int(last or first) - int(first) + 1 for first, last in spans)


def _virtual(root: Path, flags: frozenset[str]) -> str:
    """What stands between this process and the hardware, as far as it shows."""
    hints = []
    if "hypervisor" in flags or _text(root / "sys/hypervisor/type"):
        hints.append("virtual machine")
    marks = (root / ".dockerenv", root / "run/.containerenv")
    cgroup = _text(root / "proc/1/cgroup")
    if any(mark.exists() for mark in marks) or re.search(r"docker|kubepods|lxc|containerd", cgroup):
        hints.append("container")
    return ", ".join(hints)


def _memory(root: Path) -> int:
    found = re.search(r"MemTotal:\s*(\d+) kB", _text(root / "proc/meminfo"))
    return int(found.group(1)) * 1024 if found else 0
