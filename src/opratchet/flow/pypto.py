"""The procedure `pypto-op-optimizer` as data: its stages in their fixed order, and the catalogue of what each may try.

Ids, order within a stage and gain bands are those of the catalogue of upstream's skill `pypto-op-perf-tune`. A row without a
strategy of this tool needs judgement: it is offered to whoever proposes changes, with the evidence, and the log says so.
"""

from __future__ import annotations

from opratchet.flow.model import Flow, Row, Stage, StopRules

FRONTEND, SWIMLANE, INCORE = "frontend", "swimlane", "incore"

STAGES = (
    Stage(FRONTEND, {"zh": "Frontend", "en": "frontend"}, patience=5),
    Stage(SWIMLANE, {"zh": "Swimlane", "en": "swimlane"}, patience=8),
    Stage(INCORE, {"zh": "Incore", "en": "incore"}, patience=5),
)
REPEATED = (SWIMLANE, INCORE)
CYCLES = 3


def _row(
    row: str, stage: str, zh: str, en: str, when: tuple[str, str], gain: tuple[float, float]
) -> Row:
    return Row(
        row, {"zh": zh, "en": en}, {"zh": when[0], "en": when[1]}, gain, in_seed=True, stage=stage
    )


_BUBBLE = ("气泡率 > 10%", "bubble over 10 %")
_IDLE = ("核利用率 < 50%", "less than half of the cores used")
_UNEVEN = ("各核耗时相差 > 20%", "cores differ by more than 20 %")
_LONG = ("单个任务过长", "single tasks take long")

ROWS = (
    _row("F-1", FRONTEND, "任务粒度", "task granularity", _IDLE, (0.05, 0.50)),
    _row("F-2", FRONTEND, "循环体计算量", "work in a loop's body", _BUBBLE, (0.10, 0.30)),
    _row("F-3", FRONTEND, "循环次数", "number of iterations", _BUBBLE, (0.05, 0.20)),
    _row("F-4", FRONTEND, "reshape(inplace) 外提", "reshape in place", _IDLE, (0.05, 0.30)),
    _row("F-5", FRONTEND, "静态轴 python for", "python for on static axes", _BUBBLE, (0.03, 0.10)),
    _row("F-6", FRONTEND, "合并循环", "merge loops", _BUBBLE, (0.03, 0.15)),
    _row("F-7", FRONTEND, "外层动态轴分块", "block the outer dynamic axis", _IDLE, (0.10, 0.40)),
    _row("F-8", FRONTEND, "内层 unroll_list", "unroll an inner loop", _BUBBLE, (0.05, 0.30)),
    _row("F-9", FRONTEND, "cube tile", "cube tile", _IDLE, (0.05, 0.20)),
    _row("F-10", FRONTEND, "vector tile", "vector tile", _IDLE, (0.03, 0.10)),
    _row("F-11", FRONTEND, "分块常量", "block constants", _IDLE, (0.03, 0.15)),
    _row("F-12", FRONTEND, "NZ 格式", "NZ format", _LONG, (0.05, 0.15)),
    _row("F-13", FRONTEND, "转置融合", "fuse transposes", _LONG, (0.00, 0.10)),
    _row("F-14", FRONTEND, "concat 改 assemble", "assemble for concat", _LONG, (0.00, 0.10)),
    _row("F-15", FRONTEND, "combine_axis", "combine_axis", _LONG, (0.00, 0.10)),
    _row("S-1", SWIMLANE, "核使用分析", "use of cores", _IDLE, (0.00, 0.30)),
    _row("S-2", SWIMLANE, "填满核", "fill the cores", _IDLE, (0.00, 0.30)),
    _row("S-3", SWIMLANE, "负载均衡", "load balance", _UNEVEN, (0.00, 0.20)),
    _row("S-11", SWIMLANE, "cube tile 深调", "cube tile in depth", _UNEVEN, (0.00, 0.20)),
    _row("S-12", SWIMLANE, "vector tile 深调", "vector tile in depth", _UNEVEN, (0.00, 0.10)),
    _row("S-13", SWIMLANE, "L2 核排布", "layout of cores on L2", _UNEVEN, (0.00, 0.30)),
    _row("S-4", SWIMLANE, "sg_set_scope", "sg_set_scope", _BUBBLE, (0.00, 0.20)),
    _row("S-5", SWIMLANE, "合并 vector 子图", "merge vector subgraphs", _BUBBLE, (0.03, 0.20)),
    _row("S-6", SWIMLANE, "L1 复用合并", "merge on shared L1", _IDLE, (0.03, 0.20)),
    _row("S-7", SWIMLANE, "合并 cube 子图", "merge cube subgraphs", _IDLE, (0.03, 0.20)),
    _row("S-8", SWIMLANE, "L1 复用与 cube 合并", "both cube merges", _IDLE, (0.03, 0.20)),
    _row("S-9", SWIMLANE, "stitch 数量", "functions stitched at once", _BUBBLE, (0.03, 0.20)),
    _row("S-10", SWIMLANE, "调度模式", "scheduling mode", _BUBBLE, (0.00, 0.10)),
    _row("I-1", INCORE, "小 shape matmul", "small matmul", _LONG, (0.00, 0.50)),
    _row("I-2", INCORE, "L2 旁路", "bypass L2", _LONG, (0.10, 0.20)),
    _row("I-3", INCORE, "冗余计算", "redundant computation", _LONG, (0.00, 0.10)),
    _row("I-4", INCORE, "尾轴对齐", "aligned last axis", _LONG, (0.00, 0.10)),
    _row("I-5", INCORE, "TileOperation", "tile operations", _LONG, (0.00, 0.10)),
    _row("I-6", INCORE, "连续性", "contiguity", _LONG, (0.00, 0.10)),
    _row("I-7", INCORE, "gather/scatter 方向", "gather or scatter", _LONG, (0.00, 0.10)),
    _row("I-8", INCORE, "submit_before_loop", "submit_before_loop", _BUBBLE, (0.00, 0.10)),
    _row("I-9", INCORE, "valid_shape", "valid_shape", _LONG, (0.00, 0.05)),
)

FLOW = Flow(
    name="pypto",
    stage=7,
    rows=ROWS,
    stop=StopRules(max_rounds=1000, patience=1000, max_experiments=400, budget_seconds=12 * 3600.0),
    trials_per_round=10,
    guides={"pypto-sim": "docs/pypto-sim.md"},
    stages=STAGES,
    repeated=REPEATED,
    cycles=CYCLES,
    activated=True,
)
