"""The two pages for people: the seed's template stands in them word for word, and they say where figures come from."""

from __future__ import annotations

import re
from pathlib import PurePath

import pytest

from opratchet.ledger.events import Noted, RoundFinished, StrategySkipped
from opratchet.ledger.state import fold
from opratchet.ledger.words import MetricKind, Outcome, StopReason, TargetRecord
from opratchet.report.opt_log import opt_log
from opratchet.report.stage_result import stage_result
from opratchet.report.words import OUTCOME, Lang
from tests.builders import Story, full_story, ratio
from tests.report.weights import weighted

FOLDER = PurePath("examples/norm/rmsnorm/perf_opt")

# The seed's template of opt_log.md, up to its placeholders.
OPT_LOG_KEYS = [
    "# rmsnorm 性能调优日志",
    "## 基线",
    "- latency: ",
    "- 来源: rmsnorm.py",
    "## 迭代记录",
    "| iter | 策略 | latency(us) | 提升 | 精度 |",
    "|------|------|-------------|------|------|",
    "## 结论",
    "- 最优版本: rmsnorm.py (iter ",
    "- 最终 latency: ",
    "- 总提升: ",
    "- 中止原因: ",
]
# The seed's completion report.
STAGE_RESULT_KEYS = [
    "stage",
    "project",
    "operator",
    "output",
    "verdict",
    "iterations",
    "baseline_latency",
    "final_latency",
    "improvement",
    "stop_reason",
    "skills_consulted",
    "summary",
    "issues",
]
LANGUAGES: tuple[Lang, Lang] = ("zh", "en")


def page(story: Story, lang: Lang = "zh") -> str:
    return opt_log(fold(story.lines), lang, FOLDER)


def result(story: Story, lang: Lang = "zh") -> dict[str, str]:
    """The keys of the completion report with their values."""
    text = stage_result(fold(story.lines), lang, FOLDER)
    keys = text.split("## Stage Result\n")[1]
    return dict(re.findall(r"^- (\w+): (.*)$", keys, re.MULTILINE))


def table(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, its head and rule included."""
    below = text.split(heading + "\n", 1)[1].splitlines()
    lines = []
    for line in below[next(i for i, text in enumerate(below) if text.startswith("|")) :]:
        if not line.startswith("|"):
            break
        lines.append([part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]])
    return lines


def key(text: str, name: str) -> str:
    """The value behind `- name: `."""
    found = re.search(rf"^- {re.escape(name)}: (.*)$", text, re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_opt_log_has_the_seeds_template_in_its_order() -> None:
    text = page(full_story())
    places = []
    for literal in OPT_LOG_KEYS:
        found = re.search("^" + re.escape(literal), text, re.MULTILINE)
        assert found is not None, literal
        places.append(found.start())
    assert places == sorted(places)


def test_the_title_comes_first_and_then_where_the_figures_come_from() -> None:
    head = page(full_story()).splitlines()[:4]
    assert head[0] == "# rmsnorm 性能调优日志"
    assert "measured" in head[2]
    assert "tilelang-c" in head[2]
    assert "Test CPU, 2.0 GHz" in head[2]
    assert "不是 NPU" in head[2]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("kind", list(MetricKind))
def test_every_page_names_its_metric_kind_in_its_first_lines(lang: Lang, kind: MetricKind) -> None:
    story = Story(kind=kind)
    story.open()
    story.close()
    state = fold(story.lines)
    for view in (opt_log, stage_result):
        head = "\n".join(view(state, lang, FOLDER).splitlines()[:3])
        assert kind.value in head
        assert "NPU" in head


def test_figures_of_an_npu_are_not_denied() -> None:
    story = Story(machine={"label": "Ascend 910B2C", "device": "npu"})
    story.open()
    head = "\n".join(page(story).splitlines()[:3])
    assert "Ascend 910B2C" in head
    assert "不是 NPU" not in head


def test_baseline_and_conclusion_hold_the_figures() -> None:
    text = page(full_story())
    assert key(text, "latency") == "400.00 us"
    assert key(text, "最终 latency") == "100.00 us"
    assert key(text, "总提升") == "75.0%"
    assert key(text, "中止原因") == "连续无提升"
    assert key(text, "最优版本") == "rmsnorm.py (iter 3)"


def test_the_conclusion_uses_the_fresh_figures_and_not_the_winners_first_ones() -> None:
    story = Story()
    story.open(400.0)
    story.round("adopted", speedup=4.0)
    story.stop()
    story.measure_final(500.0, 200.0)
    text = page(story)
    assert key(text, "latency") == "400.00 us"
    assert key(text, "最终 latency") == "200.00 us"
    assert key(text, "总提升") == "60.0%"
    report = result(story)
    assert report["baseline_latency"] == "500.00 us"
    assert report["final_latency"] == "200.00 us"
    assert report["improvement"] == "60.0%"


def test_the_iteration_table_has_one_line_a_round() -> None:
    rows = table(page(full_story()), "## 迭代记录")[2:]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [row[2] for row in rows] == ["200.00", "200.00", "100.00", "200.00", "-"]
    assert [row[3] for row in rows] == ["50.0%", "50.0%", "75.0%", "50.0%", "-"]
    assert [row[4] for row in rows] == ["pass", "pass", "pass", "pass", "-"]
    outcomes = ["采纳", "回滚：无提升", "采纳", "回滚：变慢", "丢弃：编译失败"]
    assert [row[5] for row in rows] == outcomes
    assert rows[0][6] == "2.00x [1.98, 2.02]"
    assert rows[0][7] == "[198.00, 202.00]"
    assert rows[0][8] == "rmsnorm_opt_v1.py"


def test_accuracy_failure_is_fail() -> None:
    story = Story()
    story.open()
    story.round("accuracy_failed")
    assert table(page(story), "## 迭代记录")[2][4] == "fail"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_shown_with_its_reason(lang: Lang, outcome: Outcome) -> None:
    story = Story()
    story.open()
    story.round(outcome.value)
    story.close()
    heading = {"zh": "## 附录 A：全部尝试", "en": "## Appendix A: every trial"}[lang]
    row = table(page(story, lang), heading)[2]
    assert row[3] == OUTCOME[lang][outcome]
    assert row[6] == f"reason of {outcome.value}"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_all_outcomes_have_different_words(lang: Lang) -> None:
    assert len(set(OUTCOME[lang].values())) == len(Outcome)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_final_table_is_by_workload(lang: Lang) -> None:
    rows = table(page(full_story(), lang), "## Final Performance Test Data")
    assert rows[0] == ["kernel_id", "workload_id", "baseline_us", "final_us", "final_candidate_id"]
    assert rows[2:] == [
        ["rmsnorm", "small", "400.00", "100.00", "trial-4"],
        ["rmsnorm", "large", "400.00", "100.00", "trial-4"],
    ]


def test_diagnoses_and_skipped_strategies_are_in_the_appendix() -> None:
    story = full_story()
    why = "no asynchronous copies"
    for incumbent in (story.baseline, story.incumbent):
        story.add(StrategySkipped(strategy="double_buffer", incumbent=incumbent, why=why))
    text = page(story)
    diagnoses = table(text, "## 附录 B：每轮之前的诊断")[2:]
    assert "compute_density（0.80：evidence of compute_density）" in diagnoses[0][2]
    assert "memory_bound（0.60：evidence of memory_bound）" in diagnoses[1][2]
    skipped = table(text, "## 附录 C：未采用的策略及原因")[2:]
    assert skipped == [["double_buffer", why, "2"]]


def test_a_text_with_bars_and_line_ends_stays_in_its_cell() -> None:
    story = full_story()
    story.add(StrategySkipped(strategy="a|b", incumbent=story.incumbent, why="first\n| second |"))
    story.add(Noted(text="one\n\n## two"))
    text = page(story)
    assert table(text, "## 附录 C：未采用的策略及原因")[2:] == [
        ["a\\|b", "first \\| second \\|", "1"]
    ]
    assert "\n## two" not in text
    assert result(story)["issues"] == "one ## two"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_stage_result_has_every_key_of_the_seed_in_its_order(lang: Lang) -> None:
    report = result(full_story(), lang)
    assert list(report) == STAGE_RESULT_KEYS
    assert report["stage"] == "4"
    assert report["project"] == "norm"
    assert report["operator"] == "rmsnorm"
    assert report["output"] == "examples/norm/rmsnorm/perf_opt/rmsnorm.py"
    assert report["verdict"] == "TUNING_COMPLETED"
    assert report["iterations"] == "5"
    assert report["baseline_latency"] == "400.00 us"
    assert report["final_latency"] == "100.00 us"
    assert report["improvement"] == "75.0%"
    assert report["skills_consulted"] == "docs/strategies.md"
    assert "4.00x" in report["summary"]
    assert report["issues"] == "none"


@pytest.mark.parametrize(
    ("reason", "zh"),
    [
        (StopReason.TARGET_REACHED, "达目标"),
        (StopReason.MAX_ROUNDS, "迭代上限"),
        (StopReason.NO_GAIN, "连续无提升"),
        (StopReason.USER_STOP, "用户叫停"),
        (StopReason.MAX_EXPERIMENTS, "预算用尽"),
        (StopReason.TIME_BUDGET, "预算用尽"),
        (StopReason.NOTHING_LEFT, "无可尝试策略"),
    ],
)
def test_stop_reasons_in_the_seeds_words(reason: StopReason, zh: str) -> None:
    story = Story()
    story.open()
    story.close(reason, detail="a detail")
    assert result(story)["stop_reason"] == key(page(story), "中止原因") == zh
    assert key(page(story), "中止说明") == "a detail"


@pytest.mark.parametrize(
    ("lang", "sentence"),
    [("zh", "交付的是基线"), ("en", "the baseline is delivered")],
)
def test_nothing_better_delivers_the_baseline_and_says_so(lang: Lang, sentence: str) -> None:
    story = Story()
    story.open(400.0)
    story.round("no_gain")
    story.stop()
    story.deliver()
    report = result(story, lang)
    assert sentence in report["summary"]
    assert sentence in page(story, lang)
    assert report["final_latency"] == report["baseline_latency"] == "400.00 us"
    assert report["improvement"] == "0.0%"


def test_each_documentation_page_is_named_once() -> None:
    story = Story()
    story.open()
    for document in ("docs/b.md", "docs/a.md", "docs/b.md"):
        story.begin_round(document=document)
        story.add(
            RoundFinished(
                round=story.rounds,
                adopted=None,
                shown=None,
                version="",
                incumbent=story.incumbent,
            )
        )
    assert result(story)["skills_consulted"] == "docs/b.md, docs/a.md"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_prefix_of_a_run_can_be_shown(lang: Lang) -> None:
    lines = full_story().lines
    for length in range(1, len(lines) + 1):
        state = fold(lines[:length])
        assert opt_log(state, lang, FOLDER)
        text = stage_result(state, lang, FOLDER)
        assert ("TUNING_COMPLETED" in text) == state.is_complete


def test_an_unfinished_run_has_dashes_and_not_zeros() -> None:
    story = Story()
    story.open()
    story.round("adopted")
    report = result(story)
    assert report["verdict"] == "TUNING_UNFINISHED"
    assert report["stop_reason"] == "未完成"
    assert report["final_latency"] == "- us"
    assert report["improvement"] == "-"
    assert key(page(story), "同时复测的基线") == "- us"


def test_a_run_that_has_only_begun_does_not_say_what_it_delivers() -> None:
    story = Story()
    story.open()
    assert "交付" not in page(story)
    assert "交付" not in result(story)["summary"]


def test_the_target_is_shown_with_its_source() -> None:
    story = Story(target=TargetRecord(metric="latency_us", value=40.0, source="DESIGN.md:12"))
    story.open()
    assert "latency ≤ 40 us (DESIGN.md:12)" in page(story)


def test_pages_are_the_same_each_time() -> None:
    lines = full_story().lines
    first, second = fold(lines), fold(lines)
    assert opt_log(first, "zh", FOLDER) == opt_log(second, "zh", FOLDER)


@pytest.mark.parametrize(
    ("lang", "words"), [("zh", "合并受阻于"), ("en", "the merge is blocked by")]
)
def test_a_blocked_merge_names_the_workloads_with_their_figures(lang: Lang, words: str) -> None:
    story = Story()
    story.open()
    story.begin_round()
    trial = story.begin_trial()
    story.end_trial(trial.trial, Outcome.REGRESSED)
    blocked = {"ratios": {"small": ratio(1.5), "large": ratio(0.7)}, "blocked_by": ["large"]}
    event = story.lines[-1].event.model_copy(update=blocked)
    story.lines[-1] = story.lines[-1].model_copy(update={"event": event})
    heading = {"zh": "## 附录 A：全部尝试", "en": "## Appendix A: every trial"}[lang]
    reason = table(page(story, lang), heading)[-1][-1]
    assert reason.startswith("reason of regressed; ")
    assert f"{words} large 0.70x [0.69, 0.71]" in reason


@pytest.mark.parametrize("lang", LANGUAGES)
def test_weights_are_named_where_they_differ(lang: Lang) -> None:
    plain = Story()
    plain.open()
    assert "large 1" not in page(plain, lang)
    head = page(weighted(Story(), small=2.5), lang).splitlines()[:6]
    assert any("small 2.5, large 1" in line for line in head)
