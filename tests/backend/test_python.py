"""The backend `python` from outside: `check`, `measure`, `compare` and `tune` on a small operator, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from opratchet.backend.base import BuildError
from opratchet.backend.python import signature_of
from opratchet.backend.python_runtime import ResultRefused, deliver
from tests.cli.conftest import Command, opratchet

__all__ = ["opratchet"]

SOURCE = '''"""Row sums and row maxima, scaled."""

import numpy as np

WORKLOADS = [{"M": 64, "N": 256, "alpha": 2.0}, {"M": 5, "N": 33, "kind": "smoke"}]


def golden_rows(X, alpha=1.0):
    return alpha * X.sum(axis=1, dtype=np.float64), X.max(axis=1)


def rows(M, N, alpha=1.0, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"S": ((M,), dtype), "B": ((M,), dtype)}:
        BODY
        return np.float32(alpha) * X.sum(axis=1), X.max(axis=1)

    return main
'''
MANIFEST = '[operator]\nbackend = "python"\nkernel = "rows"\n'


def made(folder: Path, body: str = "pass", name: str = "rows.py") -> Path:
    """The operator with something in the kernel's first line."""
    path = folder / "rows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SOURCE.replace("BODY", body), encoding="utf-8")
    (path.parent / "opratchet.toml").write_text(MANIFEST, encoding="utf-8")
    return path


def test_check_shows_it_without_running_it(opratchet: Command, tmp_path: Path) -> None:
    path = made(tmp_path)
    path.write_text(path.read_text() + "\nraise SystemExit(9)\n")
    done = opratchet("check", path.parent, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["backend"] == "python"


def test_measure_gives_a_latency_and_the_accuracy_of_each_output(
    opratchet: Command, tmp_path: Path
) -> None:
    done = opratchet("measure", made(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["metric_kind"] == "measured"
    assert {record["output"] for record in found["accuracy"]} == {"S", "B"}
    assert all(record["passed"] for record in found["accuracy"])
    assert found["latency"]["64x256"]["us"] > 0


@pytest.mark.timing
def test_compare_tells_the_slower_one(opratchet: Command, tmp_path: Path) -> None:
    fast = made(tmp_path)
    slow = made(tmp_path, "for _ in range(200): X.sum(axis=1)", "slow.py")
    done = opratchet("compare", fast, slow, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "slower"


def test_compare_of_what_differs_in_a_comment_only_is_a_tie(
    opratchet: Command, tmp_path: Path
) -> None:
    done = opratchet("compare", made(tmp_path), made(tmp_path, "pass  # same", "b.py"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reason"] == "the generated code is the same"


def test_tune_ends_as_there_is_nothing_to_try(opratchet: Command, tmp_path: Path) -> None:
    done = opratchet("tune", made(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stop_reason"] == "nothing_left"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return X", "gave 1 results"),
        ("return X.sum(axis=1).tolist(), X.max(axis=1)", "a list, which is no plain NumPy array"),
        ("return X.sum(axis=1).astype('f2'), X.max(axis=1)", "float16"),
        ("return X.sum(axis=1), X[:, 0].copy()[:1]", "declares float32"),
        ("return X.sum(axis=1), X[:, 0]", "contiguous"),
        ("return X.reshape(-1)[:M], X.max(axis=1)", "the memory of its input"),
        ("raise KeyError('no such row')", "no such row"),
        ("X[0, 0] = 1", "read-only"),
        ("return X.sum(axis=1) * 0, X.max(axis=1)", "out of tolerance"),
    ],
)
def test_what_is_no_result_is_refused_with_the_reason(
    opratchet: Command, tmp_path: Path, body: str, said: str
) -> None:
    done = opratchet("compare", made(tmp_path), made(tmp_path, body, "b.py"))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


IN_PLACE = """    def main(X: ((M, N), dtype), S, B) -> {"S": ((M,), dtype), "B": ((M,), dtype)}:
        np.sum(X, axis=1, out=S)
        S *= np.float32(alpha)
        np.max(X, axis=1, out=B)
"""


def in_place(folder: Path, more: str = "", name: str = "rows.py") -> Path:
    """The operator with a kernel that writes into the outputs that it is given."""
    path = made(folder, name=name)
    head, _, _rest = path.read_text().partition("    def main(")
    path.write_text(f"{head}{IN_PLACE}{more}\n    return main\n", encoding="utf-8")
    return path


def test_outputs_may_be_written_in_place(opratchet: Command, tmp_path: Path) -> None:
    done = opratchet("measure", in_place(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert all(record["passed"] for record in json.loads(done.stdout)["accuracy"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("        return S\n", "a result besides the outputs"),
        ("        B[1:] = X[:1, 0]\n", "out of tolerance"),
    ],
)
def test_what_is_wrong_in_place_is_refused(
    opratchet: Command, tmp_path: Path, more: str, said: str
) -> None:
    done = opratchet("compare", in_place(tmp_path), in_place(tmp_path, more, "b.py"))
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    return main\n", "    return 1 / 0\n", "ZeroDivisionError"),
        ("    return main\n", "    return 7\n", "annotations say shape and dtype"),
        ("X: ((M, N), dtype)", "X", "annotations say shape and dtype"),
        (' -> {"S": ((M,), dtype), "B": ((M,), dtype)}', "", "annotations say shape and dtype"),
        ("X: ((M, N), dtype)", 'X: ((M, N), "float99")', "the annotation of `X`"),
        ("import numpy as np", "import no_such_module", "no_such_module"),
    ],
)
def test_what_does_not_build_says_why(
    opratchet: Command, tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = made(tmp_path)
    path.write_text(path.read_text().replace(old, new))
    done = opratchet("measure", path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_signature_keeps_its_order_and_names_dtypes_as_numpy_does() -> None:
    def kernel(a, b):  # type: ignore[no-untyped-def]
        return None

    kernel.__annotations__ = {
        "a": ((2, 3), "f4"),
        "b": ((3,), np.int64),
        "return": {"Y": ((2,), float)},
    }
    inputs, outputs = signature_of(kernel)
    assert [(s.name, s.shape, s.dtype) for s in (*inputs, *outputs)] == [
        ("a", (2, 3), "float32"),
        ("b", (3,), "int64"),
        ("Y", (2,), "float64"),
    ]
    kernel.__annotations__ = {"a": ((2,), "f4"), "return": {"Y": ((2,), "f4")}}
    with pytest.raises(BuildError):
        signature_of(kernel)


def test_a_kernel_may_take_its_outputs_and_then_takes_all_of_them() -> None:
    def kernel(x, s, b):  # type: ignore[no-untyped-def]
        return None

    specs = {"s": ((2,), "f4"), "b": ((2,), "f4")}
    kernel.__annotations__ = {"x": ((2, 3), "f4"), "return": specs}
    inputs, outputs = signature_of(kernel)
    assert [spec.name for spec in (*inputs, *outputs)] == ["x", "s", "b"]
    kernel.__annotations__ = {"x": ((2, 3), "f4"), "return": {**specs, "c": ((2,), "f4")}}
    with pytest.raises(BuildError, match="takes all of them"):
        signature_of(kernel)


def test_a_result_is_copied_and_a_wrong_one_is_not() -> None:
    given, output = np.ones(4), np.zeros(4)
    deliver(np.full(4, 2.0), [given], [output])
    assert (output == 2).all()
    with pytest.raises(ResultRefused):
        deliver(np.ma.masked_array(np.ones(4)), [given], [output])
    assert (output == 2).all()
