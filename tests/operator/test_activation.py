"""The gate: both proofs or nothing, the last statement counts, and what is missing is said with its remedy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.operator.activation import Activation, activation
from opratchet.operator.memory import append_rows, append_section, read_memory

NOW = "ab" * 32
OLD = "cd" * 32

HEAD = (
    "# Plan: `attention`\n\n## Per-module verification log (mandatory)\n\n"
    "| When | Module | Staged file | Tensors compared | rtol | atol | all_close | Key stats | Command or script |\n"
    "|------|--------|-------------|------------------|------|------|-----------|-----------|-------------------|\n"
)
LAYOUT = "\n## 检查\n\n- layout 检查：exit 0\n"


def row(
    tensors: str, verdict: str, file: str = "attention_impl.py", stats: str = "max_diff 1e-6"
) -> str:
    return f"| 2026-11-30 | M1 | `{file}` | {tensors} | 1e-3 | 1e-3 | {verdict} | {stats} | `python test.py` |\n"


def gate(text: str, *outputs: str) -> Activation:
    return activation(read_memory(text), outputs or ("out", "lse"), NOW)


def flaws(found: Activation) -> list[tuple[str, str, str, int]]:
    return [(one.proof, one.output, one.why, one.line) for one in found.missing]


PASSES = {
    "upstream's table, one row for all": HEAD + row("out, lse", "✅") + LAYOUT,
    "a row for each output": HEAD + row("out", "true") + row("lse", "通过") + LAYOUT,
    "no tensors named": HEAD + row("", "yes") + LAYOUT,
    "the words of the procedure": "- E2E tensor compare：所有输出 all_close: true\n- layout 检查：exit 0\n",
    "English lines": "- **E2E tensor compare:** all outputs all_close: true\n- **Layout check:** exit 0\n",
    "yaml": "```yaml\nall_close: true\nlayout: exit 0\n```\n",
    "failed before, mended since": HEAD + row("out, lse", "❌") + row("out, lse", "✅") + LAYOUT,
    "bound to this version": f"all_close: true, impl sha256: {NOW[:12]}\nlayout: exit 0, impl sha256: {NOW.upper()}\n",
    "another version before": f"all_close: false, impl sha256: {OLD}\nall_close: true\nlayout: exit 0\n",
}


@pytest.mark.parametrize("name", PASSES)
def test_both_proofs_open_the_gate(name: str) -> None:
    found = gate(PASSES[name])
    assert found.ok
    assert found.missing == ()
    assert found.block() == ""


FAILS = {
    "nothing at all": (
        "# Plan\n",
        [
            ("compare", "out", "absent", 0),
            ("compare", "lse", "absent", 0),
            ("layout", "", "absent", 0),
        ],
    ),
    "no layout check": (HEAD + row("out, lse", "✅"), [("layout", "", "absent", 0)]),
    "no tensor compare": (
        LAYOUT,
        [("compare", "out", "absent", 0), ("compare", "lse", "absent", 0)],
    ),
    "one output is left out": (HEAD + row("out", "✅") + LAYOUT, [("compare", "lse", "absent", 0)]),
    "one output failed": (
        HEAD + row("out, lse", "✅") + row("lse", "❌") + LAYOUT,
        [("compare", "lse", "false", 8)],
    ),
    "layout failed": (
        HEAD + row("", "1") + "\nlayout check | exit 1\n",
        [("layout", "", "false", 9)],
    ),
    "layout failed since": (
        HEAD + row("", "1") + LAYOUT + "- layout 检查：exit 1\n",
        [("layout", "", "false", 12)],
    ),
    "unreadable": (
        HEAD + row("", "looks good") + "\nlayout check: fine\n",
        [
            ("compare", "out", "unreadable", 7),
            ("compare", "lse", "unreadable", 7),
            ("layout", "", "unreadable", 9),
        ],
    ),
    "of another version": (
        HEAD
        + row("", "true", stats=f"impl sha256: {OLD[:16]}")
        + f"\nlayout: exit 0, impl sha256: {OLD}\n",
        [
            ("compare", "out", "stale", 7),
            ("compare", "lse", "stale", 7),
            ("layout", "", "stale", 9),
        ],
    ),
    "failed, of another version": (
        f"all_close: false, impl sha256: {OLD}\nlayout: exit 0\n",
        [("compare", "out", "stale", 1), ("compare", "lse", "stale", 1)],
    ),
    "only modules": (
        HEAD + row("", "true", file="attention_module1.py") + LAYOUT,
        [("compare", "out", "absent", 0), ("compare", "lse", "absent", 0)],
    ),
    "only in a comment": (
        "<!--\nall_close: true\n-->\nlayout: exit 0\n",
        [("compare", "out", "absent", 0), ("compare", "lse", "absent", 0)],
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_one_proof_that_lacks_closes_the_gate(name: str) -> None:
    text, expected = FAILS[name]
    found = gate(text)
    assert not found.ok
    assert flaws(found) == expected
    for language in ("zh", "en"):
        block = found.block(language)
        assert "opratchet check --prove custom/<op>" in block
        for one in found.missing:
            assert one.what_in(language) in block
            assert one.why_in(language) in block
            assert str(one.line or "") in block


def test_what_each_missing_proof_says() -> None:
    lse, layout = gate(HEAD + row("out", "✅") + row("lse", "❌")).missing
    assert lse.what == "E2E tensor compare of `lse`, all_close: true"
    assert lse.fix == "Mend the implementation, then run `opratchet check --prove custom/<op>`."
    assert layout.what == "layout check, exit 0"
    assert "appends what it finds" in layout.fix


def test_the_block_in_chinese() -> None:
    found = gate(HEAD + row("lse", "✅") + row("out", "❌") + LAYOUT)
    assert found.block(folder="custom/attention") == (
        "激活检查未通过：停止，不加载任何 tune-* 阶段，控制权交还 pypto-op-orchestrator。\n"
        "custom/attention/MEMORY.md 中缺少的证据：\n"
        "- E2E tensor compare（`out`）all_close: true：第 8 行记录为未通过\n"
        "    先修复实现，再运行 `opratchet check --prove custom/attention`\n"
        "- 第 7 行没有实现的哈希：予以采纳，但未与当前版本绑定\n"
        "- 第 12 行没有实现的哈希：予以采纳，但未与当前版本绑定\n"
        "补齐两项证据的命令：opratchet check --prove custom/attention"
    )


def test_the_block_in_english() -> None:
    found = gate(f"all_close: true, impl sha256: {NOW}\n")
    assert found.block("en", "custom/attention") == (
        "Activation refused: no tune-* stage is loaded, control goes back to pypto-op-orchestrator.\n"
        "Proofs that custom/attention/MEMORY.md lacks:\n"
        "- layout check, exit 0: nothing is on record\n"
        "    Run `opratchet check --prove custom/attention`: it makes the check and appends what it finds.\n"
        "The command that makes both proofs: opratchet check --prove custom/attention"
    )


def test_notes_tell_what_is_not_bound_and_what_was_passed_over() -> None:
    assert [str(note) for note in gate(PASSES["yaml"]).notes] == [
        f"line {line} carries no hash of the implementation: accepted, but not bound to this version"
        for line in (2, 3)
    ]
    assert gate(PASSES["bound to this version"]).notes == ()
    assert (
        str(gate(FAILS["only modules"][0]).notes[-1])
        == "line 7 compares a module, not the whole operator"
    )
    others = gate(HEAD + row("golden vs pypto", "✅") + LAYOUT).notes[-1]
    assert "golden, vs, pypto" in str(others)
    assert "第 7 行" in others.words("zh")


def test_without_known_outputs_only_what_speaks_of_all_counts() -> None:
    assert activation(read_memory("all_close: true\nlayout: exit 0"), (), NOW).ok
    [missing] = activation(read_memory("out all_close: true\nlayout: exit 0"), (), NOW).missing
    assert missing.what == "E2E tensor compare of all outputs, all_close: true"


def test_rows_that_are_appended_prove_it() -> None:
    text = HEAD + row("", "❌") + LAYOUT
    text = append_section(text, "Evidence", "Made by `check --prove`.")
    header = ("When", "Check", "Tensors compared", "all_close", "impl_sha256")
    text = append_rows(
        text, "Evidence", header, [("12-01", "E2E", name, "true", NOW) for name in ("out", "lse")]
    )
    text = append_rows(
        text, "Evidence", ("Check", "Exit code", "impl_sha256"), [("layout check", "0", NOW)]
    )
    found = gate(text)
    assert found.ok
    assert found.notes == ()


PIECES = ["all_close: ", "true", "✅", "false", "layout: ", "exit 0", "exit 1", "\n", "| a | all_close |\n", "|---|---|\n", "| out | ", " |\n", "impl sha256: ", NOW, OLD, ", ", "out ", "```", "<!--"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    text=st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    outputs=st.lists(st.sampled_from(["out", "lse"]), unique=True),
)
def test_any_text_opens_the_gate_or_says_what_is_missing(text: str, outputs: list[str]) -> None:
    found = activation(read_memory(text), outputs, NOW)
    assert found.ok == (found.block() == "") == (found.block("en") == "")
    for one in found.missing:
        assert (one.line == 0) == (one.why == "absent")
        assert one.what
        assert one.fix
    if found.ok:
        assert "exit 0" in text
        assert "all_close" in text
