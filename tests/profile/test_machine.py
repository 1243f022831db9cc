"""Reading the identity of a machine from trees as different machines show them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opratchet.profile.machine import Machine, read_machine

XEON = """\
processor\t: 0
model name\t: Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz
cpu MHz\t\t: 2893.117
flags\t\t: fpu sse2 avx avx2 fma avx512f amx_tile hypervisor
bogomips\t: 4000.00

processor\t: 1
model name\t: something else
"""

NEOVERSE = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm sve
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def cache(cpu: int, index: int, level: int, kind: str, size: str) -> dict[str, str]:
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
    return {f"{folder}/level": f"{level}\n", f"{folder}/type": kind, f"{folder}/size": f"{size}\n"}


@pytest.fixture
def xeon(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        {
            "proc/cpuinfo": XEON,
            "proc/meminfo": "MemFree: 5 kB\nMemTotal:       16384 kB\n",
            "sys/devices/system/cpu/online": "0-3,6\n",
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "performance\n",
            **cache(2, 0, 1, "Data", "48K"),
            **cache(2, 1, 1, "Instruction", "32K"),
            **cache(2, 2, 2, "Unified", "2048K"),
            **cache(2, 3, 3, "Unified", "105M"),
        },
    )


def test_an_x86_machine_tells_everything(xeon: Path) -> None:
    machine = read_machine(xeon, affinity=[3, 2])
    assert machine.model == "Intel Xeon Platinum 8480+"
    assert (machine.l1d, machine.l2, machine.l3) == (48 << 10, 2 << 20, 105 << 20)
    assert machine.caches == (48 << 10, 2 << 20, 105 << 20)
    assert machine.vector_sets == ("sse2", "avx", "avx2", "fma", "avx512f", "amx_tile")
    assert machine.cores == 5
    assert machine.affinity == (2, 3)
    assert machine.governor == "performance"
    assert machine.virtual == "virtual machine"
    assert machine.memory == 16384 * 1024
    assert str(machine) == "1 core of Intel Xeon Platinum 8480+, 2.0 GHz"


def test_the_frequency_driver_wins_over_bogomips(xeon: Path) -> None:
    write(xeon, {"sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq": "3800000\n"})
    assert read_machine(xeon, affinity=[2]).mhz == 3800


def test_an_arm_machine_has_numbers_for_a_name_and_no_frequency(tmp_path: Path) -> None:
    machine = read_machine(write(tmp_path, {"proc/cpuinfo": NEOVERSE}), affinity=[0])
    assert machine.model == "Arm 0x41/0xd40"
    assert machine.vector_sets == ("asimd", "sve")
    assert machine.mhz == 0, "BogoMIPS says nothing about the clock of an Arm core"
    assert str(machine) == "1 core of Arm 0x41/0xd40"


def test_nothing_to_read_is_no_error(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert (machine.l1d, machine.l2, machine.l3, machine.memory, machine.mhz) == (0,) * 5
    assert machine.model
    assert machine.cores >= 1


@pytest.mark.parametrize(
    "mark", [{".dockerenv": ""}, {"proc/1/cgroup": "0::/kubepods/besteffort/pod1"}]
)
def test_a_container_is_recognised(tmp_path: Path, mark: dict[str, str]) -> None:
    assert read_machine(write(tmp_path, mark), affinity=[0]).virtual == "container"


def test_the_fingerprint_survives_what_does_not_change_the_speed_of_a_core(xeon: Path) -> None:
    machine = read_machine(xeon, affinity=[2])
    rebooted = replace(machine, kernel="9.9", cores=1, affinity=(0,), memory=1, mhz=machine.mhz + 3)
    assert rebooted.fingerprint == machine.fingerprint


@pytest.mark.parametrize(
    "change",
    [{"model": "other"}, {"l2": 1}, {"vector_sets": ()}, {"governor": "powersave"}, {"mhz": 900}],
)
def test_the_fingerprint_changes_with_the_core(xeon: Path, change: dict[str, object]) -> None:
    machine = read_machine(xeon, affinity=[2])
    assert replace(machine, **change).fingerprint != machine.fingerprint


def test_this_machine_reads_the_same_twice_and_is_json(machine: Machine) -> None:
    assert read_machine().fingerprint == machine.fingerprint
    assert json.loads(json.dumps(machine.record()))["fingerprint"] == machine.fingerprint


@given(content=st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_no_content_of_these_files_is_an_error(tmp_path: Path, content: bytes) -> None:
    folder = "sys/devices/system/cpu/cpu0"
    names = ["proc/cpuinfo", "proc/meminfo", "proc/1/cgroup", "sys/devices/system/cpu/online"]
    names += [f"{folder}/cache/index0/{name}" for name in ("level", "type", "size")]
    names += [f"{folder}/cpufreq/base_frequency"]
    write(tmp_path, dict.fromkeys(names, ""))
    for name in names:
        (tmp_path / name).write_bytes(content)
    machine = read_machine(tmp_path, affinity=[0])
    assert len(machine.fingerprint) == 64
