"""An operator in PyPTO's layout, as it is understood from its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.errors import BadInput
from opratchet.ledger.words import WorkloadKind
from opratchet.operator.discover import Overrides, load_operator
from opratchet.operator.model import Operator

SPEC = """\
---
schema_version: 1
op_name: add
supported_dtypes: [float32]
p0_shapes: [{x: [512, 1024], z: [512, 1024]}]
l0_shapes: [{x: [3, 1024], z: [3, 1024]}]
tolerance: {atol: 1.0e-3, rtol: 2.0e-3}
perf_target: 35 us
---
"""
GOLDEN = "def add_golden(x, z):\n    return x + z\n"
IMPL = """\
import pypto
import torch


@pypto.frontend.jit
def add_kernel(
    x: pypto.Tensor([512, 1024], pypto.DT_FP32),
    z: pypto.Tensor([512, 1024], pypto.DT_FP32),
    total: pypto.Tensor([512, 1024], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    total[:] = x + z


def add_wrapper(x, z):
    total = torch.empty_like(x)
    add_kernel(x, z, total)
    return total
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "custom" / "add"
    place.mkdir(parents=True)
    (place / "SPEC.md").write_text(SPEC)
    (place / "add_golden.py").write_text(GOLDEN)
    (place / "add_impl.py").write_text(IMPL)
    return place


def load(path: Path, overrides: Overrides | None = None) -> Operator:
    known = {"known_backends": ["pypto-sim", "python"], "known_flows": ["pypto", "tilelang"]}
    return load_operator(path, **known, overrides=overrides or Overrides())


@pytest.mark.parametrize("named", ["", "add_impl.py"])
def test_a_folder_or_its_implementation_is_an_operator(folder: Path, named: str) -> None:
    operator = load(folder / named if named else folder)

    assert (operator.name, operator.project) == ("add", "custom")
    assert (operator.kernel, operator.golden, operator.entry) == (
        "add_kernel",
        "add_golden",
        "add_wrapper",
    )
    assert (operator.backend, operator.flow) == ("pypto-sim", "pypto")
    assert operator.outputs == ("total",)
    assert operator.golden_parameters == ("x", "z")
    assert operator.text == IMPL
    assert [(w.id, w.kind, dict(w.tensors)) for w in operator.workloads] == [
        ("512x1024", WorkloadKind.TUNE, {"x": (512, 1024), "z": (512, 1024)}),
        ("3x1024", WorkloadKind.SMOKE, {"x": (3, 1024), "z": (3, 1024)}),
    ]
    assert (operator.tolerances["float32"].atol, operator.tolerances["float32"].rtol) == (
        1e-3,
        2e-3,
    )


def test_a_budget_of_a_device_is_shown_and_is_no_target_of_a_simulator(folder: Path) -> None:
    operator = load(folder)
    assert operator.target is None
    assert "35 us" in operator.provenance["target"]
    assert [("35 us" in remark, "device" in remark) for remark in operator.remarks] == [
        (True, True)
    ]


def test_a_simulated_budget_is_a_target(folder: Path) -> None:
    (folder / "SPEC.md").write_text(SPEC.replace("35 us", "simulated 35 us"))
    target = load(folder).target
    assert target is not None
    assert (target.metric, target.value) == ("latency_us", 35.0)


def test_the_command_line_decides_over_the_budget(folder: Path) -> None:
    target = load(folder, Overrides(target_speedup=1.5)).target
    assert target is not None
    assert (target.metric, target.value, target.source) == ("speedup", 1.5, "command line")


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("add_impl.py", None, "no `add_impl.py`"),
        ("add_golden.py", None, "no `add_golden.py`"),
        ("add_golden.py", "def other(x):\n    return x\n", "no function `add_golden`"),
        ("add_impl.py", "def add_wrapper(x, z):\n    return x\n", "exactly one function decorated"),
        ("add_impl.py", IMPL.replace("add_wrapper", "run"), "no function `add_wrapper`"),
        ("add_impl.py", IMPL.replace("add_wrapper(x, z)", "add_wrapper(z, x)"), "takes (z, x)"),
        (
            "add_impl.py",
            IMPL.replace("    total: pypto.Tensor([512, 1024], pypto.DT_FP32),\n", ""),
            "no output",
        ),
        ("add_impl.py", "def broken(:\n", "syntax error"),
        ("SPEC.md", "no front matter\n", "no front matter"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_place(
    folder: Path, file: str, text: str | None, told: str
) -> None:
    if text is None:
        (folder / file).rename(folder / f"x{file}")
    else:
        (folder / file).write_text(text)
    with pytest.raises(BadInput) as error:
        load(folder)
    assert told in str(error.value)
    assert str(folder) in str(error.value)


def test_an_unknown_backend_is_refused_here_too(folder: Path) -> None:
    with pytest.raises(BadInput, match="unknown backend"):
        load(folder, Overrides(backend="pypto-sin"))
