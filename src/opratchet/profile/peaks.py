"""What one core of this machine can do at best: the two roofs of the roofline.

`peaks.c` measures them: the bandwidth of a copy for working sets that fit each cache level and for one that fits
none, and the rate of float32 multiply-adds. That takes about a second, once for a machine: the result is cached in
the user's cache folder under the machine's fingerprint, and is measured again when the machine is another one or
the file cannot be believed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import tempfile
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opratchet.errors import EnvironmentMissing
from opratchet.profile.machine import Machine

SOURCE = Path(__file__).with_name("peaks.c")
COMPILERS = ("g++", "gcc", "cc", "clang")
# Multiply and add may become one instruction; nothing else may be reordered or left out.
FLAGS = ("-x", "c", "-O3", "-march=native", "-ffp-contract=fast")
SECONDS_ALLOWED = 60
FALLBACK_CACHES = (32 << 10, 512 << 10, 8 << 20)
SMALLEST_MEMORY_SET = 64 << 20
LARGEST_MEMORY_SET = 256 << 20


@dataclass(frozen=True)
class Peaks:
    """The roofs of one core.

    Attributes:
        fingerprint: Fingerprint of the machine they were measured on.
        flops: Multiply-add peak in float32, GFLOP/s (a multiply-add is two operations).
        copy: Pairs of working set in bytes (source and destination together) and copy bandwidth in GB/s
            (each byte read once and each byte written once counts), by rising working set; never empty.
    """

    fingerprint: str
    flops: float
    copy: tuple[tuple[int, float], ...]

    def bandwidth(self, working_set: float) -> float:
        """Copy bandwidth in GB/s for a working set in bytes.

        Straight lines between the measured points, on logarithmic axes; constant beyond the first and the last.
        """
        sizes = [size for size, _ in self.copy]
        place = bisect_right(sizes, working_set)
        if place in (0, len(sizes)):
            return self.copy[max(place - 1, 0)][1]
        (left, low), (right, high) = self.copy[place - 1 : place + 1]
        share = math.log(working_set / left) / math.log(right / left)
        return math.exp((1 - share) * math.log(low) + share * math.log(high))

    @property
    def best_bandwidth(self) -> float:
        """Highest copy bandwidth measured at any working set, GB/s."""
        return max(rate for _, rate in self.copy)

    def record(self) -> dict[str, Any]:
        """The peaks as JSON: what is cached, and what is written to the ledger."""
        return {
            "fingerprint": self.fingerprint,
            "flops": self.flops,
            "copy": [list(p) for p in self.copy],
        }


def read_peaks(machine: Machine) -> Peaks:
    """Peaks of this machine: from the cache, else measured now and kept.

    Raises:
        EnvironmentMissing: they are not cached, and there is no C compiler or its program does not run.
    """
    path = cache_path(machine)
    known = load(path, machine.fingerprint)
    if known is not None:
        return known
    peaks = measure(machine)
    save(peaks, path)
    return peaks


def cache_path(machine: Machine) -> Path:
    """Where the peaks of a machine are kept: `$XDG_CACHE_HOME` (or `~/.cache`)`/opratchet/`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "opratchet" / f"peaks-{machine.fingerprint}.json"


def load(path: Path, fingerprint: str) -> Peaks | None:
    """Peaks from a file; None when it is missing, damaged, or of another machine."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        peaks = _believable(content["fingerprint"], content)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return peaks if peaks.fingerprint == fingerprint else None


def save(peaks: Peaks, path: Path) -> None:
    """Write the peaks in one step, so that no reader ever sees half a file.

    A cache folder that cannot be written only costs the next run a second: it is no error.
    """
    half = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            half.write_text(json.dumps(peaks.record()), encoding="utf-8")
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)


def measure(machine: Machine) -> Peaks:
    """Measure the peaks of the core this process runs on, in about a second.

    Raises:
        EnvironmentMissing: there is no C compiler, or its program does not run.
    """
    compiler = _compiler()
    with tempfile.TemporaryDirectory(prefix="opratchet-peaks-") as folder:
        program = Path(folder) / "peaks"
        _run([compiler, *FLAGS, "-o", str(program), str(SOURCE)])
        answer = _run([str(program), *map(str, working_sets(machine))])
    try:
        return _believable(machine.fingerprint, json.loads(answer))
    except (ValueError, KeyError, TypeError) as error:
        raise EnvironmentMissing(
            f"the peak measurement gave no usable figures: {error}",
            where=SOURCE.name,
            fix="Run again; if it stays, report the output of `opratchet doctor`.",
        ) from None


def working_sets(machine: Machine) -> tuple[int, ...]:
    """Working sets to measure, in bytes: a quarter and a half of each cache, and one that fits none."""
    caches = machine.caches or FALLBACK_CACHES
    memory = min(max(2 * caches[-1], SMALLEST_MEMORY_SET), LARGEST_MEMORY_SET)
    inside = {size // part for size in caches for part in (4, 2)}
    return (*sorted(size for size in inside if size < memory), memory)


def _believable(fingerprint: str, content: dict[str, Any]) -> Peaks:
    """Peaks from the figures of the program or the cache; ValueError when they cannot be true."""
    flops = float(content["flops"])
    copy = tuple((int(size), float(rate)) for size, rate in content["copy"])
    figures = [flops, *(figure for point in copy for figure in point)]
    if not copy or not all(math.isfinite(figure) and figure > 0 for figure in figures):
        raise ValueError(f"not positive: {content}")
    if [size for size, _ in copy] != sorted({size for size, _ in copy}):
        raise ValueError(f"not in order: {content}")
    return Peaks(fingerprint, flops, copy)


def _compiler() -> str:
    for name in COMPILERS:
        path = shutil.which(name)
        if path:
            return path
    raise EnvironmentMissing(
        "there is no C compiler, and this machine's peaks were never measured",
        fix="Install one, e.g. `apt-get install g++`, then run again.",
    )


def _run(command: list[str]) -> str:
    """Output of a command; any failure of it is a missing piece of the environment."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_ALLOWED, check=True
        )
    except subprocess.CalledProcessError as error:
        detail = (error.stderr or "").strip() or f"exit status {error.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        detail = str(error)
    else:
        return done.stdout
    raise EnvironmentMissing(
        f"this machine's peaks could not be measured: {detail}",
        where=Path(command[0]).name,
        fix="Check that the C compiler works and that the temporary folder allows programs to run.",
    )
