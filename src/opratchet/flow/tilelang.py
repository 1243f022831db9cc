"""The procedure `tilelang-op-optimize` as data: its table of six rows in its order, then what this tool adds.

The gain bands of the first six are the procedure's. Those of the added rows are this tool's own expectation; like all
bands they only order what is tried, and the gates decide.
"""

from __future__ import annotations

from opratchet.flow.model import Flow, Row, StopRules

ROWS = (
    Row(
        "block_size",
        {"zh": "调整 block size", "en": "block size"},
        {"zh": "访存/计算不均衡", "en": "memory and compute out of balance"},
        (0.10, 0.30),
    ),
    Row(
        "pipeline_depth",
        {"zh": "增加 T.Pipelined 流水深度", "en": "deeper T.Pipelined"},
        {"zh": "有多次循环迭代", "en": "a loop with several iterations"},
        (0.10, 0.20),
    ),
    Row(
        "double_buffer",
        {"zh": "double-buffer / 多缓冲", "en": "double buffering"},
        {"zh": "搬运与计算可重叠", "en": "copies and compute can overlap"},
        (0.10, 0.15),
    ),
    Row(
        "v_prefix",
        {"zh": "v-prefix API 替换 npuir_xxx", "en": "v-prefix API instead of npuir_xxx"},
        {"zh": "Vector 类", "en": "vector operators"},
        (0.05, 0.15),
    ),
    Row(
        "fewer_buffers",
        {"zh": "减少中间 buffer", "en": "fewer intermediate buffers"},
        {"zh": "UB 压力", "en": "pressure on local memory"},
        (0.05, 0.10),
    ),
    Row(
        "data_reuse",
        {"zh": "data reuse / 寄存器化", "en": "data reuse and registers"},
        {"zh": "重复访存", "en": "repeated memory access"},
        (0.05, 0.15),
    ),
    Row(
        "fast_math",
        {"zh": "fast-math 编译选项", "en": "fast-math"},
        {"zh": "超越函数或归约密集", "en": "many transcendental calls or reductions"},
        (0.00, 0.50),
        in_seed=False,
    ),
    Row(
        "loop_order",
        {"zh": "循环交换", "en": "loop interchange"},
        {"zh": "最内层访存不连续", "en": "the innermost loop strides through memory"},
        (0.00, 0.30),
        in_seed=False,
    ),
    Row(
        "loop_kind",
        {"zh": "循环类型", "en": "loop kind"},
        {"zh": "循环可展开或并行", "en": "a loop can be unrolled or run in parallel"},
        (0.00, 0.05),
        in_seed=False,
    ),
    Row(
        "compile_flags",
        {"zh": "编译选项", "en": "compile flags"},
        {"zh": "编译器未充分优化", "en": "the compiler leaves something"},
        (0.00, 0.10),
        in_seed=False,
    ),
    Row(
        "pass_configs",
        {"zh": "pass_configs", "en": "pass_configs"},
        {"zh": "编译 pass 可调", "en": "passes can be configured"},
        (0.00, 0.05),
        in_seed=False,
    ),
)

FLOW = Flow(
    name="tilelang",
    stage=4,
    rows=ROWS,
    stop=StopRules(max_rounds=10, patience=3, max_experiments=120),
    trials_per_round=8,
    guides={"tilelang-c": "docs/tilelang-c.md"},
)
