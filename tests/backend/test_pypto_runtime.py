"""What is read of PyPTO without PyPTO: the figure of a simulation, and the cause of a failed pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opratchet.backend.base import BuildError, OverCapacity
from opratchet.backend.pypto_runtime import failure, simulated_us
from opratchet.errors import BadInput


def swim(folder: Path, *cores: tuple[str, int, int]) -> Path:
    path = folder / "swim.json"
    tasks = [
        {
            "blockIdx": i,
            "coreType": kind,
            "tasks": [
                {"execStart": start, "execEnd": end, "seqNo": 0, "subGraphId": 0, "taskId": i}
            ],
        }
        for i, (kind, start, end) in enumerate(cores)
    ]
    path.write_text(json.dumps(tasks))
    return path


def test_a_figure_spans_the_tasks_on_cores_and_not_the_launch(tmp_path: Path) -> None:
    path = swim(tmp_path, ("HUB", 0, 900), ("AIV", 1800, 3600), ("AIC", 2700, 5400))
    assert simulated_us(path) == 2.0


@pytest.mark.parametrize("text", ["", "{", "[]x", '[{"blockIdx": 0}]', '{"us": 1}'])
def test_what_is_no_simulation_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "swim.json"
    path.write_text(text)
    with pytest.raises(BadInput):
        simulated_us(path)


@pytest.mark.parametrize(
    ("printed", "kind", "told"),
    [
        (
            "OP ROWMAX_SINGLE[10014] in/output total size [197632] exceeds MEM_UB size [196608]!",
            OverCapacity,
            "OP ROWMAX_SINGLE[10014] in/output total size [197632] exceeds MEM_UB size [196608]!",
        ),
        (
            "Alloc tensor [54] size [262144] exceeds MEM_L0C size [131072]!",
            OverCapacity,
            "Alloc tensor [54] size [262144] exceeds MEM_L0C size [131072]!",
        ),
        (
            "FwkOp tile shape's last dim is not aligned. Last dim bytes: 12, BLOCK_SIZE: 32",
            BuildError,
            "Last dim bytes: 12, BLOCK_SIZE: 32",
        ),
        ("nothing of use", BuildError, "Run pass failed"),
    ],
)
def test_the_cause_of_a_failed_pass_is_told(
    printed: str, kind: type[BuildError], told: str
) -> None:
    said = f"[INFO] starting\n[ERROR] FE(1):2026 [file.cpp:12]: {printed}\n[INFO] done\n"
    found = failure(said, RuntimeError("Run pass failed"))
    assert type(found) is kind
    assert told in str(found)
    assert "Run pass failed" in str(found)
