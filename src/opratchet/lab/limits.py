"""How much time, memory and disk a worker may take."""

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
        file_bytes: Size of any one file that a worker writes.
        folder_bytes: Size of all files together that a build leaves in its folder.
        scratch_bytes: Size of a sandbox's own /tmp, and of its /dev/shm.
        processes: Processes and threads that a worker may have beyond what its user has at the start.
    """

    build_seconds: float = 120.0
    call_seconds: float = 30.0
    golden_seconds: float = 120.0
    build_bytes: int = 8 << 30
    run_bytes: int = 6 << 30
    tensor_bytes: int = 1 << 30
    log_bytes: int = 64 << 10
    file_bytes: int = 512 << 20
    folder_bytes: int = 1 << 30
    scratch_bytes: int = 64 << 20
    processes: int = 512
