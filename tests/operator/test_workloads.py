"""Workloads without a manifest: `WORKLOADS`, or the calls that `run_L0` makes; found by reading only."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.errors import OpratchetError
from opratchet.ledger.words import WorkloadKind
from opratchet.operator.model import Operator
from tests.operator.folder import SOURCE, line_of, load, refused, write
from tests.operator.test_discover import EXAMPLES

CALL = "    run_case(64, 128)\n"


def shapes(operator: Operator) -> list[tuple[int, ...]]:
    return [tuple(workload.shape.values()) for workload in operator.workloads]


def with_l0(folder: Path, body: str, before: str = "") -> Path:
    """The source with another body of `run_L0`, and further lines before it."""
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    text = SOURCE.replace(CALL, indented).replace("def run_L0", f"{before}\n\ndef run_L0")
    return write(folder, text)


FOLLOWED = {
    "calls": ("run_case(1, 2)\nrun_case(M=3, N=4)", [(1, 2), (3, 4)]),
    "arithmetic": ("run_case(4 * 16, 2 * (10 - 3) // 2)", [(64, 7)]),
    "loop": ("for M, N in [(1, 2), (3, 4)]:\n    run_case(M, N)", [(1, 2), (3, 4)]),
    "nested loops": ("for M in (1, 2):\n  for N in (3, M):\n    run_case(M, N)", [(1, 3), (1, 1), (2, 3), (2, 2)]),
    "nested unpacking": ("for M, (N, _) in [(1, (2, 9))]:\n    run_case(M, N)", [(1, 2)]),
    "star": ("for shape in ((1, 2), (3, 4)):\n    run_case(*shape)", [(1, 2), (3, 4)]),
    "range": ("for i in range(1, 3):\n    run_case(i, 8 * i)", [(1, 8), (2, 16)]),
    "zip": ("for M, N in zip([1, 2], [3, 4]):\n    run_case(M, N)", [(1, 3), (2, 4)]),
    "zip kept": ("pairs = zip([1, 2], [3, 4])\nfor p in pairs: print(p)\nfor M, N in pairs: run_case(M, N)", [(1, 3), (2, 4)]),
    "local list": ("sizes = [(1, 2)]\nfor M, N in sizes:\n    run_case(M, N)", [(1, 2)]),
    "module list": ("for M, N in SIZES:\n    run_case(M, N)", [(5, 6), (7, 8)]),
    "updated name": ("M = 2\nM = M * 3\nrun_case(M, 1)", [(6, 1)]),
    "comprehension": ("assert all([run_case(m, n) for m, n in SIZES if m > 5])", [(7, 8)]),
    "with and try": ("with torch.no_grad():\n  try:\n    run_case(1, 2)\n  except ValueError:\n    pass\n  finally:\n    run_case(3, 4)", [(1, 2), (3, 4)]),
    "readable condition": ("if SIZES[0][0] == 5:\n    run_case(1, 2)\nelse:\n    run_case(3, 4)", [(1, 2)]),
    "helper": ("helper(9)\nhelper(n=3)", [(9, 1), (9, 2), (2, 1), (2, 3)]),
    "after return": ("run_case(1, 2)\nreturn\nrun_case(3, 4)", [(1, 2)]),
    "unrelated loops": ("for x in open('f'):\n    print(x)\nrun_case(1, 2)", [(1, 2)]),
    "same call twice": ("run_case(1, 2)\nrun_case(1, 2)", [(1, 2)]),
}  # fmt: skip
BEFORE = (
    "SIZES = [(5, 6), (7, 8)]\n\ndef helper(m=2, n=2):\n    run_case(m, 1)\n    run_case(m, n)\n"
)


@pytest.mark.parametrize("case", FOLLOWED)
def test_run_l0_is_followed(tmp_path: Path, case: str) -> None:
    body, expected = FOLLOWED[case]
    operator = load(with_l0(tmp_path, body, BEFORE))
    assert shapes(operator) == expected
    assert all(workload.kind is WorkloadKind.TUNE for workload in operator.workloads)


NOT_FOLLOWED = {
    "computed": "run_case(sizes(), 4)  # here",
    "file": "for line in open('shapes'):  # here\n    run_case(int(line), 4)",
    "while": "n = 1\nwhile n < 9:  # here\n    run_case(n, 4)\n    n += 1",
    "condition": "if torch.cuda.is_available():  # here\n    run_case(1, 2)",
    "left early": "for n in (1, 2):\n    run_case(n, n)\n    if n: break  # here",
    "forgotten name": "n = 1\nn += 1\nrun_case(n, 4)  # here",
    "changed list": "sizes = [1]\nsizes.append(2)\nfor n in sizes:  # here\n    run_case(n, n)",
    "loop over a number": "for n in 5:  # here\n    run_case(n, n)",
    "wrong unpacking": "for m, n in [(1, 2, 3)]:  # here\n    run_case(m, n)",
    "too few": "run_case(1)  # here",
    "too many": "run_case(1, 2, 'float32', 0, 5)  # here",
    "unknown keyword": "run_case(1, 2, size=3)  # here",
    "lambda": "each = lambda m: run_case(m, m)  # here",
    "endless": "for i in range(10**18):  # here\n    run_case(i, i)",
    "endless filter": "x = [run_case(i, j) for i in range(9999) for j in range(9999) if i < 0]  # here",
    "long": "for i in range(10000):  # here\n    run_case(1, 2)",
    "huge number": "n = 9223372036854775807\nrun_case(n * n, 1)  # here",
    "recursion": "again()",
    "division by zero": "run_case(1 // 0, 4)  # here",
}


@pytest.mark.parametrize("case", NOT_FOLLOWED)
def test_what_cannot_be_followed_asks_for_a_manifest(tmp_path: Path, case: str) -> None:
    before = (
        "def again():  # here\n    run_case(1, 2)\n    again()\n" if case == "recursion" else ""
    )
    root = with_l0(tmp_path, NOT_FOLLOWED[case], before)
    message = refused(lambda: load(root))
    text = (root / "norm.py").read_text()
    where = int(message.split("norm.py:")[1].split(":")[0])
    assert where in {line_of(text, "# here"), line_of(text, "# here") + 1}
    assert "[[workloads]]" in message


@pytest.mark.parametrize("depth", [500, 900, 950, 1000, 3000])
def test_deep_nesting_is_followed_or_told(tmp_path: Path, depth: int) -> None:
    root = with_l0(tmp_path, "x = run_case(1, 2)" + " + 1" * depth)
    try:
        assert shapes(load(root)) == [(1, 2)]
    except OpratchetError as error:
        assert "norm.py" in str(error)


def test_an_argument_that_the_kernel_does_not_take_need_not_be_readable(tmp_path: Path) -> None:
    text = SOURCE.replace("seed: int = 0", "seed: int = now(), device=None").replace(
        CALL, "    device = torch.device('cpu')\n    run_case(2, 4, device=device)\n"
    )
    operator = load(write(tmp_path, text))
    assert shapes(operator) == [(2, 4)]
    assert "not used: seed, device" in operator.provenance["workloads.2x4"].replace(
        "device, seed", "seed, device"
    )


def test_a_constant_that_is_changed_later_is_not_trusted(tmp_path: Path) -> None:
    body = "for n in SIZES:\n    run_case(n, n)"
    for change in ("SIZES.append(3)", "SIZES += [3]", "SIZES[0] = 3", "SIZES = [3]"):
        root = with_l0(tmp_path, body, f"SIZES = [1, 2]\n{change}\n")
        assert "`SIZES`" in refused(lambda root=root: load(root))


def test_arguments_are_told_apart_by_name(tmp_path: Path) -> None:
    text = SOURCE.replace(
        "def run_case(M: int, N: int,", "def run_case(M: int, N: int, eps=1e-3,"
    ).replace(CALL, "    run_case(2, 4, dtype=torch.float16, seed=7)\n")
    [workload] = load(write(tmp_path, text)).workloads
    assert workload.shape == {"M": 2, "N": 4}
    assert workload.dtype == "float16"
    assert workload.params == {"eps": 1e-3}
    operator = load(write(tmp_path, text))
    line = line_of(text, "run_case(2, 4")
    assert operator.provenance["workloads.2x4"] == f"norm.py:{line} (not used: seed)"


def test_ids_say_only_what_is_needed(tmp_path: Path) -> None:
    def ids(body: str) -> list[str]:
        return [workload.id for workload in load(with_l0(tmp_path, body)).workloads]

    assert ids("run_case(1, 2)\nrun_case(3, 4)") == ["1x2", "3x4"]
    both = "run_case(1, 2, 'float32')\nrun_case(1, 2, 'float16')"
    assert ids(both) == ["1x2-float32", "1x2-float16"]


@pytest.mark.parametrize("size", ["0", "-3"])
def test_a_size_that_is_not_positive_is_refused(tmp_path: Path, size: str) -> None:
    root = with_l0(tmp_path, f"run_case({size}, 4)")
    message = refused(lambda: load(root))
    line = line_of((root / "norm.py").read_text(), f"run_case({size}")
    assert f"norm.py:{line}: `M`" in message
    assert "above zero" in message


def test_the_dtype_of_the_factory_is_the_default(tmp_path: Path) -> None:
    text = SOURCE.replace('block_M=4, dtype="float32"', 'block_M=4, dtype="half"')
    manifest = '[[workloads]]\nid = "a"\nshape = { M = 1, N = 2 }\n'
    assert load(write(tmp_path, text, manifest=manifest)).workloads[0].dtype == "float16"


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("[(1, 2), (3, 4)]", [(1, 2), (3, 4)]),
        ("((1, 2, 'float16'),)", [(1, 2)]),
        ("[{'M': 1, 'N': 2}]", [(1, 2)]),
        ("[{'id': 'a', 'shape': {'M': 1, 'N': 2}, 'kind': 'tune'}]", [(1, 2)]),
        ("[dict_of_shapes]", [(5, 6)]),
    ],
)
def test_a_literal_list_of_workloads_comes_first(
    tmp_path: Path, listed: str, expected: list[tuple[int, ...]]
) -> None:
    text = f"dict_of_shapes = {{'M': 5, 'N': 6}}\nWORKLOADS = {listed}\n" + SOURCE
    operator = load(write(tmp_path, text))
    assert shapes(operator) == expected
    assert operator.provenance[f"workloads.{operator.workloads[0].id}"].startswith("norm.py:2")


def test_listed_workloads_can_have_a_kind_and_a_reason(tmp_path: Path) -> None:
    listed = (
        "WORKLOADS = [\n  {'M': 1, 'N': 2},\n  {'id': 'odd', 'M': 3, 'N': 5, 'kind': 'smoke'},\n"
        "  {'M': 7, 'N': 9, 'kind': 'skipped', 'reason': 'too big'},\n]\n"
    )
    operator = load(write(tmp_path, listed + SOURCE))
    assert [workload.kind.value for workload in operator.workloads] == ["tune", "smoke", "skipped"]
    assert operator.workloads[1].id == "odd"
    bad = listed.replace(", 'reason': 'too big'", "")
    message = refused(lambda: load(write(tmp_path, bad + SOURCE)))
    assert "norm.py:4" in message
    assert "reason" in message


def test_listed_workloads_can_have_weights(tmp_path: Path) -> None:
    listed = (
        "WORKLOADS = [\n  {'M': 1, 'N': 2, 'weight': 3},\n  {'M': 3, 'N': 5},\n"
        "  {'id': 'c', 'shape': {'M': 7, 'N': 9}, 'weight': 0.5},\n]\n"
    )
    operator = load(write(tmp_path, listed + SOURCE))
    assert [workload.weight for workload in operator.workloads] == [3.0, 1.0, 0.5]
    assert [workload.record().weight for workload in operator.workloads] == [3.0, 1.0, 0.5]
    message = refused(lambda: load(write(tmp_path, listed.replace("3}", "0}", 1) + SOURCE)))
    assert "norm.py:2: `weight`" in message


def test_a_parameter_of_the_kernel_is_not_taken_for_a_weight(tmp_path: Path) -> None:
    text = SOURCE.replace("eps=EPS, block_M", "eps=EPS, weight=1.0, block_M")
    listed = "WORKLOADS = [{'M': 1, 'N': 2, 'weight': 3.0}]\n"
    [workload] = load(write(tmp_path, listed + text)).workloads
    assert workload.params == {"weight": 3.0}
    assert workload.weight == 1.0


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("[{'id': 'a', 'shape': {'M': 1, 'N': 2}}, {'id': 'a', 'shape': {'M': 3, 'N': 4}}]", "'a'"),
        ("[(1, 2, 3, 4, 5)]", "does not take 5"),
        ("[(1,)]", "no value for N"),
        ("[{'shape': {'M': 1}, 'knd': 1}]", "`kind`"),
        ("[(sizes(), 4)]", "sizes()"),
    ],
)
def test_listed_workloads_that_do_not_fit_are_refused(
    tmp_path: Path, listed: str, words: str
) -> None:
    message = refused(lambda: load(write(tmp_path, f"WORKLOADS = {listed}\n" + SOURCE)))
    assert "norm.py:1" in message
    assert words in message


def test_no_workloads_at_all_says_how_to_add_them(tmp_path: Path) -> None:
    message = refused(lambda: load(write(tmp_path, SOURCE.replace(CALL, "    pass\n"))))
    assert "norm.py" in message
    assert "[[workloads]]" in message


@pytest.mark.parametrize("manifest", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_state_their_level_0_without_manifest(tmp_path: Path, manifest: Path) -> None:
    """What is read from `run_L0` are workloads of the manifest: the same shapes, dtype and ids."""
    full = {workload.id: workload.shape for workload in load(manifest.parent).workloads}
    name = manifest.parent.name
    (tmp_path / name).mkdir()
    shutil.copy(manifest.parent / f"{name}.py", tmp_path / name)
    found = load(tmp_path / name).workloads
    assert len(found) == 2
    assert all(full[workload.id] == workload.shape for workload in found)
    assert {workload.dtype for workload in found} == {"float32"}


PIECES = [
    "run_case(", "M", "(1, 2)", "for M, N in ", ":\n    ", "[", "]", ")", "\n", "def run_L0():\n    ", "*", "lambda: ",
    "1 << 99", "while True:\n    ", "return", "'float16'", "{**a}", "x = ", "if ", "x[0:1]", "f'{x}'", "yield ", "await ",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_run_l0_gives_an_operator_or_a_told_error(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "any"
    text = SOURCE.replace(CALL, "    " + "".join(pieces) + "\n" + CALL)
    try:
        operator = load(write(root, text))
    except OpratchetError as error:
        assert "norm.py" in str(error)
        return
    assert operator.workloads
