"""The PyPTO procedure from outside, on the real PyPTO: activation, proofs, stages, reports, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Command, completed

REAL = importlib.util.find_spec("pypto") is not None
pytestmark = [
    pytest.mark.pypto,
    pytest.mark.skipif(not REAL, reason="PyPTO is not installed: pip install 'opratchet[pypto]'"),
    pytest.mark.timeout(900),  # the first use on a machine builds PyPTO's calculator
]
SHIPPED = ROOT / "examples" / "custom"
SMALL = "p0_shapes: [{x: [64, 256]}]\nl0_shapes: [{x: [10, 256]}]\n"
PROOFS_OF_ANOTHER_VERSION = """\
| When | Tensors compared | all_close | impl_sha256 |
|------|------------------|-----------|-------------|
| then | y | true | 000000000000 |

layout check: exit 0
"""


def without_proofs(text: str) -> str:
    return text.partition("## Activation evidence")[0]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The shipped softmax with a small shape, in a folder of its own, and without its proofs."""
    folder = tmp_path_factory.mktemp("算子 库") / "custom" / "softmax"
    shutil.copytree(SHIPPED / "softmax", folder)
    shutil.copy(SHIPPED / "detailed_tensor_compare.py", folder.parent)
    spec = (folder / "SPEC.md").read_text(encoding="utf-8")
    lines = [line for line in spec.splitlines(True) if not line.startswith(("p0_", "l0_"))]
    lines.insert(4, SMALL)
    (folder / "SPEC.md").write_text("".join(lines), encoding="utf-8")
    memory = (folder / "MEMORY.md").read_text(encoding="utf-8")
    (folder / "MEMORY.md").write_text(without_proofs(memory), encoding="utf-8")
    return folder


def test_an_operator_without_proofs_is_handed_back_and_nothing_is_written(
    shipped: Path, tmp_path: Path, opratchet: Command
) -> None:
    folder = tmp_path / "softmax"
    shutil.copytree(shipped, folder)
    (folder / "MEMORY.md").write_text("# Plan\n", encoding="utf-8")
    before = sorted(path.name for path in folder.iterdir())

    done = opratchet("tune", folder, "--lang", "en")

    assert done.returncode == 3
    assert "control goes back to pypto-op-orchestrator" in done.stdout
    assert "all_close: true: nothing is on record" in done.stdout
    assert "layout check, exit 0: nothing is on record" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == before


def test_proofs_are_made_and_appended_and_the_run_goes_through_its_stages(shipped: Path) -> None:
    user = (shipped / "MEMORY.md").read_text(encoding="utf-8")
    proved = completed("check", "--prove", shipped, "--json")
    assert proved.returncode == 0, proved.stderr
    proof = json.loads(proved.stdout)
    assert (proof["all_close"], proof["layout_exit"]) == (True, 0)

    done = completed("tune", shipped, "--max-experiments", "8", "--json")

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["metric_kind"] == "simulated"
    assert answer["experiments"] == 8
    assert answer["final_us"] <= answer["baseline_us"]
    judged = [name for name in answer["outcomes"] if name in ("adopted", "no_gain", "regressed")]
    assert judged, "candidates got as far as being compared"
    memory = (shipped / "MEMORY.md").read_text(encoding="utf-8")
    assert memory.startswith(user), "what the user wrote stays as it is"
    for heading in ("Performance target sheet", "迭代记录", "已失败优化（禁止重试）", "阶段交接"):
        assert heading in memory
    assert "| FRONTEND |" in memory
    assert "simulated" in (shipped / "perf_opt" / "softmax_tuning_report.md").read_text("utf-8")
    audited = completed("audit", shipped / "perf_opt")
    assert audited.returncode == 0, audited.stdout


def test_an_implementation_that_computes_wrong_is_no_proof(
    shipped: Path, tmp_path: Path, opratchet: Command
) -> None:
    folder = tmp_path / "custom" / "softmax"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("perf_opt"))
    impl = (folder / "softmax_impl.py").read_text(encoding="utf-8")
    wrong = impl.replace("pypto.exp(part - top)", "pypto.exp(part - top) * 1.01")
    assert wrong != impl
    wrong = wrong.replace(
        "powers / pypto.sum(powers, -1, True)", "powers / pypto.sum(part, -1, True)"
    )
    (folder / "softmax_impl.py").write_text(wrong, encoding="utf-8")
    (folder / "MEMORY.md").write_text(PROOFS_OF_ANOTHER_VERSION, encoding="utf-8")

    stale = opratchet("tune", folder, "--lang", "en")
    done = opratchet("check", "--prove", folder)

    assert stale.returncode == 3
    assert "another version of the implementation" in stale.stdout
    assert done.returncode == 3
    assert "out of tolerance" in done.stdout
    assert "| false |" in (folder / "MEMORY.md").read_text(encoding="utf-8")


def test_a_kernel_that_is_called_twice_has_no_figure(
    shipped: Path, tmp_path: Path, opratchet: Command
) -> None:
    folder = tmp_path / "custom" / "softmax"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("perf_opt"))
    impl = (folder / "softmax_impl.py").read_text(encoding="utf-8")
    twice = impl.replace("    softmax_kernel(x, y)\n", "    softmax_kernel(x, y)\n" * 2)
    (folder / "softmax_impl.py").write_text(twice, encoding="utf-8")

    done = opratchet("measure", folder)

    assert done.returncode == 2
    assert "has to call its kernel once, and called 2" in done.stderr


def test_a_tile_that_does_not_fit_says_which_memory(
    shipped: Path, tmp_path: Path, opratchet: Command
) -> None:
    folder = tmp_path / "custom" / "softmax"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("perf_opt"))
    impl = (folder / "softmax_impl.py").read_text(encoding="utf-8")
    large = impl.replace("set_vec_tile_shapes(4, 1024)", "set_vec_tile_shapes(160, 256)")
    large = large.replace("[64, cols]", "[640, cols]").replace("* 64", "* 640")
    large = large.replace("+ 63) // 64", "+ 639) // 640").replace(".min(64)", ".min(640)")
    (folder / "softmax_impl.py").write_text(large, encoding="utf-8")
    spec = (folder / "SPEC.md").read_text(encoding="utf-8")
    (folder / "SPEC.md").write_text(spec.replace("[64, 256]", "[640, 256]"), encoding="utf-8")

    done = opratchet("measure", folder)

    assert done.returncode == 2
    assert "UB" in done.stderr
    assert "exceeds" in done.stderr
