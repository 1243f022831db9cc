"""What binds a kernel: the four bottlenecks of the seed, each with a score and the evidence for it.

The scores split a measured latency between its explanations.

- `memory`: the share of the latency that the traffic of the blocks takes at this machine's copy bandwidth.
- `compute_density`: what memory does not explain, weighted by how much stands in the way of computing at full
  width (reductions along the innermost axis, divisions, transcendental calls, scalar tile products); or the share
  of the multiply-add peak, where that is higher: then there is little left to win.
- `pipeline_depth`: the share of the latency in which copies and computation could overlap but do not. It is 0 on a
  target without asynchronous copies, and without a loop that copies.
- `block_size`: how badly the tile fits: local buffers beyond the first cache, memory fetched more than once, or so
  few elements in a block that starting it costs.

A score of 0.7 says "the evidence points there strongly", not "70 % can be won". The order matters, and the numbers
in the evidence. Everything here is arithmetic over the facts in `facts`, which the ledger keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opratchet.ledger.plural import counted
from opratchet.ledger.words import Bottleneck
from opratchet.profile.features import Features, Mark
from opratchet.profile.machine import Machine
from opratchet.profile.roofline import Roofline, Work

NAMES: dict[str, dict[str, str]] = {
    "memory": {"zh": "访存瓶颈", "en": "memory"},
    "compute_density": {"zh": "计算密度", "en": "compute density"},
    "pipeline_depth": {"zh": "流水线深度", "en": "pipeline depth"},
    "block_size": {"zh": "block 大小", "en": "block size"},
}

# Weight of the unexplained time with 0, 1, 2, ... kinds of obstacles in the source.
OBSTACLE_WEIGHTS = (0.5, 0.7, 0.85, 1.0)
# A refetched byte mostly comes from a cache, so it weighs half.
REFETCH_WEIGHT = 0.5
# With fewer vectors than this in its local buffers, starting a block costs about as much as its work.
FEW_VECTORS = 16


@dataclass(frozen=True)
class TargetFacts:
    """What a diagnosis has to know of the target.

    Attributes:
        name: Name of the target, for the evidence.
        asynchronous_copies: Whether copies can run beside computation, so that pipeline depth can matter.
        first_bytes: Bytes of the memory closest to the units (L1 data cache; UB on an NPU); 0 when unknown.
        second_bytes: Bytes of the next one (L2 cache); 0 when unknown.
        vector_bytes: Width of a vector register in bytes.
        matrix_unit: Whether a tile product runs on a unit of its own; without one it is scalar code.
    """

    name: str
    asynchronous_copies: bool = False
    first_bytes: int = 0
    second_bytes: int = 0
    vector_bytes: int = 32
    matrix_unit: bool = False


def cpu_facts(machine: Machine, name: str = "c") -> TargetFacts:
    """Target facts of a CPU: no asynchronous copies, its caches, its vector width."""
    width = 64 if "avx512f" in machine.vector_sets else 32 if "avx" in machine.vector_sets else 16
    return TargetFacts(name, False, machine.l1d, machine.l2, width)


def diagnose(
    features: Features, work: Work, roofline: Roofline, target: TargetFacts
) -> list[Bottleneck]:
    """The four bottlenecks of one workload, the strongest first.

    Args:
        features: What the source shows.
        work: What a call does; its `traffic` counts as its `bytes` when unknown.
        roofline: Where the measured latency stands.
        target: What the target can do.
    """
    memory = _memory(work, roofline)
    found = [
        memory,
        _compute_density(features, roofline, target, memory.score),
        _pipeline_depth(features, roofline, target),
        _block_size(features, work, target),
    ]
    return sorted(found, key=lambda bottleneck: -bottleneck.score)


def over_workloads(
    diagnoses: Mapping[str, Sequence[Bottleneck]], names: Iterable[str] = NAMES
) -> list[Bottleneck]:
    """One diagnosis for several workloads: mean scores, each with the evidence of the workload it is strongest in.

    Args:
        diagnoses: Bottlenecks by workload.
        names: Names of the bottlenecks that each holds.
    """
    return sorted(
        (_merge(name, diagnoses) for name in names), key=lambda bottleneck: -bottleneck.score
    )


def facts(
    features: Features, work: Work, roofline: Roofline, target: TargetFacts
) -> dict[str, Any]:
    """All numbers a diagnosis was computed from, as JSON for the ledger."""
    return {
        "features": features.record(),
        "work": asdict(work),
        "roofline": roofline.record(),
        "target": asdict(target),
    }


def headline(roofline: Roofline, bottlenecks: Sequence[Bottleneck], lang: str = "en") -> str:
    """One line: how much of each roof is reached, and what binds."""
    name = NAMES[bottlenecks[0].name][lang]
    if lang == "zh":
        compute, memory = roofline.compute_fraction, roofline.memory_fraction
        return f"达到乘加峰值的 {compute:.0%}、拷贝带宽的 {memory:.0%}：瓶颈为{name}"
    return f"{roofline}: bound by {name}"


def _merge(name: str, diagnoses: Mapping[str, Sequence[Bottleneck]]) -> Bottleneck:
    by_workload = {
        workload: next(b for b in bottlenecks if b.name == name)
        for workload, bottlenecks in diagnoses.items()
    }
    workload, strongest = max(by_workload.items(), key=lambda item: item[1].score)
    mean = math.fsum(b.score for b in by_workload.values()) / len(by_workload)
    return Bottleneck(name=name, score=mean, evidence=f"{workload}: {strongest.evidence}")


def _finding(name: str, score: float, evidence: str) -> Bottleneck:
    return Bottleneck(name=name, score=round(min(max(score, 0.0), 1.0), 4), evidence=evidence)


def _memory(work: Work, roofline: Roofline) -> Bottleneck:
    traffic = max(work.traffic, work.bytes)
    traffic_us = traffic / roofline.bandwidth_peak / 1e3
    peak = f"at the copy bandwidth of {roofline.bandwidth_peak:.3g} GB/s"
    if traffic_us < roofline.latency_us:
        share = f"take {traffic_us:.4g} us of {roofline.latency_us:.4g} us {peak}"
    else:
        share = f"would take {traffic_us:.4g} us {peak}, which explains all {roofline.latency_us:.4g} us"
    return _finding(
        "memory",
        traffic_us / roofline.latency_us,
        f"{_size(traffic)} of traffic ({_size(work.bytes)} at the least) {share}; "
        f"{roofline.memory_fraction:.0%} of it is reached; intensity {roofline.intensity:.3g} flop/byte, "
        f"ridge point {roofline.ridge:.3g}",
    )


def _compute_density(
    features: Features, roofline: Roofline, target: TargetFacts, memory_score: float
) -> Bottleneck:
    obstacles = _obstacles(features, target)
    weight = OBSTACLE_WEIGHTS[min(len(obstacles), len(OBSTACLE_WEIGHTS) - 1)]
    inefficiency = (1 - memory_score) * weight
    in_the_way = "; in the way: " + ", ".join(obstacles) if obstacles else ""
    return _finding(
        "compute_density",
        max(roofline.compute_fraction, inefficiency),
        f"{roofline.gflops:.3g} of {roofline.gflops_peak:.3g} GFLOP/s, "
        f"{roofline.compute_fraction:.0%} of the multiply-add peak; "
        f"{1 - memory_score:.0%} of the time is not explained by memory traffic{in_the_way}",
    )


def _obstacles(features: Features, target: TargetFacts) -> list[str]:
    """The kinds of obstacles in the source, each with its number and its first place."""
    kinds: dict[str, tuple[Mark, ...]] = {
        "reductions along the innermost axis": features.reductions,
        "transcendental calls in inner loops": features.transcendentals,
        "divisions in inner loops": features.divisions,
        "scalar tile products": () if target.matrix_unit else features.gemms,
    }
    return [f"{kind} ({len(marks)}): {marks[0]}" for kind, marks in kinds.items() if marks]


def _pipeline_depth(features: Features, roofline: Roofline, target: TargetFacts) -> Bottleneck:
    stages = max(features.stages, default=0)
    if not target.asynchronous_copies:
        why = f"target {target.name} has no asynchronous copies: num_stages = {stages} changes nothing"
        return _finding("pipeline_depth", 0.0, why)
    if not features.copies_in_loops:
        return _finding("pipeline_depth", 0.0, "no copy is repeated by a loop inside a block")
    hidden_us = min(roofline.memory_us, roofline.compute_us)
    return _finding(
        "pipeline_depth",
        hidden_us / roofline.latency_us / max(stages, 1),
        f"copies repeated by a loop: {features.copies_in_loops}, with num_stages = {stages}; "
        f"{hidden_us:.4g} us of {roofline.latency_us:.4g} us could overlap",
    )


def _block_size(features: Features, work: Work, target: TargetFacts) -> Bottleneck:
    reasons = [
        _overflow(features.local_bytes, target),
        _refetched(work),
        _tiny(features.local_bytes, target),
    ]
    score = max(reason for reason, _ in reasons)
    blocks = counted(features.blocks, "block") if features.blocks else "blocks of unknown number"
    return _finding(
        "block_size", score, "; ".join([blocks, *(text for _, text in reasons if text)])
    )


def _overflow(local: int, target: TargetFacts) -> tuple[float, str]:
    """0 while the local buffers fit the first memory, 1 when they fill the second."""
    first, second = target.first_bytes, target.second_bytes
    if not (local and first):
        return 0.0, f"local buffers of {_size(local)}" if local else ""
    text = f"local buffers of {_size(local)} against {_size(first)} of first-level memory"
    if local <= first:
        return 0.0, text
    if second <= first:
        return 1.0, text
    score = math.log(local / first) / math.log(second / first)
    return score, f"{text} and {_size(second)} of second-level memory"


def _refetched(work: Work) -> tuple[float, str]:
    """The share of the traffic that fetches what was fetched before."""
    if not work.bytes or work.traffic <= work.bytes:
        return 0.0, ""
    text = f"each byte is fetched {work.traffic / work.bytes:.3g} times"
    return REFETCH_WEIGHT * (1 - work.bytes / work.traffic), text


def _tiny(local: int, target: TargetFacts) -> tuple[float, str]:
    vectors = local / target.vector_bytes
    if not local or vectors >= FEW_VECTORS:
        return 0.0, ""
    text = f"only {vectors:.3g} vectors of {target.vector_bytes} bytes in the local buffers"
    return 1 - vectors / FEW_VECTORS, text


def _size(amount: float) -> str:
    """`32 KiB`, `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} GiB"
