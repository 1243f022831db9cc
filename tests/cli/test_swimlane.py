"""How the analysis of a swimlane is shown: for people, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opratchet.cli.swimlane import show
from opratchet.errors import BadInput
from opratchet.profile.swimlane import Cores, analyse
from tests.profile.swimlane.build import DATA, MODEL, copied


def shown(capsys: pytest.CaptureFixture[str], name: str, cores: Cores | None = None) -> list[str]:
    """The lines that a person sees, without repeated blanks."""
    show(DATA / name, False, cores=cores)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_people_see_time_rates_and_what_takes_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "device", Cores(2, 4))
    assert any(line.endswith("measured 50 cycles/us") for line in lines)
    assert any(line.startswith("time 25.00 us") for line in lines)
    assert any(line.startswith("path 14.00 us, 56% of the time") for line in lines)
    assert any(line.startswith("gap 73%") for line in lines)
    assert "core utilisation 57.2% 22.0%" in lines  # upstream's, then the honest one
    assert "bubble 17.5% 4.7%" in lines
    assert "load balance 61.5% 66.2%" in lines
    assert "0 AIC 3 2/2 8.67 26.00 full" in lines
    assert "1 AIV 2 2/4 3.50 7.00 not full" in lines
    assert "0-0-3 AIV_25 1 11.00 4.00" in lines
    assert "vec_nbuffer_setting func8_1 6 6.0 2 3.50" in lines


def test_unknown_cores_are_shown_as_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "device")
    assert "0 AIC 3 2/? 8.67 26.00 unknown" in lines
    assert any(line.startswith("note files of a device") for line in lines)


def test_the_simulator_is_called_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "matmul")
    assert lines[0].endswith("simulated 1800 cycles/us")
    assert "pipes Cube 1.8%, Vector 0.5%, MTE_IN 7.5%, MTE1 1.9%, MTE_OUT 1.5%" in lines


def test_a_log_alone_is_shown_without_what_it_does_not_tell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = copied(
        tmp_path, "softmax", "_simulate.swim.json", "merged_swimlane.json", "dyn_topo.txt"
    )
    show(folder, False)
    out = capsys.readouterr().out
    assert "subgraphs\n" not in out and "critical path:" not in out
    assert "only the log was read" in out


def test_json_is_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    show(DATA / "matmul", True)
    assert json.loads(capsys.readouterr().out) == analyse(DATA / "matmul" / MODEL).record()


def test_a_foreign_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no swimlane lies in this folder"):
        show(tmp_path, False)
