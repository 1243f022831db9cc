"""How much time and memory a worker may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one run.

    Attributes:
        build_seconds: Wall time for building all workloads of one candidate.
        call_seconds: Wall time for one call of a kernel, and for one timed batch.
        golden_seconds: Wall time for one golden.
        build_bytes: Memory a build worker may take beyond its start.
        run_bytes: Memory a run worker may take beyond its start, tensors included.
        tensor_bytes: All tensors of one workload together; the supervisor holds several copies of them.
        log_bytes: How much of a worker's output is kept.
    """

    build_seconds: float = 120.0
    call_seconds: float = 30.0
    golden_seconds: float = 120.0
    build_bytes: int = 8 << 30
    run_bytes: int = 6 << 30
    tensor_bytes: int = 1 << 30
    log_bytes: int = 64 << 10
