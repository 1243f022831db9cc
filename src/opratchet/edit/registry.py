"""All strategies by id. A new strategy is one new file and one line here."""

from __future__ import annotations

from opratchet.edit.model import Strategy
from opratchet.edit.pypto.cube_tiles import CubeTiles
from opratchet.edit.pypto.options import strategies as option_strategies
from opratchet.edit.pypto.unrolling import Unrolling
from opratchet.edit.pypto.vector_tiles import VectorTiles
from opratchet.edit.rewrites.block_order import BlockOrder
from opratchet.edit.rewrites.common_expression import CommonExpression
from opratchet.edit.rewrites.drop_copy_in import DropCopyIn
from opratchet.edit.rewrites.drop_copy_out import DropCopyOut
from opratchet.edit.rewrites.everywhere import (
    DropCopies,
    Reciprocals,
    RegisterTiles,
    SplitReductions,
)
from opratchet.edit.rewrites.expand_gemm import ExpandGemm
from opratchet.edit.rewrites.fuse_loops import FuseLoops
from opratchet.edit.rewrites.hoist_copy import HoistCopy
from opratchet.edit.rewrites.hoist_expression import HoistExpression
from opratchet.edit.rewrites.inline_buffer import InlineBuffer
from opratchet.edit.rewrites.inline_math import InlineMath
from opratchet.edit.rewrites.interchange import Interchange
from opratchet.edit.rewrites.keep_in_output import KeepInOutput
from opratchet.edit.rewrites.lanes import Lanes
from opratchet.edit.rewrites.local_accumulator import LocalAccumulator
from opratchet.edit.rewrites.merge_buffers import MergeBuffers
from opratchet.edit.rewrites.reciprocal import Reciprocal
from opratchet.edit.rewrites.reduce_inline import ReduceInline
from opratchet.edit.rewrites.register_tile import RegisterTile
from opratchet.edit.strategies.block_size import BlockSize
from opratchet.edit.strategies.compile_flags import CompileFlags
from opratchet.edit.strategies.double_buffer import DoubleBuffer
from opratchet.edit.strategies.fast_math import FastMath
from opratchet.edit.strategies.loop_kind import LoopKind
from opratchet.edit.strategies.pass_configs import PassConfigs
from opratchet.edit.strategies.pipeline_depth import PipelineDepth
from opratchet.edit.strategies.v_prefix import VPrefix

STRATEGIES: dict[str, Strategy] = {
    strategy.id: strategy
    for strategy in (
        BlockSize(),
        PipelineDepth(),
        DoubleBuffer(),
        VPrefix(),
        DropCopies(),
        DropCopyIn(),
        DropCopyOut(),
        KeepInOutput(),
        InlineBuffer(),
        MergeBuffers(),
        FuseLoops(),
        SplitReductions(),
        Lanes(),
        ReduceInline(),
        RegisterTiles(),
        RegisterTile(),
        LocalAccumulator(),
        Reciprocals(),
        Reciprocal(),
        HoistExpression(),
        HoistCopy(),
        CommonExpression(),
        FastMath(),
        InlineMath(),
        ExpandGemm(),
        Interchange(),
        BlockOrder(),
        LoopKind(),
        CompileFlags(),
        PassConfigs(),
        Unrolling(),
        CubeTiles(),
        VectorTiles(),
        *option_strategies(),
    )
}
