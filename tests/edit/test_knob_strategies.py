"""Each strategy that turns a knob: its diff, what it says when it does not apply, and that the result is still right."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path
from typing import Any

import pytest

from opratchet.edit.knobs import KnobKind, find_knobs
from opratchet.edit.model import Edit, Situation, Strategy, Target
from opratchet.edit.onechange import check_edit
from opratchet.edit.source import KernelSource
from opratchet.edit.strategies.block_size import BlockSize
from opratchet.edit.strategies.compile_flags import CompileFlags
from opratchet.edit.strategies.double_buffer import DoubleBuffer
from opratchet.edit.strategies.fast_math import FastMath
from opratchet.edit.strategies.loop_kind import LoopKind
from opratchet.edit.strategies.pass_configs import PassConfigs
from opratchet.edit.strategies.pipeline_depth import PipelineDepth
from opratchet.edit.strategies.v_prefix import NEW_NAMES, VPrefix
from tests.edit.knobbed import CPU, NPU, SHAPES, offered, refused, situation
from tests.edit.running import assert_matches_golden, load
from tests.edit.sources import changed, example, kernel

GEMM, SOFTMAX, RMSNORM = example("gemm"), example("softmax"), example("rmsnorm")
JIT = '@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"'
PLAIN_LOOP = "for ko in T.serial(T.ceildiv(K, block_K)):"
SERIAL_GEMM = KernelSource(
    GEMM.text.replace("for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):", PLAIN_LOOP),
    "gemm",
)
NPUIR_GEMM = KernelSource(
    GEMM.text.replace("T.clear(", "T.npuir_clear(").replace("T.gemm(", "T.npuir_dot("), "gemm"
)


def difference(source: KernelSource, edit: Edit) -> tuple[str, str]:
    """The line that went and the line that came; there is one of each."""
    gone, came = changed(source, edit.text)
    assert len(gone) == len(came) == 1
    return gone[0], came[0]


def test_block_size() -> None:
    edits = offered(BlockSize(), GEMM)
    assert list(edits)[:2] == ["block_M=32", "block_N=32"]
    _, came = difference(GEMM, edits["block_K=16"])
    assert came == 'def gemm(M, N, K, block_M=64, block_N=64, block_K=16, dtype="float32"):'
    assert edits["block_K=16"].title == "block_K 32 -> 16"
    assert "no tile size" in refused(BlockSize(), KernelSource(GEMM.text, "run_case"))


def test_pipeline_depth_is_tried_once_where_it_cannot_matter() -> None:
    edits = offered(PipelineDepth(), GEMM)
    assert list(edits) == ["num_stages=3"]
    assert difference(GEMM, edits["num_stages=3"])[1].endswith("num_stages=3):")
    assert "no T.Pipelined loop" in refused(PipelineDepth(), SERIAL_GEMM)


def test_pipeline_depth_with_asynchronous_copies() -> None:
    edits = offered(PipelineDepth(), GEMM, NPU)
    assert list(edits) == ["num_stages=3", "num_stages=4", "num_stages=1"]
    (edit,) = offered(PipelineDepth(), SERIAL_GEMM, NPU).values()
    assert edit.text == GEMM.text
    assert "no loop copies" in refused(PipelineDepth(), SOFTMAX, NPU)


def test_double_buffer() -> None:
    assert "same core" in refused(DoubleBuffer(), GEMM)
    edits = offered(DoubleBuffer(), GEMM, NPU)
    assert list(edits) == [f"pass npuir.enable_auto_multi_buffer={v}" for v in ("True", "False")]
    _, came = difference(GEMM, edits["pass npuir.enable_auto_multi_buffer=True"])
    assert came == JIT + '], pass_configs={"npuir.enable_auto_multi_buffer": True})'
    single = KernelSource(GEMM.text.replace("num_stages=2", "num_stages=1"), "gemm")
    stages = offered(DoubleBuffer(), single, Target("other", multi_buffering=True))
    assert stages["num_stages=2"].text == GEMM.text
    assert "two stages" in refused(DoubleBuffer(), GEMM, Target("other", multi_buffering=True))


def test_v_prefix() -> None:
    edits = offered(VPrefix(), NPUIR_GEMM)
    assert list(edits) == ["npuir"] and edits["npuir"].text == GEMM.text
    assert edits["npuir"].title == "npuir_clear -> clear, npuir_dot -> gemm"
    assert "npuir_*" in refused(VPrefix(), GEMM)
    source = kernel("T.npuir_add(x, y, z)  # sum\nT.npuir_unheard_of(x)\nnpuir_add(x)")
    gone, came = changed(source, offered(VPrefix(), source)["npuir"].text)
    assert (gone, came) == (["T.npuir_add(x, y, z)  # sum"], ["T.vadd(x, y, z)  # sum"])


def test_v_prefix_table_has_every_upstream_name() -> None:
    assert len(NEW_NAMES) == 29 + 4 + 19 + 1
    assert NEW_NAMES["npuir_rsqrt"] == "vrsqrt" and NEW_NAMES["npuir_vcos"] == "vcos"
    assert NEW_NAMES["npuir_load_nd2nz"] == "load_nd2nz"


def test_fast_math() -> None:
    edits = offered(FastMath(), SOFTMAX)
    assert list(edits)[-1] == "flag fast_math=-ffast-math"
    assert difference(SOFTMAX, edits["flag fast_math=-ffast-math"]) == (
        JIT + "])",
        JIT + ', "-ffast-math"])',
    )
    after = KernelSource(edits["flag fast_math=-ffast-math"].text, "softmax")
    assert [edit.text for edit in offered(FastMath(), after).values()] == [SOFTMAX.text]
    library = next(edit for key, edit in edits.items() if "vector_library" in key)
    assert library.prior > 1.0  # the kernel calls T.exp


def test_fast_math_says_why_not() -> None:
    unoptimised = KernelSource(
        SOFTMAX.text.replace(JIT + "])", JIT[:13] + '(target="c")'), "softmax"
    )
    assert "does not optimise yet" in refused(FastMath(), unoptimised)
    assert "no such compile flags" in refused(FastMath(), SOFTMAX, NPU)
    hidden = KernelSource(SOFTMAX.text.replace('["-O3", "-march=native"]', "flags()"), "softmax")
    assert "not written out" in refused(FastMath(), hidden)
    assert "not written out" in refused(CompileFlags(), hidden)


def test_compile_flags() -> None:
    edits = offered(CompileFlags(), SOFTMAX)
    assert (
        difference(SOFTMAX, edits["flag unroll=-funroll-loops"])[1] == JIT + ', "-funroll-loops"])'
    )
    level = edits["flag optimisation=-O2 -march=native"]
    assert difference(SOFTMAX, level)[1] == JIT.replace("O3", "O2") + "])"
    assert not any("fast" in key for key in edits) and "flag optimisation=" not in edits
    assert "takes no compile flags" in refused(CompileFlags(), SOFTMAX, NPU)


@pytest.mark.parametrize("head", ["@tilelang.jit", '@tilelang.jit(target="c")', "@tilelang.jit()"])
def test_without_an_optimisation_level_that_comes_first(head: str) -> None:
    source = KernelSource(SOFTMAX.text.replace(JIT + "])", head), "softmax")
    (edit,) = offered(CompileFlags(), source).values()
    assert 'compile_flags=["-O3", "-march=native"])' in difference(source, edit)[1]
    assert edit.prior > 2.0


def test_loop_kind() -> None:
    (edit,) = offered(LoopKind(), RMSNORM).values()
    assert difference(RMSNORM, edit) == (
        "for i in T.serial(block_M):",
        "for i in T.unroll(block_M, explicit=True):",
    )
    assert "a local buffer of one thread" in refused(LoopKind(), SOFTMAX)


def test_pass_configs() -> None:
    edits = offered(PassConfigs(), GEMM)
    _, came = difference(GEMM, edits["pass tirx.disable_vectorize=True"])
    assert came == JIT + '], pass_configs={"tirx.disable_vectorize": True})'
    assert "no pass configuration" in refused(PassConfigs(), GEMM, Target("unknown"))


DEPTHLESS_GEMM = KernelSource(GEMM.text.replace(", num_stages=2", ""), "gemm")
BUFFERING = Target("other", multi_buffering=True)
PRODUCT, ROWS = {"M": 100, "N": 75, "K": 50}, {"M": 33, "N": 100}
RIGHT: list[tuple[Strategy, KernelSource, str, Target, dict[str, int]]] = [
    (BlockSize(), GEMM, "block_K=16", CPU, PRODUCT),
    (PipelineDepth(), GEMM, "num_stages=3", CPU, PRODUCT),
    (DoubleBuffer(), DEPTHLESS_GEMM, "num_stages=2", BUFFERING, PRODUCT),
    (VPrefix(), NPUIR_GEMM, "npuir", CPU, PRODUCT),
    (FastMath(), SOFTMAX, "flag fast_math=-ffast-math", CPU, ROWS),
    (CompileFlags(), SOFTMAX, "flag unroll=-funroll-loops", CPU, ROWS),
    (LoopKind(), RMSNORM, "loop i=unroll(explicit=True)", CPU, ROWS),
    (PassConfigs(), SOFTMAX, "pass tl.storage_rewrite_detect_inplace=True", CPU, ROWS),
]


@pytest.mark.tilelang
@pytest.mark.parametrize(
    ("strategy", "source", "key", "target", "shape"), RIGHT, ids=[case[0].id for case in RIGHT]
)
def test_result_still_matches_the_golden(
    strategy: Strategy,
    source: KernelSource,
    key: str,
    target: Target,
    shape: dict[str, int],
    tmp_path: Path,
) -> None:
    edit = offered(strategy, source, target)[key]
    assert_matches_golden(edit.text, source, tmp_path, **shape)


def generated(source: KernelSource, folder: Path, **shape: int) -> str:
    """Code that the `c` target makes, with the source's own pass configurations."""
    import tilelang
    from tilelang import tvm

    factory = getattr(load(source, folder), source.kernel)
    target = tvm.target.Target("c")
    with tvm.transform.PassContext(config=factory.pass_configs or {}), target:
        return str(tilelang.lower(factory.get_tir(**shape), target=target).kernel_source)


@pytest.mark.tilelang
def test_pipeline_depth_makes_the_same_code_on_the_cpu(tmp_path: Path) -> None:
    edit = offered(PipelineDepth(), GEMM)["num_stages=3"]
    shape = {"M": 64, "N": 64, "K": 64}
    assert generated(KernelSource(edit.text, "gemm"), tmp_path, **shape) == generated(
        GEMM, tmp_path, **shape
    )


@pytest.mark.tilelang
def test_every_pass_configuration_offered_changes_the_code_of_an_example(tmp_path: Path) -> None:
    shape = {"M": 8, "N": 64}
    before = generated(SOFTMAX, tmp_path, **shape)
    useless = {
        key
        for key, edit in offered(PassConfigs(), SOFTMAX).items()
        if generated(KernelSource(edit.text, "softmax"), tmp_path, **shape) == before
    }
    assert not useless


LOOPS = {
    "scale": "y[0, j] = x[0, j] * 2.0 + 1.0",
    "exp": "y[0, j] = T.exp(x[0, j])",
    "sum": "y[0, 0] = y[0, 0] + x[0, j]",
    "choice": "y[0, j] = T.if_then_else(j < 3, x[0, j], 0.0)",
    "global": "Y[bx * block_M, j] = X[bx * block_M, j] * 2.0",
}


def looping(body: str) -> KernelSource:
    """A kernel with one serial loop over 8 elements."""
    lines = ["x = T.alloc_local((block_M, N), dtype)", "y = T.alloc_local((block_M, N), dtype)"]
    lines += ["T.copy(X[bx * block_M, 0], x)", "T.clear(y)", "for j in T.serial(8):", f"    {body}"]
    return kernel("\n".join([*lines, "T.copy(y, Y[bx * block_M, 0])"]))


@pytest.mark.tilelang
@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_loop_kinds_offered_are_those_that_build_and_make_other_code(
    body: str, tmp_path: Path
) -> None:
    source = looping(body)
    where = Situation(source, CPU, [{"M": 8, "N": 8}])
    (knob,) = find_knobs(where, (KnobKind.LOOP,))
    before = generated(source, tmp_path, M=8, N=8)
    for kind in ("unroll", "unroll(explicit=True)", "vectorized", "Parallel", "Pipelined"):
        after = KernelSource(knob.turned(source, kind), "op")
        try:
            useful = generated(after, tmp_path, M=8, N=8) != before
        except Exception:  # whatever the compiler says of an illegal kind
            useful = False
        assert useful == (kind in knob.legal), (kind, knob.note)


def library(text: str, folder: Path) -> bytes:
    """The shared object that TileLang builds with the source's own flags."""
    import tilelang

    tilelang.disable_cache()
    path = folder / f"built_{abs(hash(text))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    built: Any = module.softmax(M=8, N=64)
    return Path(built.adapter.libpath).read_bytes()


@pytest.mark.tilelang
@pytest.mark.skipif(platform.machine() != "x86_64", reason="libmvec exists for x86-64 only here")
def test_vector_library_flags_make_exp_a_vector_call(tmp_path: Path) -> None:
    edits = offered(FastMath(), SOFTMAX)
    key = "flag fast_math.vector_library=-fno-math-errno -D__FAST_MATH__"
    assert b"_ZGV" not in library(SOFTMAX.text, tmp_path)
    assert b"_ZGV" in library(edits[key].text, tmp_path)


@pytest.mark.parametrize("strategy", [PipelineDepth(), FastMath()])
def test_key_of_an_edit_says_the_knob_and_its_value(strategy: Strategy) -> None:
    for edit in offered(strategy, GEMM).values():
        change = check_edit(GEMM.text, edit.text, "gemm", "golden_gemm", CPU)
        assert edit.key == f"{change.knob}={change.new}"


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_ids_are_unique_and_texts_differ(name: str) -> None:
    source = example(name)
    strategies = (
        BlockSize(),
        PipelineDepth(),
        FastMath(),
        CompileFlags(),
        LoopKind(),
        PassConfigs(),
    )
    edits = [
        edit
        for strategy in strategies
        if isinstance(found := strategy.edits(situation(source)), list)
        for edit in found
    ]
    assert len({edit.id for edit in edits}) == len({edit.text for edit in edits}) == len(edits)
