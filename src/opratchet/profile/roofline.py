"""Where a kernel stands between the two roofs of its machine.

The roofline model (S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52(4), 2009): a kernel that does `W` operations and moves `Q`
bytes can reach at most

    P = min(P_peak, B_peak * I)        with the intensity  I = W / Q  in operations a byte,

so it needs at least `max(Q / B_peak, W / P_peak)`. Below the ridge point `P_peak / B_peak` memory is the lower roof,
above it computation. Here `Q` is what has to move at least once, inputs and outputs, so the intensity is the best
one any version of the kernel can have; `B_peak` is the copy bandwidth for a working set of that size.

The model is also the last argument against a timing that is too good: nothing is faster than physics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from opratchet.errors import BadInput
from opratchet.profile.arithmetic import evaluate
from opratchet.profile.peaks import Peaks

# How far above the best copy bandwidth an honest kernel might get: it may load twice for each store (1.5 times
# the bytes of a copy in a cycle), and its clock may be higher than when the peaks were measured.
BANDWIDTH_MARGIN = 4.0
# How far above the multiply-add peak: the same clock, and units the peak does not use.
FLOPS_MARGIN = 2.0


@dataclass(frozen=True)
class Work:
    """What one call of a kernel does.

    Attributes:
        bytes: Bytes that must be moved at least once: inputs read and outputs written.
        flops: Floating-point operations.
        transcendentals: Calls of `exp`, `erf`, `tanh` and the like; each counts as one operation more, which
            is less than it costs, so that a limit stays a limit.
        traffic: Bytes the blocks ask main memory for, repeated accesses counted each time; 0 when unknown.
        declared: The operations are the author's figure for what a call has to do, not a count of what one
            version of the kernel happens to do.
    """

    bytes: int
    flops: int = 0
    transcendentals: int = 0
    traffic: int = 0
    declared: bool = False

    @property
    def operations(self) -> int:
        """Floating-point operations and transcendental calls together."""
        return self.flops + self.transcendentals


def work_of(
    operations: Mapping[str, int], declared: str = "", shape: Mapping[str, int] | None = None
) -> Work:
    """Work of a call from what was counted; a declared figure replaces the counted operations.

    Args:
        operations: As `count.count_operations` returns them.
        declared: The manifest's `flops`, e.g. `2 * M * N * K`; empty when there is none.
        shape: Values of the names in it.

    Raises:
        BadInput: the declared figure cannot be computed, or is below 0.
    """
    size, traffic = operations["bytes"], operations["traffic"]
    if not declared:
        return Work(size, operations["flops"], operations["transcendentals"], traffic)
    flops = evaluate(declared, shape or {}, where="flops")
    if flops < 0:
        raise BadInput(f"`{declared}` is {flops}", where="flops", fix="Operations are 0 or more.")
    return Work(size, round(flops), traffic=traffic, declared=True)


@dataclass(frozen=True)
class Roofline:
    """The position of one measured kernel. Fractions can pass 1 when the peaks were measured on a busy machine.

    Attributes:
        latency_us: Measured latency, microseconds.
        intensity: Operations a byte; 0 when no bytes move.
        ridge: Intensity at which the roofs meet, operations a byte.
        gflops: Achieved rate of operations, GFLOP/s.
        gflops_peak: Multiply-add peak, GFLOP/s.
        bandwidth: Achieved rate of the bytes that must move, GB/s.
        bandwidth_peak: Copy bandwidth for a working set of that size, GB/s.
        compute_us: Least time for the operations, microseconds.
        memory_us: Least time for the bytes, microseconds.
    """

    latency_us: float
    intensity: float
    ridge: float
    gflops: float
    gflops_peak: float
    bandwidth: float
    bandwidth_peak: float
    compute_us: float
    memory_us: float

    @property
    def compute_fraction(self) -> float:
        """Share of the multiply-add peak that is reached."""
        return self.compute_us / self.latency_us

    @property
    def memory_fraction(self) -> float:
        """Share of the copy bandwidth that is reached."""
        return self.memory_us / self.latency_us

    @property
    def bound_us(self) -> float:
        """The roof above this kernel as a time: no less than this is needed, microseconds."""
        return max(self.compute_us, self.memory_us)

    @property
    def roof(self) -> str:
        """The lower roof: `memory` below the ridge point, `compute` above it."""
        return "memory" if self.memory_us >= self.compute_us else "compute"

    def record(self) -> dict[str, Any]:
        """All figures as JSON, for the ledger."""
        return {
            **asdict(self),
            "compute_fraction": self.compute_fraction,
            "memory_fraction": self.memory_fraction,
            "bound_us": self.bound_us,
            "roof": self.roof,
        }

    def __str__(self) -> str:
        return (
            f"{self.compute_fraction:.0%} of multiply-add peak, "
            f"{self.memory_fraction:.0%} of copy bandwidth"
        )


def position(work: Work, latency_us: float, peaks: Peaks) -> Roofline:
    """Place a kernel under the roofs.

    Args:
        work: What a call does.
        latency_us: Measured latency of a call in microseconds, over 0.
        peaks: The roofs of the machine it was measured on.

    Raises:
        ValueError: the latency is not over 0.
    """
    if not latency_us > 0:
        raise ValueError(f"a latency is over 0, not {latency_us}")
    bandwidth_peak = peaks.bandwidth(work.bytes)
    return Roofline(
        latency_us=latency_us,
        intensity=work.operations / work.bytes if work.bytes else 0.0,
        ridge=peaks.flops / bandwidth_peak,
        gflops=work.operations / latency_us / 1e3,
        gflops_peak=peaks.flops,
        bandwidth=work.bytes / latency_us / 1e3,
        bandwidth_peak=bandwidth_peak,
        compute_us=work.operations / peaks.flops / 1e3,
        memory_us=work.bytes / bandwidth_peak / 1e3,
    )


@dataclass(frozen=True)
class Floor:
    """A latency below which a figure cannot be honest.

    Attributes:
        us: The limit in microseconds.
        arithmetic: How it was computed, for people.
    """

    us: float
    arithmetic: str


def physical_floor_us(work: Work, peaks: Peaks) -> Floor:
    """The time that no honest version of a kernel can beat.

    It has to be safe before it is tight: the bytes count at the best bandwidth of any cache, with a margin of
    `BANDWIDTH_MARGIN`; operations count only when the author declared them, for a counted figure may hold padding
    or work that a better version leaves out, with a margin of `FLOPS_MARGIN`.
    """
    memory = _limit(work.bytes, "B", peaks.best_bandwidth, "GB/s", BANDWIDTH_MARGIN)
    if not (work.declared and work.flops):
        return memory
    compute = _limit(work.flops, "FLOP", peaks.flops, "GFLOP/s", FLOPS_MARGIN)
    return max(memory, compute, key=lambda floor: floor.us)


def _limit(amount: int, unit: str, rate: float, rate_unit: str, margin: float) -> Floor:
    us = amount / (margin * rate) / 1e3
    return Floor(us, f"{amount} {unit} / ({margin:g} x {rate:.4g} {rate_unit}) = {us:.3g} us")
