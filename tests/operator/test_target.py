"""The performance target: where it is taken from, and how it is written in a design document."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.errors import OpratchetError
from opratchet.ledger.words import TargetRecord
from opratchet.operator.discover import Overrides
from opratchet.operator.target import from_document
from tests.operator.folder import MANIFEST, load, refused, write

HEAD = "# norm\n\n基线延迟: 999 us\n\n## 3. 性能目标\n\n"  # the statement stands on line 7


def stated(folder: Path, text: str, name: str = "DESIGN.md") -> TargetRecord | None:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return from_document(path, ["big", "64x128"])


WRITTEN = {
    "目标延迟: 240 us": ("latency_us", 240),
    "- **目标延迟**：240 μs（512x1024）": ("latency_us", 240),
    "- 目标时延 ≤ 0.24 ms": ("latency_us", 240),
    "latency <= 0.24 ms": ("latency_us", 240),
    "Latency target: 1,240.5 us": ("latency_us", 1240.5),
    "latency_us: 240": ("latency_us", 240),
    "目标延迟 (us): 240": ("latency_us", 240),
    "性能目标：延迟不超过 240 微秒": ("latency_us", 240),
    "延迟控制在 2.4e2us 以内": ("latency_us", 240),
    "延迟：240us以内": ("latency_us", 240),
    "加速比1.5x以上": ("speedup", 1.5),
    "吞吐不低于1000次/秒即可": ("throughput", 1000),
    "耗时＜３毫秒": ("latency_us", 3000),
    "latency at most 1.5 s": ("latency_us", 1.5e6),
    "latency = 500 ns": ("latency_us", 0.5),
    "吞吐 >= 1000 /s": ("throughput", 1000),
    "吞吐量: 不低于 1000 次/秒": ("throughput", 1000),
    "throughput ≥ 2e3 calls/s": ("throughput", 2000),
    "加速比 1.5x": ("speedup", 1.5),
    "目标加速比：≥ 2 倍": ("speedup", 2),
    "相对基线加速比: 1.5": ("speedup", 1.5),
    "speedup over the baseline: 1.5x": ("speedup", 1.5),
    "speedup >= 1.2": ("speedup", 1.2),
    "优于基线": ("speedup", 1),
    "- 目标: 优于 baseline 即可": ("speedup", 1),
    "延迟优于基线": ("speedup", 1),
    "加速比: 优于基线": ("speedup", 1),
    "Better than the baseline.": ("speedup", 1),
    "| 指标 | 目标 |\n|---|---|\n| 延迟 | 240 us |": ("latency_us", 240),
    "| 指标 | 当前 | 目标 |\n|:-:|--|--|\n| 延迟 | 480 us | 240 us |": ("latency_us", 240),
    "| workload | 目标延迟 (us) |\n|--|--|\n| other | 240 |": ("latency_us", 240),
    "延迟由访存决定，共 3 次搬运。": None,
    "当前延迟: 480 us\n基线延迟: 500 us": None,
    "": None,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_target_is_read_from_a_document(tmp_path: Path, text: str) -> None:
    target = stated(tmp_path, HEAD + text + "\n\n## 4. 其他\n\n目标延迟: 1 us\n")
    expected = WRITTEN[text]
    if expected is None:
        assert target is None
        return
    assert target is not None
    assert target.metric == expected[0]
    assert math.isclose(target.value, expected[1])
    line = 7 + (text.count("\n") if text.startswith("|") else 0)
    assert target.source == f"DESIGN.md:{line}"


NO_TARGET = {
    "目标延迟: 待定": "not a number: 待定",
    "目标延迟:": "not a number",
    "目标延迟: TODO us": "not a number",
    "目标延迟: nan us": "not a number",
    "目标延迟: 240": "no unit",
    "目标延迟: 240 ticks": "`ticks`",
    "目标延迟: 0 us": "not a positive number",
    "目标延迟: -5 us": "not a positive number",
    "目标延迟: 1e999 us": "not a positive number",
    "目标延迟: 1e308 s": "not a positive number",
    "延迟: 240 us/次": "`us/次`",
    "延迟 >= 240 us": "wrong way round",
    "延迟不低于 240 us": "wrong way round",
    "吞吐: 100 GB/s": "`gb/s`",
    "吞吐 <= 100 /s": "wrong way round",
    "加速比: 30%": "`%`",
    "| 指标 | 目标 |\n|---|---|\n| 延迟 | 快 |": "not a number: 快",
}


@pytest.mark.parametrize("text", NO_TARGET)
def test_a_target_that_is_none_has_its_line(tmp_path: Path, text: str) -> None:
    message = refused(lambda: stated(tmp_path, HEAD + text))
    line = 7 + text.count("\n")
    assert f"{tmp_path / 'DESIGN.md'}:{line}: " in message
    assert NO_TARGET[text] in message


def test_the_message_shows_how_to_write_it(tmp_path: Path) -> None:
    assert "`目标延迟: 240 us`" in refused(lambda: stated(tmp_path, HEAD + "延迟: 快"))


def test_two_targets_that_differ_are_refused_and_one_said_twice_is_not(tmp_path: Path) -> None:
    message = refused(lambda: stated(tmp_path, HEAD + "延迟: 240 us\n吞吐: 10 /s\n"))
    assert "DESIGN.md:7" in message
    assert f"{tmp_path / 'DESIGN.md'}:8" in message
    same = stated(tmp_path, HEAD + "延迟: 240 us\nlatency <= 0.24 ms\n优于基线\n")
    assert same is not None
    assert same.value == 240


def test_a_named_workload_is_kept(tmp_path: Path) -> None:
    target = stated(tmp_path, HEAD + "64x128 目标延迟: 240 us")
    assert target is not None
    assert target.workload == "64x128"
    table = "| workload | 目标延迟 |\n|--|--|\n| big | 240 us |\n"
    target = stated(tmp_path, HEAD + table)
    assert target is not None
    assert target.workload == "big"


@pytest.mark.parametrize(
    "heading",
    [
        "# 性能目标",
        "## 3. 性能目标",
        "### 1.2、性能目标（P0）",
        "## Performance target",
        "##  performance Goals ##",
    ],
)
def test_headings(tmp_path: Path, heading: str) -> None:
    assert stated(tmp_path, f"{heading}\n延迟: 240 us\n") is not None
    assert (
        stated(tmp_path, f"{heading}\n### 细节\n延迟: 240 us\n") is not None
        or heading[:4] == "### "
    )


def test_only_that_section_counts(tmp_path: Path) -> None:
    for text in (
        "## 概述\n延迟: 240 us\n",
        "性能目标\n延迟: 240 us\n",
        "```\n## 性能目标\n延迟: 240 us\n```\n",
        "<!--\n## 性能目标\n延迟: 240 us\n-->\n",
        "## 性能目标\n<!-- 延迟: 240 us -->\n## 其他\n延迟: 1 us\n",
    ):
        assert stated(tmp_path, text) is None


def test_a_design_in_python_states_it_in_its_docstring(tmp_path: Path) -> None:
    text = '# x\n"""Design.\n\n## 性能目标\n\n延迟: 240 us\n"""\n# ## 性能目标\nX = "延迟: 1 us"\n'
    target = stated(tmp_path, text, "design.py")
    assert target is not None
    assert (target.value, target.source) == (240, "design.py:6")


def test_who_wins(tmp_path: Path) -> None:
    manifest = MANIFEST + '[target]\nthroughput = 50\nworkload = "big"\n'
    design, spec = HEAD + "延迟: 2 us", HEAD + "延迟: 3 us"
    code = '"""\n## 性能目标\n延迟: 4 us\n"""\n'
    everything = {"manifest": manifest, "DESIGN": design, "SPEC": spec, "design": code}
    root = write(tmp_path, **everything)

    def found(**overrides: float) -> tuple[str, float, str]:
        target = load(root, overrides=Overrides(**overrides)).target
        assert target is not None
        return target.metric, target.value, target.source

    assert found(target_us=1.0) == ("latency_us", 1.0, "command line")
    assert found(target_speedup=1.5) == ("speedup", 1.5, "command line")
    assert found(target_throughput=9) == ("throughput", 9.0, "command line")
    line = manifest.splitlines().index("throughput = 50") + 1
    assert found() == ("throughput", 50.0, f"opratchet.toml:{line}")
    (root / "opratchet.toml").write_text(MANIFEST)
    assert found() == ("latency_us", 2.0, "DESIGN.md:7")
    (root / "DESIGN.md").write_text("# nothing\n")
    assert found() == ("latency_us", 3.0, "SPEC.md:7")
    (root / "SPEC.md").unlink()
    assert found() == ("latency_us", 4.0, "design.py:3")
    (root / "design.py").unlink()
    operator = load(root)
    assert operator.target is None
    assert operator.provenance["target"] == "default"


def test_a_target_for_a_smoke_workload_is_refused(tmp_path: Path) -> None:
    manifest = MANIFEST + '[target]\nspeedup = 2\nworkload = "odd"\n'
    message = refused(lambda: load(write(tmp_path, manifest=manifest)))
    assert "`odd`" in message
    assert "big" in message


@pytest.mark.parametrize("figure", [0.0, -1.0, math.nan, math.inf])
def test_a_figure_on_the_command_line_has_to_be_positive(tmp_path: Path, figure: float) -> None:
    message = refused(lambda: load(write(tmp_path), overrides=Overrides(target_us=figure)))
    assert "command line" in message
    assert "--target-us" in message


def test_two_figures_on_the_command_line_are_refused(tmp_path: Path) -> None:
    both = Overrides(target_us=1.0, target_speedup=2.0)
    assert "latency_us, speedup" in refused(lambda: load(write(tmp_path), overrides=both))


PIECES = ["延迟", "吞吐", "加速比", "latency", ":", "≤", "|", "\n", "|--|--|\n", "目标", " 240", "us", "优于基线", "## ", "性能目标", "```\n", "e9", "(", "é"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=14))
def test_any_document_gives_a_target_none_or_a_told_error(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    try:
        target = stated(tmp_path_factory.getbasetemp(), HEAD + "".join(pieces))
    except OpratchetError as error:
        assert "DESIGN.md:" in str(error)
        return
    assert target is None or (math.isfinite(target.value) and target.value > 0)
