"""What is noted of the machine while something is timed: from a made-up `/proc`, and from the real one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.lab.conditions import watch
from opratchet.ledger.remarks import remarks
from opratchet.ledger.words import Conditions

CPU = 1
STAT = """cpu  20 0 10 600 5 0 1 9 0 0
cpu0 10 0 5 300 5 0 1 0 0 0
cpu1 {user} 0 5 {idle} 0 0 0 {steal} 0 0
cpu10 7 7 7 7 7 7 7 7 7 7
intr 5 1 2
"""
CPUINFO = """processor\t: 0
model name\t: Test CPU
cpu MHz\t\t: 1111.000

processor\t: 1
model name\t: Test CPU
cpu MHz\t\t: {mhz}

"""
STATUS = """Name:\trunner
Cpus_allowed_list:\t{allowed}
voluntary_ctxt_switches:\t150
nonvoluntary_ctxt_switches:\t{preempted}
"""
SCHED = """runner (7, #threads: 1)
---
se.nr_migrations                             :       {moves}
nr_switches                                  :       12
"""
COUNTS = st.integers(0, 10**9)


class FakeSystem:
    """A folder with the files that Linux would have; each can be written anew or left out."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def ticks(self, user: int, idle: int, steal: int) -> None:
        self.write("proc/stat", STAT.format(user=user, idle=idle, steal=steal))

    def process(self, pid: int, preempted: int, allowed: str = "1", cpu: int = CPU) -> None:
        status = STATUS.format(allowed=allowed, preempted=preempted)
        self.write(f"proc/{pid}/status", status)
        fields = ["0"] * 35 + [str(cpu), "0", "0"]
        self.write(f"proc/{pid}/stat", f"{pid} (a) b (c) R {' '.join(fields)}\n")

    def migrations(self, pid: int, moves: int) -> None:
        self.write(f"proc/{pid}/sched", SCHED.format(moves=moves))


@pytest.fixture
def system(tmp_path: Path) -> FakeSystem:
    return FakeSystem(tmp_path)


def test_the_share_that_the_hypervisor_took_is_of_the_measuring_cpu(system: FakeSystem) -> None:
    system.ticks(user=100, idle=50, steal=10)
    with watch(CPU, [], system.root) as seen:
        system.ticks(user=180, idle=60, steal=20)
    assert seen.result.steal == pytest.approx(10 / 100)
    assert seen.result.cpu == CPU
    assert seen.result.cpus == os.cpu_count()


def test_frequency_comes_from_cpufreq_and_else_from_cpuinfo(system: FakeSystem) -> None:
    system.write("proc/cpuinfo", CPUINFO.format(mhz="3100.5"))
    with watch(CPU, [], system.root) as seen:
        system.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2400000\n")
    assert (seen.result.mhz_before, seen.result.mhz_after) == (3100.5, 2400.0)


def test_load_is_that_of_the_end_and_throttling_is_the_rise(system: FakeSystem) -> None:
    throttle = "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count"
    system.write(throttle, "41\n")
    system.write("proc/loadavg", "0.10 0.25 0.61 1/82 10111\n")
    with watch(CPU, [], system.root) as seen:
        system.write(throttle, "44\n")
        system.write("proc/loadavg", "3.20 0.25 0.61 1/82 10111\n")
    assert seen.result.load == 3.2
    assert seen.result.throttled == 3


def test_switches_and_migrations_are_summed_over_the_workers(system: FakeSystem) -> None:
    for pid in (7, 8):
        system.process(pid, preempted=10)
        system.migrations(pid, moves=4)
    with watch(CPU, [7, 8], system.root) as seen:
        system.process(7, preempted=13)
        system.process(8, preempted=11)
        system.migrations(8, moves=6)
    assert seen.result.preempted == 4
    assert seen.result.migrations == 2
    assert seen.result.pinned is True


def test_without_the_kernels_count_a_worker_on_another_cpu_was_moved(system: FakeSystem) -> None:
    for pid in (7, 8):
        system.process(pid, preempted=0, allowed="0-1", cpu=0)
    with watch(CPU, [7, 8], system.root) as seen:
        system.process(8, preempted=0, allowed="0-1", cpu=1)
    assert seen.result.migrations == 1
    assert seen.result.pinned is False


def test_a_worker_that_ended_leaves_the_sum_unknown(system: FakeSystem) -> None:
    system.process(7, preempted=1)
    system.process(8, preempted=1)
    with watch(CPU, [7, 8], system.root) as seen:
        for file in (system.root / "proc/8").iterdir():
            file.unlink()
    assert seen.result.preempted is None
    assert seen.result.migrations is None
    assert seen.result.pinned is None


def test_a_system_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    with watch(CPU, [7], tmp_path / "nowhere") as seen:
        pass
    told = seen.result.model_dump(exclude={"cpu", "cpus", "seconds"})
    assert set(told.values()) == {None}
    assert remarks(seen.result) == []


@given(text=st.one_of(st.text(max_size=60), st.sampled_from(["inf", "nan", "-1", "1e400", ""])))
def test_nonsense_in_the_files_is_no_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    system = FakeSystem(tmp_path_factory.mktemp("system"))
    cpu = "sys/devices/system/cpu/cpu1"
    names = ["proc/stat", "proc/cpuinfo", "proc/loadavg", f"{cpu}/cpufreq/scaling_cur_freq"]
    names += [f"proc/7/{name}" for name in ("status", "stat", "sched")]
    for name in [*names, f"{cpu}/thermal_throttle/core_throttle_count"]:
        path = system.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with watch(CPU, [7], system.root) as seen:
        pass
    assert isinstance(remarks(seen.result), list)


def test_it_is_noted_too_when_what_is_timed_fails(system: FakeSystem) -> None:
    system.write("proc/loadavg", "0.10 0.25 0.61 1/82 10111\n")
    with pytest.raises(RuntimeError), watch(CPU, [], system.root) as seen:
        raise RuntimeError
    assert seen.result.load == 0.1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.timing
def test_a_real_worker_that_is_pinned_and_disturbed() -> None:
    cpu = max(os.sched_getaffinity(0))
    code = (
        f"import os, time; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        with watch(cpu, [worker.pid for worker in workers]) as seen:
            time.sleep(0.5)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert seen.result.pinned is True
    assert seen.result.migrations == 0
    assert seen.result.seconds == pytest.approx(0.5, abs=0.4)
    assert seen.result.steal is not None and 0 <= seen.result.steal <= 1
    assert seen.result.load is not None
    assert seen.result.preempted is None or seen.result.preempted >= 0


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Conditions(), []),
        (
            Conditions(mhz_before=3100, mhz_after=2400),
            ["CPU frequency changed from 3100 to 2400 MHz"],
        ),
        (Conditions(mhz_before=3100, mhz_after=3000), []),
        (Conditions(mhz_before=800, mhz_after=3100), []),
        (Conditions(steal=0.05), ["5 % of the time was stolen by the hypervisor"]),
        (Conditions(steal=0.001), []),
        (Conditions(load=3.2, cpus=2), ["load 3.2 on 2 cores"]),
        (Conditions(load=2.0, cpus=1), ["load 2.0 on 1 core"]),
        (Conditions(load=3.2, cpus=64), []),
        (Conditions(load=3.2), []),
        (Conditions(throttled=1), ["the CPU was throttled once because of its temperature"]),
        (Conditions(throttled=0, preempted=0, migrations=0, pinned=True), []),
        (Conditions(preempted=300, seconds=2.0), ["preempted 300 times in 2.0 s"]),
        (Conditions(preempted=30, seconds=2.0), []),
        (Conditions(migrations=2), ["moved to another CPU 2 times"]),
        (Conditions(pinned=False), ["the workers were not bound to one CPU"]),
    ],
)
def test_what_is_remarkable(seen: Conditions, expected: list[str]) -> None:
    assert remarks(seen) == expected


@given(before=COUNTS, after=COUNTS)
def test_a_counter_that_fell_is_another_one(
    tmp_path_factory: pytest.TempPathFactory, before: int, after: int
) -> None:
    system = FakeSystem(tmp_path_factory.mktemp("system"))
    system.process(7, preempted=before)
    with watch(CPU, [7], system.root) as seen:
        system.process(7, preempted=after)
    assert seen.result.preempted == (after - before if after >= before else None)
