"""The four bottlenecks: what the scores say, and that the evidence shows its numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.ledger.words import Bottleneck
from opratchet.profile.diagnosis import (
    NAMES,
    TargetFacts,
    cpu_facts,
    diagnose,
    facts,
    headline,
    over_workloads,
)
from opratchet.profile.features import Features, Mark
from opratchet.profile.machine import Machine
from opratchet.profile.peaks import Peaks
from opratchet.profile.roofline import Work, position

PEAKS = Peaks("f", flops=100.0, copy=((1, 50.0),))
CPU = TargetFacts("c", first_bytes=32 << 10, second_bytes=512 << 10, vector_bytes=32)
NPU = replace(CPU, name="npu", asynchronous_copies=True, matrix_unit=True)
PLAIN = Features(16, {"x": 16 << 10}, (), 0, (), (), (), (), ())
MARK = (Mark(7, "T.something"),)
# 1 MB takes 20 us at 50 GB/s, 1 MFLOP takes 10 us at 100 GFLOP/s.
WORK = Work(bytes=10**6, flops=10**6)


def found(
    features: Features = PLAIN,
    work: Work = WORK,
    latency_us: float = 40.0,
    target: TargetFacts = CPU,
) -> dict[str, Bottleneck]:
    bottlenecks = diagnose(features, work, position(work, latency_us, PEAKS), target)
    return {bottleneck.name: bottleneck for bottleneck in bottlenecks}


def test_memory_is_the_share_of_the_time_that_the_traffic_explains() -> None:
    assert found(latency_us=40.0)["memory"].score == pytest.approx(0.5)
    assert found(latency_us=20.0)["memory"].score == pytest.approx(1.0)
    assert found(latency_us=5.0)["memory"].score == 1.0, "faster than a copy is still only 1"
    twice = replace(WORK, traffic=2 * WORK.bytes)
    assert found(work=twice, latency_us=80.0)["memory"].score == pytest.approx(0.5)


def test_the_evidence_never_names_a_part_that_is_larger_than_the_whole() -> None:
    part = r"([\d.]+) us of ([\d.]+) us"
    taken, whole = re.search(part, found(latency_us=40.0)["memory"].evidence).groups()  # type: ignore[union-attr]
    assert (taken, whole) == ("20", "40")
    for latency_us in (20.0, 19.9, 5.0):
        evidence = found(latency_us=latency_us)["memory"].evidence
        assert re.search(part, evidence) is None
        assert (
            f"would take 20 us at the copy bandwidth of 50 GB/s, which explains all {latency_us:g} us"
            in evidence
        )


def test_a_kernel_at_copy_bandwidth_is_bound_by_memory() -> None:
    assert next(iter(found(latency_us=20.0))) == "memory"


def test_a_kernel_at_the_multiply_add_peak_is_bound_by_computation() -> None:
    work = Work(bytes=1000, flops=10**7)
    here = found(work=work, latency_us=100.0)
    assert next(iter(here)) == "compute_density"
    assert here["compute_density"].score == pytest.approx(1.0)


def test_what_memory_does_not_explain_is_weighed_by_the_obstacles_in_the_source() -> None:
    slow = 2000.0
    scores = [
        found(features, latency_us=slow)["compute_density"].score
        for features in (
            PLAIN,
            replace(PLAIN, reductions=MARK),
            replace(PLAIN, reductions=MARK, divisions=MARK),
            replace(PLAIN, reductions=MARK, divisions=MARK, transcendentals=MARK),
        )
    ]
    assert scores == sorted(set(scores)), "each kind of obstacle counts"
    assert scores[-1] == pytest.approx(0.99), "1 % of the time is the traffic"


def test_the_evidence_names_the_obstacle_and_its_line() -> None:
    evidence = found(replace(PLAIN, reductions=MARK))["compute_density"].evidence
    assert "T.something (line 7)" in evidence


def test_a_tile_product_is_an_obstacle_only_where_it_is_scalar() -> None:
    product = replace(PLAIN, gemms=MARK)
    assert "scalar" in found(product, target=CPU)["compute_density"].evidence
    assert "scalar" not in found(product, target=NPU)["compute_density"].evidence


def test_pipeline_depth_is_no_bottleneck_without_asynchronous_copies() -> None:
    staged = replace(PLAIN, stages=(2,), copies_in_loops=2)
    on_cpu = found(staged, target=CPU)["pipeline_depth"]
    assert on_cpu.score == 0
    assert "no asynchronous copies" in on_cpu.evidence and "2" in on_cpu.evidence


def test_pipeline_depth_is_what_could_overlap_by_the_stages_there_are() -> None:
    flat = replace(PLAIN, stages=(1,), copies_in_loops=2)
    deep = replace(PLAIN, stages=(2,), copies_in_loops=2)
    assert found(flat, target=NPU)["pipeline_depth"].score == pytest.approx(10 / 40)
    assert found(deep, target=NPU)["pipeline_depth"].score == pytest.approx(5 / 40)
    assert found(PLAIN, target=NPU)["pipeline_depth"].score == 0, "nothing is copied in a loop"


@pytest.mark.parametrize(
    ("kib", "score"), [(16, 0.0), (32, 0.0), (128, 0.5), (512, 1.0), (4096, 1.0)]
)
def test_local_buffers_beyond_the_first_cache(kib: int, score: float) -> None:
    """128 KiB lies halfway, in powers of two, between 32 and 512."""
    features = replace(PLAIN, buffers={"x": kib << 10})
    assert found(features)["block_size"].score == pytest.approx(score)


def test_memory_that_is_fetched_again_counts_half() -> None:
    work = replace(WORK, traffic=4 * WORK.bytes)
    block = found(work=work, latency_us=1000)["block_size"]
    assert block.score == pytest.approx(0.5 * 3 / 4)
    assert "4 times" in block.evidence


def test_a_block_of_a_few_vectors_is_too_small() -> None:
    block = found(replace(PLAIN, buffers={"x": 4 * 32}))["block_size"]
    assert block.score == pytest.approx(0.75)
    assert "4 vectors" in block.evidence


def test_unknown_sizes_prove_nothing() -> None:
    unknown = replace(PLAIN, blocks=0, buffers={"x": 0})
    assert found(unknown)["block_size"].score == 0
    assert found(PLAIN, target=replace(CPU, first_bytes=0, second_bytes=0))["block_size"].score == 0


@given(
    work=st.builds(
        Work,
        bytes=st.integers(0, 10**10),
        flops=st.integers(0, 10**12),
        transcendentals=st.integers(0, 10**9),
        traffic=st.integers(0, 10**11),
    ),
    latency=st.floats(0.1, 1e7),
    local=st.integers(0, 1 << 24),
    target=st.sampled_from([CPU, NPU, TargetFacts("bare")]),
)
def test_always_the_four_of_the_seed_in_order_with_numbers(
    work: Work, latency: float, local: int, target: TargetFacts
) -> None:
    features = replace(PLAIN, buffers={"x": local}, copies_in_loops=1, reductions=MARK)
    bottlenecks = diagnose(features, work, position(work, latency, PEAKS), target)
    assert {b.name for b in bottlenecks} == set(NAMES)
    assert len(bottlenecks) == 4
    scores = [b.score for b in bottlenecks]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(re.search(r"\d", b.evidence) for b in bottlenecks)


def test_the_names_are_those_of_the_seed() -> None:
    assert [NAMES[name]["zh"] for name in NAMES] == [
        "访存瓶颈",
        "计算密度",
        "流水线深度",
        "block 大小",
    ]


def test_several_workloads_are_averaged_and_the_strongest_speaks() -> None:
    slow = diagnose(PLAIN, WORK, position(WORK, 100.0, PEAKS), CPU)
    fast = diagnose(PLAIN, WORK, position(WORK, 25.0, PEAKS), CPU)
    together = {b.name: b for b in over_workloads({"slow": slow, "fast": fast})}
    assert together["memory"].score == pytest.approx((0.2 + 0.8) / 2)
    assert together["memory"].evidence.startswith("fast: ")
    assert next(iter(together)) == max(together.values(), key=lambda b: b.score).name


def test_the_headline_tells_both_roofs_and_what_binds() -> None:
    here = position(WORK, 40.0, PEAKS)
    bottlenecks = diagnose(replace(PLAIN, divisions=MARK), WORK, here, CPU)
    assert headline(here, bottlenecks) == (
        "25% of multiply-add peak, 50% of copy bandwidth: bound by memory"
    )
    assert headline(here, bottlenecks, "zh").endswith("瓶颈为访存瓶颈")


def test_the_facts_are_json_and_hold_the_numbers() -> None:
    record = facts(PLAIN, WORK, position(WORK, 40.0, PEAKS), CPU)
    assert json.loads(json.dumps(record)) == record
    assert record["work"]["flops"] == 10**6
    assert record["roofline"]["ridge"] == pytest.approx(2.0)


def test_a_cpu_is_described_by_its_machine(machine: Machine) -> None:
    wide = replace(machine, vector_sets=("avx", "avx512f"), l1d=48 << 10, l2=2 << 20)
    assert cpu_facts(wide) == TargetFacts("c", False, 48 << 10, 2 << 20, 64)
