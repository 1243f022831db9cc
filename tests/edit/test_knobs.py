"""Knobs are found by themselves, have legal values, and turning one changes nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.edit.knobs import Knob, KnobKind, Value, find_knobs, knobs_of, unknown_knobs
from opratchet.edit.knobs.tiles import divisors
from opratchet.edit.model import Situation, Target
from opratchet.edit.onechange import describe_change
from opratchet.edit.source import KernelSource
from tests.edit.knobbed import CPU, SHAPES, situation, styled
from tests.edit.sources import example, kernel

PLAIN = kernel("pass")


def by_name(source: KernelSource, target: Target = CPU) -> dict[str, Knob]:
    return {knob.name: knob for knob in find_knobs(situation(source, target))}


def tiles(source: KernelSource, shapes: list[dict[str, int]]) -> dict[str, tuple[int, ...]]:
    found = find_knobs(Situation(source, CPU, shapes), (KnobKind.TILE,))
    return {knob.name: tuple(v for v in knob.legal if isinstance(v, int)) for knob in found}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("softmax", {"block_M"}),
        ("rmsnorm", {"block_M"}),
        ("gelu", {"block_M", "block_N"}),
        ("gemm", {"block_M", "block_N", "block_K"}),
        ("attention", {"block_M", "block_N"}),
    ],
)
def test_tiles_of_the_examples(name: str, expected: set[str]) -> None:
    assert set(tiles(example(name), SHAPES[name])) == expected


def test_tile_values_are_powers_of_two_and_shared_divisors_nearest_first() -> None:
    legal = tiles(PLAIN, [{"M": 96, "N": 8}])["block_M"]
    assert legal[0] == 4
    assert set(legal) == {1, 2, 4, 8, 16, 32, 64, 128} | {3, 6, 12, 24, 48, 96}
    distance = [max(value, 4) / min(value, 4) for value in legal]
    assert distance == sorted(distance)


def test_divisors_of_one_odd_workload_among_many_do_not_count() -> None:
    legal = tiles(PLAIN, [{"M": 256, "N": 8}, {"M": 512, "N": 8}, {"M": 33, "N": 8}])["block_M"]
    assert 11 not in legal and 33 not in legal and 512 in legal


def test_tile_values_stop_where_local_memory_is_full() -> None:
    source = kernel("x = T.alloc_local((block_M, N), dtype)")
    small = Target("tilelang-c", local_bytes=8 * 100 * 4)
    (knob,) = find_knobs(Situation(source, small, [{"M": 64, "N": 100}]), (KnobKind.TILE,))
    assert max(v for v in knob.legal if isinstance(v, int)) == 8
    assert "16" in knob.note and str(8 * 100 * 4) in knob.note


def test_dimension_is_found_by_use_before_name() -> None:
    shapes = [{"M": 1024, "N": 8}]
    assert max(tiles(PLAIN, shapes)["block_M"]) == 1024
    other = PLAIN.text.replace("T.ceildiv(M,", "T.ceildiv(N,")
    assert max(tiles(KernelSource(other, "op"), shapes)["block_M"]) == 8
    other = PLAIN.text.replace("T.ceildiv(M, block_M)", "blocks(block_M)")
    assert max(tiles(KernelSource(other, "op"), shapes)["block_M"]) == 1024


def test_tile_without_a_tiling_name_is_found_by_use() -> None:
    text = PLAIN.text.replace("block_M", "rows")
    assert "rows" in tiles(KernelSource(text, "op"), [{"M": 64, "N": 8}])
    text = text.replace("T.ceildiv(M, rows)", "8")
    assert "rows" not in tiles(KernelSource(text, "op"), [{"M": 64, "N": 8}])


def test_module_constants_are_knobs_only_when_nothing_else_knows_them() -> None:
    text = PLAIN.text.replace(", block_M=4", "").replace("block_M", "BLOCK_M")
    ours = text.replace("import torch\n", "import torch\n\nBLOCK_M = 4  # rows\n")
    assert "BLOCK_M" in tiles(KernelSource(ours, "op"), [{"M": 64, "N": 8}])
    theirs = ours + "\n\ndef golden_op(X):\n    return X[:BLOCK_M]\n"
    assert "BLOCK_M" not in tiles(KernelSource(theirs, "op"), [{"M": 64, "N": 8}])


def test_shape_parameters_are_no_tiles() -> None:
    text = PLAIN.text.replace("def op(M, N,", "def op(M=64, N=32,")
    assert set(tiles(KernelSource(text, "op"), [])) == {"block_M"}


def test_manifest_overrides_and_adds() -> None:
    source = example("rmsnorm")
    declared = {"block_M": (1, 8), "eps": (1e-6, 1e-5), "nonsense": (1,)}
    where = Situation(source, CPU, SHAPES["rmsnorm"], declared)
    found = {knob.name: knob.legal for knob in find_knobs(where, (KnobKind.TILE,))}
    assert found == {"block_M": (4, 8, 1), "eps": (1e-6, 1e-5)}
    assert unknown_knobs(where) == ["nonsense"]


def test_num_stages_given_by_the_factory() -> None:
    text = example("gemm").text.replace("num_stages=2", "num_stages=depth")
    text = text.replace("block_K=32,", "block_K=32, depth=3,")
    knobs = by_name(KernelSource(text, "gemm"))
    assert knobs["depth"].kind is KnobKind.STAGES and knobs["depth"].current == 3
    assert knobs["depth"].alternatives == (4, 2, 1)


def test_illegal_loop_kinds_are_not_offered_but_explained() -> None:
    knob = by_name(example("rmsnorm"))["loop i"]
    assert knob.legal == ("serial", "unroll(explicit=True)")
    assert "T.sqrt has no vector form" in knob.note and "`rms`" in knob.note


def test_flags_in_a_constant_and_in_one_string() -> None:
    flags = 'compile_flags=["-O3", "-march=native"]'
    text = PLAIN.text.replace(flags, "compile_flags=FLAGS")
    constant = text.replace("import torch\n", 'import torch\n\nFLAGS = ("-O3", "-g")\n')
    source = KernelSource(constant, "op")
    turned = by_name(source)["flag fast_math"].turned(source, "-ffast-math")
    assert 'FLAGS = ("-O3", "-g", "-ffast-math")' in turned and "compile_flags=FLAGS" in turned
    source = KernelSource(PLAIN.text.replace(flags, "compile_flags='-O3 -g'"), "op")
    turned = by_name(source)["flag optimisation"].turned(source, "-O2 -march=native")
    assert "compile_flags='-O2 -g -march=native'" in turned


def test_flags_that_cannot_be_read_are_no_knobs() -> None:
    text = PLAIN.text.replace('["-O3", "-march=native"]', "flags_for_here()")
    assert not any(
        knob.kind is KnobKind.FLAG for knob in by_name(KernelSource(text, "op")).values()
    )


def test_multi_line_decorator_keeps_its_form_and_comments() -> None:
    head = '@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])'
    long = """@tilelang.jit(
    target="c",  # the CPU
    compile_flags=[
        "-O3",
        "-march=native",  # this machine
    ],  # for g++
)"""
    source = KernelSource(PLAIN.text.replace(head, long), "op")
    knobs = by_name(source)
    fast = knobs["flag fast_math"].turned(source, "-ffast-math")
    assert '"-O3",\n        "-ffast-math",\n        "-march=native",  # this machine' in fast
    passes = knobs["pass tirx.disable_vectorize"].turned(source, "True")
    inserted = '    pass_configs={"tirx.disable_vectorize": True},\n    compile_flags=[\n'
    assert inserted in passes and passes.replace(inserted, "    compile_flags=[\n") == source.text


@pytest.mark.parametrize("jit", ["@tilelang.jit", "@jit", '@tilelang.jit(target="c")'])
def test_options_of_a_decorator_that_has_none(jit: str) -> None:
    line = PLAIN.text.splitlines()[5]
    source = KernelSource(PLAIN.text.replace(line, jit), "op")
    for name, value in {
        "flag optimisation": "-O3 -march=native",
        "pass tl.UnrollLoop": "{}",
    }.items():
        after = KernelSource(by_name(source)[name].turned(source, value), "op")
        assert by_name(after)[name].turned(after, by_name(source)[name].current) == source.text


def test_pass_config_written_with_its_constant_is_found() -> None:
    line = (
        "pass_configs={tilelang.PassConfigKey.TIR_DISABLE_VECTORIZE: True, **more}, compile_flags"
    )
    source = KernelSource(PLAIN.text.replace("compile_flags", line), "op")
    knob = by_name(source)["pass tirx.disable_vectorize"]
    assert knob.current == "True"
    assert "pass_configs={**more}" in knob.turned(source, None)


@st.composite
def turned_knobs(draw: st.DrawFn) -> tuple[KernelSource, Knob, Value]:
    """An example in some style, one of its knobs, and another legal value of it."""
    source = styled(
        example(draw(st.sampled_from(sorted(SHAPES)))),
        mark=draw(st.booleans()),
        newline=draw(st.sampled_from(["\n", "\r\n"])),
        tabs=draw(st.booleans()),
    )
    knobs = [knob for knob in find_knobs(situation(source)) if knob.alternatives]
    knob = draw(st.sampled_from(knobs))
    return source, knob, draw(st.sampled_from(knob.alternatives))


@settings(max_examples=12, deadline=None)
@given(turned_knobs())
def test_turning_a_knob_changes_one_line_is_recognised_and_can_be_undone(
    case: tuple[KernelSource, Knob, Value],
) -> None:
    source, knob, value = case
    after = KernelSource(knob.turned(source, value), source.kernel)
    old, new = source.text.split("\n"), after.text.split("\n")
    assert len(old) == len(new) and sum(a != b for a, b in zip(old, new, strict=True)) == 1
    change = describe_change(source, after, CPU)
    assert (change.knob, change.old, change.new) == (knob.name, knob.current, value)
    (back,) = [k for k in knobs_of(after, CPU) if k.name == knob.name]
    if knob.kind is not KnobKind.FLAG or not knob.current:  # a flag put back goes to the end
        assert back.turned(after, knob.current) == source.text


@given(st.integers(1, 5000))
def test_divisors(extent: int) -> None:
    assert divisors(extent) == [d for d in range(1, extent + 1) if extent % d == 0]
