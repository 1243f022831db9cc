"""What a candidate may not touch: seen from what a cheat would like to change."""

from __future__ import annotations

from pathlib import Path

from opratchet.operator.frozen import frozen_names
from tests.operator.folder import MANIFEST, SOURCE, load, write


def frozen(folder: Path, text: str) -> frozenset[str]:
    return frozen_names(load(write(folder, text, manifest=MANIFEST)))


def test_golden_tests_and_their_imports_are_frozen_and_the_kernel_is_not(tmp_path: Path) -> None:
    names = frozen(tmp_path, SOURCE)
    assert names >= {"golden_norm", "run_case", "run_L0", "torch"}
    assert "norm" not in names


def test_what_the_golden_needs_is_frozen_even_if_the_kernel_uses_it_too(tmp_path: Path) -> None:
    assert "EPS" in frozen(tmp_path, SOURCE)


def test_what_only_the_kernel_uses_is_open(tmp_path: Path) -> None:
    text = "BLOCK = 4\n\ndef tile(n):\n    return n // BLOCK\n\n" + SOURCE
    names = frozen(tmp_path, text.replace("T.Kernel(M)", "T.Kernel(tile(M))"))
    assert not names & {"BLOCK", "tile", "T", "tilelang"}


def test_a_block_size_that_the_test_code_shares_is_open(tmp_path: Path) -> None:
    text = "BLOCK = 4\n" + SOURCE.replace("block_M=4", "block_M=BLOCK")
    text = text.replace("run_case(64, 128)", "run_case(64 * BLOCK, 128)")
    assert "BLOCK" not in frozen(tmp_path, text)


def test_what_nobody_uses_is_frozen(tmp_path: Path) -> None:
    text = "LIMIT = 3\nWORKLOADS = [(1, 2)]\n\ndef make_inputs():\n    return helper()\n\ndef helper(): ...\n\nclass C: ...\n"
    names = frozen(tmp_path, text + SOURCE)
    assert names >= {"LIMIT", "WORKLOADS", "make_inputs", "helper", "C"}


def test_helpers_of_the_golden_are_frozen_at_any_distance(tmp_path: Path) -> None:
    text = "def far(x):\n    return x\n\ndef near(x):\n    return far(x)\n\n" + SOURCE
    text = text.replace("return X /", "return near(X) /").replace("T.Kernel(M)", "T.Kernel(far(M))")
    assert frozen(tmp_path, text) >= {"near", "far"}


def test_test_code_that_the_kernel_calls_stays_frozen(tmp_path: Path) -> None:
    text = SOURCE.replace("T.Kernel(M)", "T.Kernel(run_case(M))")
    assert "run_case" in frozen(tmp_path, text)
