"""Measuring and keeping the peaks of this machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opratchet.errors import EnvironmentMissing
from opratchet.profile.machine import Machine
from opratchet.profile.peaks import (
    Peaks,
    cache_path,
    load,
    measure,
    read_peaks,
    save,
    working_sets,
)

RATES = st.floats(0.01, 1e5)
TABLES = st.dictionaries(st.integers(1, 1 << 40), RATES, min_size=1, max_size=8)


def peaks_of(table: dict[int, float], flops: float = 100.0) -> Peaks:
    return Peaks("f" * 64, flops, tuple(sorted(table.items())))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


# Measuring


@pytest.mark.timing
def test_the_multiply_add_peak_is_that_of_a_vector_unit(peaks: Peaks, machine: Machine) -> None:
    if "avx2" not in machine.vector_sets or not machine.mhz:
        pytest.skip("the clock or the vector width of this machine is unknown")
    lanes = 16 if "avx512f" in machine.vector_sets else 8
    multiply_adds_a_cycle = peaks.flops / (2 * lanes * machine.mhz / 1000)
    # One or two units; the clock may be far above or, on a busy machine, below the nominal one.
    assert 0.6 < multiply_adds_a_cycle < 5


@pytest.mark.timing
def test_a_copy_in_the_first_cache_is_faster_than_one_in_memory(peaks: Peaks) -> None:
    assert peaks.copy[0][1] > 2 * peaks.copy[-1][1]
    assert peaks.best_bandwidth >= peaks.copy[0][1]


def test_every_cache_level_has_its_working_sets(machine: Machine) -> None:
    known = replace(machine, l1d=32 << 10, l2=512 << 10, l3=32 << 20)
    sets = working_sets(known)
    assert list(sets) == sorted(set(sets))
    for cache in known.caches:
        assert any(size <= cache / 2 and size >= cache / 4 for size in sets)
    assert sets[-1] > known.l3


@pytest.mark.parametrize("l3", [0, 1 << 30])
def test_working_sets_stay_within_what_any_machine_has(machine: Machine, l3: int) -> None:
    sets = working_sets(replace(machine, l1d=0, l2=0, l3=l3))
    assert list(sets) == sorted(set(sets))
    assert max(sets) <= 256 << 20


def test_without_a_compiler_it_says_what_to_install(
    home: Path, no_compiler: Path, machine: Machine
) -> None:
    with pytest.raises(EnvironmentMissing) as error:
        read_peaks(machine)
    assert "g++" in error.value.fix


def test_a_compiler_that_fails_is_quoted(no_compiler: Path, machine: Machine) -> None:
    compiler = no_compiler / "g++"
    compiler.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(EnvironmentMissing, match="no space left"):
        measure(machine)


def test_figures_that_make_no_sense_are_refused(no_compiler: Path, machine: Machine) -> None:
    """The "compiler" leaves a program that prints a negative rate."""
    compiler = no_compiler / "g++"
    compiler.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
        'printf \'#!/bin/sh\\necho "{\\\\"flops\\\\": -1, \\\\"copy\\\\": [[1, 1]]}"\\n\' > "$2"\n'
        '/bin/chmod +x "$2"\n'
    )
    compiler.chmod(0o755)
    with pytest.raises(EnvironmentMissing, match="no usable figures"):
        measure(machine)


# Keeping


def test_they_are_measured_once_and_again_when_the_file_is_damaged(
    home: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_peaks(machine)
    path = cache_path(machine)
    assert path.parent == home / "cache" / "opratchet"
    assert list(path.parent.iterdir()) == [path], "nothing but the finished file is left"

    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(home))
        assert read_peaks(machine) == first

    path.write_text(path.read_text()[:-5])
    again = read_peaks(machine)
    assert again.fingerprint == machine.fingerprint
    assert load(path, machine.fingerprint) == again


def test_peaks_of_another_machine_are_not_used(home: Path, machine: Machine) -> None:
    path = cache_path(machine)
    save(peaks_of({1: 1.0}), path)
    assert load(path, "f" * 64) is not None
    assert load(path, machine.fingerprint) is None


def test_a_cache_folder_that_cannot_be_written_is_no_error(
    home: Path, machine: Machine, peaks: Peaks
) -> None:
    (home / "cache").write_text("a file where the folder should be")
    path = cache_path(machine)
    save(peaks, path)
    assert load(path, machine.fingerprint) is None


@given(table=TABLES, flops=RATES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_saved_is_loaded(tmp_path: Path, table: dict[int, float], flops: float) -> None:
    peaks = peaks_of(table, flops)
    save(peaks, tmp_path / "peaks.json")
    assert load(tmp_path / "peaks.json", peaks.fingerprint) == peaks


@given(content=st.binary(max_size=100))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rubbish_is_not_believed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "peaks.json").write_bytes(content)
    assert load(tmp_path / "peaks.json", "f" * 64) is None


@pytest.mark.parametrize(
    "change",
    [
        {"flops": 0},
        {"flops": float("inf")},
        {"flops": "fast"},
        {"copy": []},
        {"copy": [[1, -1.0]]},
        {"copy": [[float("inf"), 1.0]]},
        {"copy": [[2, 1.0], [1, 1.0]]},
        {"copy": [[1]]},
        {"fingerprint": None},
    ],
)
def test_a_damaged_record_is_not_believed(tmp_path: Path, change: dict[str, object]) -> None:
    record = peaks_of({1: 1.0, 2: 1.0}).record()
    (tmp_path / "peaks.json").write_text(json.dumps({**record, **change}))
    assert load(tmp_path / "peaks.json", "f" * 64) is None


def test_the_default_place_is_in_the_home_folder(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = tmp_path / ".cache" / "opratchet" / f"peaks-{machine.fingerprint}.json"
    assert cache_path(machine) == expected


# Looking up


@given(table=TABLES)
def test_the_bandwidth_at_a_measured_size_is_the_measured_one(table: dict[int, float]) -> None:
    peaks = peaks_of(table)
    for size, rate in table.items():
        assert peaks.bandwidth(size) == pytest.approx(rate)


@given(table=TABLES, size=st.integers(0, 1 << 41))
def test_between_two_sizes_the_bandwidth_lies_between_theirs(
    table: dict[int, float], size: int
) -> None:
    peaks = peaks_of(table)
    below = [rate for known, rate in peaks.copy if known <= size][-1:]
    above = [rate for known, rate in peaks.copy if known >= size][:1]
    ends = below + above
    assert min(ends) * (1 - 1e-9) <= peaks.bandwidth(size) <= max(ends) * (1 + 1e-9)


def test_halfway_on_logarithmic_axes_is_the_geometric_mean() -> None:
    assert peaks_of({100: 40.0, 10_000: 10.0}).bandwidth(1000) == pytest.approx(20.0)
