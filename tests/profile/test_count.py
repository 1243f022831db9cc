"""Counting the work of real TileLang kernels, against closed forms."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from opratchet.errors import BadInput
from opratchet.profile.count import count_operations

tilelang = pytest.importorskip("tilelang")
pytestmark = pytest.mark.tilelang

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"counted_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(path: str, *shape: int, **arguments: int) -> dict[str, int]:
    source = EXAMPLES / f"{path}.py"
    factory: Any = getattr(load(source), source.stem)
    return dict(count_operations(factory.get_tir(*shape, **arguments)))


@pytest.fixture(scope="module")
def kernels() -> Any:
    return load(Path(__file__).with_name("profile_kernels.py"))


def test_gemm_does_2mnk_operations() -> None:
    m, n, k = 128, 512, 256
    counted = example("matmul/gemm/gemm", m, n, k)
    assert counted["flops"] == 2 * m * n * k
    assert counted["transcendentals"] == 0
    assert counted["bytes"] == 4 * (m * k + k * n + m * n)


def test_gemm_fetches_its_inputs_once_a_tile() -> None:
    m, n, k, block = 128, 512, 256, 32
    counted = example("matmul/gemm/gemm", m, n, k, block_M=block, block_N=block)
    fetched = m * k * (n // block) + k * n * (m // block)
    assert counted["traffic"] == 4 * (fetched + m * n)


def test_padding_of_the_last_tile_is_work_but_no_bytes() -> None:
    """100 x 75 x 50 in tiles of 64 x 64 x 32 is computed as 128 x 128 x 64."""
    counted = example("matmul/gemm/gemm", 100, 75, 50)
    assert counted["flops"] == 2 * 128 * 128 * 64
    assert counted["bytes"] == 4 * (100 * 50 + 50 * 75 + 100 * 75)


def test_rmsnorm() -> None:
    """Square, sum, divide, scale for each element; a division, an addition and a root for each row."""
    m, n = 512, 1024
    counted = example("norm/rmsnorm/rmsnorm", m, n)
    assert counted["flops"] == 4 * m * n + 3 * m
    assert counted["transcendentals"] == 0
    assert counted["bytes"] == 4 * (2 * m * n + n)
    assert counted["traffic"] == 4 * (2 * m * n + n * (m // 4)), "the weights, once a block"


def test_softmax() -> None:
    """Maximum, subtract, sum, divide for each element, and its exponential."""
    m, n = 512, 1024
    counted = example("activation/softmax/softmax", m, n)
    assert counted["flops"] == 4 * m * n
    assert counted["transcendentals"] == m * n
    assert counted["bytes"] == counted["traffic"] == 4 * 2 * m * n


def test_layernorm() -> None:
    """Sum; divide and subtract; square; sum; divide, scale and shift. Three operations a row for the deviation."""
    m, n = 128, 4096
    assert example("norm/layernorm/layernorm", m, n)["flops"] == 8 * m * n + 3 * m


def test_gelu() -> None:
    m, n = 64, 4096
    counted = example("activation/gelu/gelu", m, n)
    assert counted["flops"] == 4 * m * n
    assert counted["transcendentals"] == m * n


def test_attention_is_mostly_its_two_products() -> None:
    s, d, block = 256, 64, 32
    counted = example("attention/attention/attention", s, d)
    products = 2 * 2 * s * s * d
    scores = 4 * s * s  # scale, maximum, subtract, sum
    rescaling = (s // block) * (
        3 * s + s * d
    ) + s * d  # by step: correction, sum, tile; at the end: divide
    assert counted["flops"] == products + scores + rescaling
    assert counted["transcendentals"] == s * s + s * (s // block)


def test_a_loop_whose_length_depends_on_the_block_is_counted_exactly(kernels: Any) -> None:
    blocks, block, width = 5, 4, 8
    counted = count_operations(kernels.causal(blocks, block, width))
    tiles = blocks * (blocks + 1) // 2
    assert counted["flops"] == tiles * block * width
    assert counted["traffic"] == 4 * (tiles + blocks) * block * width
    assert counted["bytes"] == 4 * 2 * blocks * block * width


def test_a_gather_need_not_read_the_whole_table(kernels: Any) -> None:
    rows, table, width = 3, 1000, 16
    counted = count_operations(kernels.gather(rows, table, width))
    assert counted["bytes"] == 2 * 2 * rows * width + 4 * rows
    assert counted["flops"] == 0


def test_a_block_asks_for_each_byte_once(kernels: Any) -> None:
    rows, width, block = 32, 64, 8
    counted = count_operations(kernels.row_scale(rows, width, block))
    assert counted["bytes"] == 4 * (2 * rows * width + width)
    assert counted["traffic"] == 4 * (2 * rows * width + width * (rows // block))


def test_the_heavier_branch_counts(kernels: Any) -> None:
    counted = count_operations(kernels.branches(10))
    assert counted["flops"] == 10 * 2
    assert counted["transcendentals"] == 10


def test_an_unknown_operation_is_an_error_that_names_it(kernels: Any) -> None:
    with pytest.raises(BadInput, match="atomic") as error:
        count_operations(kernels.atomic(4))
    assert "flops" in error.value.fix


def test_a_shape_that_is_not_fixed_is_an_error_that_names_it() -> None:
    factory: Any = load(EXAMPLES / "activation/gelu/gelu.py").gelu
    rows = tilelang.language.dynamic("rows")
    with pytest.raises(BadInput, match="rows"):
        count_operations(factory.get_tir(rows, 128))
