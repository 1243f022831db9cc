"""The performance budget: read where it cannot be misread, kept as a text with a note everywhere else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.operator.budget import Budget, read_budget, stated_budgets
from opratchet.operator.markdown import statements

READ = {
    "35 us": (35.0, "latency_us", "device"),
    "35us": (35.0, "latency_us", "device"),
    "≤ 35 μs": (35.0, "latency_us", "device"),
    "0.035 ms": (35.0, "latency_us", "device"),
    "＜３５ 微秒": (35.0, "latency_us", "device"),
    "1,240.5 us": (1240.5, "latency_us", "device"),
    "3.5e1 us（P0 512x1024）": (35.0, "latency_us", "device"),
    "512 x 1024 下 35us 以内": (35.0, "latency_us", "device"),
    "910B2 上 35 us": (35.0, "latency_us", "device"),
    "35 us (simulated)": (35.0, "latency_us", "simulated"),
    "仿真 35 us": (35.0, "latency_us", "simulated"),
    "35 us on the cost model": (35.0, "latency_us", "simulated"),
    "2x": (2.0, "speedup", ""),
    "1.5×": (1.5, "speedup", ""),
    "首跑成功性能的 2 倍": (2.0, "speedup", ""),
    "首跑精度成功性能的2倍": (2.0, "speedup", ""),
    "≥ 2x": (2.0, "speedup", ""),
    "2x on the NPU": (2.0, "speedup", "device"),
    "2x, simulated": (2.0, "speedup", "simulated"),
}


@pytest.mark.parametrize("text", READ)
def test_a_figure_with_a_unit_is_a_budget(text: str) -> None:
    budget = read_budget([(text, 9)])
    assert budget is not None
    assert budget.value is not None
    assert (budget.metric, budget.kind) == READ[text][1:]
    assert math.isclose(budget.value, READ[text][0])
    assert (budget.text, budget.line, budget.note) == (text, 9, "")


UNREAD = {
    "待定": "no figure",
    "as fast as possible": "no figure",
    "35": "no figure with a unit",
    "35 ticks": "no figure with a unit",
    "-5 us": "no figure",
    "35,5 us": "no figure",
    "1/2 倍": "no figure",
    "提升 30%": "no figure",
    "35 us, later 20 us": "2 figures",
    "2x, i.e. 35 us": "2 figures",
    "30~35 us": "range",
    "30 us - 35": "range",
    "30 到 35 us": "range",
    ">= 35 us": "wrong way round",
    "不低于 35 us": "wrong way round",
    "35 us 以上": "wrong way round",
    "2 倍以内": "wrong way round",
    "0 us": "not a positive number",
    "1e999 us": "not a positive number",
    "当前 70 us": "not clear that the figure is the target",
    "baseline: 70 us": "not clear that the figure is the target",
    "1x": "not clear that the factor is a speedup",
    "耗时为首版的 1.2 倍": "not clear that the factor is a speedup",
    "提升 2 倍": "how much",
}


@pytest.mark.parametrize("text", UNREAD)
def test_what_could_be_misread_stays_a_text_with_a_note(text: str) -> None:
    budget = read_budget([(text, 9)])
    assert budget is not None
    assert (budget.value, budget.metric, budget.kind, budget.text) == (None, "", "", text)
    assert UNREAD[text] in budget.note


def test_the_first_that_can_be_read_counts_and_another_is_told() -> None:
    assert read_budget([]) is None
    assert read_budget([("待定", 3), ("35 us", 40)]) == Budget(
        35.0, "latency_us", "device", "35 us", 40
    )
    assert read_budget([("35 us", 3), ("0.035 ms", 40)]) == Budget(
        35.0, "latency_us", "device", "35 us", 3
    )
    first = read_budget([("35 us", 3), ("20 us", 40)])
    assert first is not None
    assert first.value == 35
    assert first.note == "line 40 says otherwise: `20 us`"


BODY = """\
## 10. 性能要求

- **性能目标**: 首跑成功性能的 2 倍
- 其他目标: 1 us
| 指标 | 要求 |
|---|---|
| 性能预算 | 35 us |
| 性能目标 | 说明 |
### Performance budget: 40 us
性能目标由访存决定。
<!-- 性能目标: 1 us -->
```text
性能目标: 2 us
```
perf target：`50 us`
"""


def test_the_lines_of_a_document_that_state_a_budget() -> None:
    assert list(stated_budgets(list(statements(BODY.splitlines(), first=21)))) == [
        ("首跑成功性能的 2 倍", 23),
        ("35 us", 27),
        ("40 us", 29),
        ("50 us", 35),
    ]


@settings(max_examples=300, deadline=None)
@given(text=st.text() | st.lists(st.sampled_from(["35", " ", "us", "x", "倍", "-", "≥", ",", ".", "e9", "到", "仿真"])).map("".join))  # fmt: skip
def test_any_text_is_a_positive_figure_or_has_a_note(text: str) -> None:
    budget = read_budget([(text, 1)])
    assert budget is not None
    assert budget.text == text
    if budget.value is None:
        assert budget.note
    else:
        assert math.isfinite(budget.value)
        assert budget.value > 0
