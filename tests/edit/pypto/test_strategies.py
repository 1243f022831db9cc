"""PyPTO's strategies: each edit changes one thing and nothing else, is legal, and can be undone."""

from __future__ import annotations

import ast
import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.edit.dialects.pypto import Pypto
from opratchet.edit.legality import broken_rule
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.pypto.cube_tiles import CubeTiles
from opratchet.edit.pypto.options import OPTIONS, OptionValue
from opratchet.edit.pypto.target import pypto_target
from opratchet.edit.pypto.unrolling import Unrolling
from opratchet.edit.pypto.vector_tiles import VectorTiles
from opratchet.edit.registry import STRATEGIES
from opratchet.edit.source import KernelSource
from opratchet.flow.pypto import FLOW

TARGET = pypto_target("pypto-sim")
SOURCE = """\
import pypto  # 中文注释
import torch


@pypto.frontend.jit({options})
def ffn_kernel(
    x: pypto.Tensor([256, 512], pypto.DT_FP16),
    w: pypto.Tensor([512, 512], pypto.DT_FP16),
    y: pypto.Tensor([256, 512], pypto.DT_FP16),
):
    pypto.set_cube_tile_shapes([128, 128], [64, 128], [128, 128])  # the tile of the first product
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(0, 4, 1, name="OUTER", idx_name="i"):
        for j in pypto.loop(0, 2, 1, name="INNER", idx_name="j"{unroll}):
            h = pypto.matmul(x, w, pypto.DT_FP16)
            pypto.set_vec_tile_shapes(32, 128)
            y[:] = pypto.exp(h)


def ffn_wrapper(x, w):
    y = torch.empty_like(x)
    ffn_kernel(x, w, y)
    return y
"""


def situation(options: str = "", unroll: str = "") -> Situation:
    text = SOURCE.replace("{options}", options).replace("{unroll}", unroll)
    return Situation(KernelSource(text, "ffn_kernel"), TARGET)


def edits(strategy: Strategy, here: Situation) -> list[Edit]:
    found = strategy.edits(here)
    assert not isinstance(found, NotApplicable), found
    return found


def changed_lines(before: str, after: str) -> list[str]:
    diff = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in diff if line[:1] in "+-"]


ALL: list[Strategy] = [
    VectorTiles(),
    CubeTiles(),
    Unrolling(),
    *(OptionValue(option) for option in OPTIONS),
]


@pytest.mark.parametrize("strategy", ALL, ids=lambda s: s.id)
def test_an_edit_changes_one_line_is_legal_and_is_told_apart(strategy: Strategy) -> None:
    here = situation()
    found = edits(strategy, here)

    assert len({edit.id for edit in found}) == len(found) == len({edit.title for edit in found})
    for edit in found:
        ast.parse(edit.text)
        assert len(changed_lines(here.source.text, edit.text)) == 2, edit.title
        assert broken_rule(KernelSource(edit.text, "ffn_kernel"), TARGET) is None, edit.title


@pytest.mark.parametrize("strategy", ALL, ids=lambda s: s.id)
def test_a_strategy_stands_in_a_row_of_the_procedure_and_in_the_registry(
    strategy: Strategy,
) -> None:
    assert FLOW.row(strategy.row).stage in ("frontend", "swimlane", "incore")
    assert STRATEGIES[strategy.id].row == strategy.row


def test_every_tile_of_the_kernel_is_a_place_of_its_own() -> None:
    view = Pypto.of(situation().source)
    assert [tile.tile for tile in view.vector_tiles] == [(16, 64), (32, 128)]
    assert [(tile.m, tile.k, tile.n) for tile in view.cube_tiles] == [
        ((128, 128), (64, 128), (128, 128))
    ]
    assert view.element_bytes == 2


def test_a_vector_tile_is_written_where_it_stood() -> None:
    here = situation()
    edit = next(e for e in edits(VectorTiles(), here) if e.key == "1:64x512")
    assert changed_lines(here.source.text, edit.text) == [
        "-             pypto.set_vec_tile_shapes(32, 128)",
        "+             pypto.set_vec_tile_shapes(64, 512)",
    ]


def test_one_axis_moves_by_a_factor_of_two() -> None:
    keys = {edit.key for edit in edits(VectorTiles(), situation())}
    assert {"0:32x64", "0:8x64", "0:16x128", "0:16x32"} <= keys


def test_a_cube_tile_keeps_its_comment_and_what_follows() -> None:
    here = situation()
    edit = next(e for e in edits(CubeTiles(), here) if "[64, 256]" in e.key)
    removed, added = changed_lines(here.source.text, edit.text)
    assert removed.endswith("[64, 128], [128, 128])  # the tile of the first product")
    assert added.endswith("[64, 256], [256, 256])  # the tile of the first product")


def test_k_may_have_a_level_1_for_each_side() -> None:
    titles = [edit.title for edit in edits(CubeTiles(), situation())]
    assert any("[64, 1536, 256]" in title for title in titles)


def test_only_an_innermost_loop_is_unrolled() -> None:
    here = situation(unroll=", unroll_list=[4, 1]")
    found = edits(Unrolling(), here)
    assert {edit.title.split(":")[0] for edit in found} == {"loop INNER"}
    assert all("[4, 1] ->" in edit.title for edit in found)
    assert not any(edit.text == here.source.text for edit in found)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", '@pypto.frontend.jit(runtime_options={"device_sched_mode": 1})'),
        (
            'runtime_options={"run_mode": 1}',
            '@pypto.frontend.jit(runtime_options={"run_mode": 1, "device_sched_mode": 1})',
        ),
        (
            'runtime_options={"device_sched_mode": 3}',
            '@pypto.frontend.jit(runtime_options={"device_sched_mode": 1})',
        ),
        (
            "use_cache=False",
            '@pypto.frontend.jit(use_cache=False, runtime_options={"device_sched_mode": 1})',
        ),
    ],
)
def test_an_option_is_put_where_it_belongs(options: str, line: str) -> None:
    option = next(o for o in OPTIONS if o.name == "device_sched_mode")
    edit = next(e for e in edits(OptionValue(option), situation(options)) if e.key == "1")
    assert line in edit.text.splitlines()


def test_an_option_on_a_bare_decorator_gets_parentheses() -> None:
    text = SOURCE.replace("({options})", "").replace("{unroll}", "")
    here = Situation(KernelSource(text, "ffn_kernel"), TARGET)
    edit = edits(OptionValue(OPTIONS[0]), here)[0]
    assert '@pypto.frontend.jit(pass_options={"vec_nbuffer_setting": {-1: 1}})' in edit.text


def test_integer_keys_are_never_mixed_with_names() -> None:
    option = next(o for o in OPTIONS if o.name == "cube_nbuffer_setting")
    here = situation('pass_options={"cube_nbuffer_setting": {"DEFAULT": 2}}')
    found = OptionValue(option).edits(here)
    assert isinstance(found, NotApplicable)
    assert "mix" in found.why


def test_what_is_not_literal_is_no_tile() -> None:
    text = SOURCE.replace("{options}", "").replace("{unroll}", "").replace("(16, 64)", "(ROWS, 64)")
    view = Pypto.of(KernelSource(text, "ffn_kernel"))
    assert [tile.tile for tile in view.vector_tiles] == [(32, 128)]


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("(16, 64)", "(16, 8)", "16 bytes, no multiple of 32"),
        ("(16, 64)", "(1, 2, 3, 4, 32)", "5 axes"),
        ("(16, 64)", "(512, 256)", "262144 bytes of UB, limit 196608"),
        ("[64, 128], [128", "[64, 96], [128", "no multiple of level 0"),
        ("[64, 128], [128", "[512, 512], [128", "131072 bytes of L0A, limit 65536"),
        ("[128, 128], [64", "[256, 256], [64", "limit"),
    ],
)
def test_what_cannot_fit_is_pruned_with_the_arithmetic(before: str, after: str, rule: str) -> None:
    text = SOURCE.replace("{options}", "").replace("{unroll}", "")
    broken = text.replace(before, after, 1)
    if "256, 256" in after:  # fits L0A with this k, and with n of 256 no longer L0C
        broken = broken.replace("[64, 128], [128, 128]", "[64, 128], [256, 256]")
    found = broken_rule(KernelSource(broken, "ffn_kernel"), TARGET)
    assert found is not None
    assert rule in found


@given(st.lists(st.integers(1, 512), min_size=1, max_size=4))
def test_every_move_of_a_vector_tile_can_be_undone(tile: list[int]) -> None:
    text = SOURCE.replace("{options}", "").replace("{unroll}", "")
    text = text.replace("(16, 64)", f"({', '.join(map(str, tile))})")
    here = Situation(KernelSource(text, "ffn_kernel"), TARGET)
    for edit in edits(VectorTiles(), here):
        if not edit.key.startswith("0:"):
            continue
        numbers = edit.key.removeprefix("0:").replace("x", ", ")
        assert edit.text.replace(f"({numbers})", f"({', '.join(map(str, tile))})", 1) == text
