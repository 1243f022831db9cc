"""The two proofs, in each form in which a MEMORY.md may state them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opratchet.operator.memory import Evidence, compare_evidence, layout_evidence, read_memory

SHA = "0123456789ab"

# The columns of upstream's template, word for word.
UPSTREAM = """\
## Per-module verification log (mandatory)

| When | Module | Staged file (e.g. `<op>_module12.py`) | Tensors compared (name / role) | rtol | atol | `all_close` | Key stats (e.g. `out_of_tolerance_ratio`, `max_diff` from return dict) | Command or script |
|------|--------|----------------------------------------|-------------------------------|------|------|-------------|------------------------------------------------------------------------|-------------------|
"""


def compared(text: str) -> list[Evidence]:
    return compare_evidence(read_memory(text))


def laid_out(text: str) -> list[Evidence]:
    return layout_evidence(read_memory(text))


def verdicts(found: list[Evidence]) -> list[bool | None]:
    return [evidence.passed for evidence in found]


# --- tensor compare -----------------------------------------------------------------------------------------

WORDS = {
    "true": True, "True": True, "yes": True, "✅": True, "✅\ufe0f": True, "1": True, "通过": True, "`true`": True,
    "**TRUE**": True, "false": False, "No": False, "❌": False, "0": False, "失败": False,
    "maybe": None, "true?": None, "not true": None, "true / false": None, "☐": None, "2": None, "true (1 of 2)": None,
}  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_words_for_yes_and_no(word: str) -> None:
    assert verdicts(compared(f"all_close: {word}")) == [WORDS[word]]
    row = f"| 2026-11-30 | M1 | `softmax_impl.py` | out | 1e-3 | 1e-3 | {word} | | |\n"
    assert verdicts(compared(UPSTREAM + row)) == [WORDS[word]]


LINES = {
    "all_close: true": (),
    "- **all_close:** true": (),
    "* `all_close`：true": (),
    "all_close | true": (),
    "- [x] all_close: true": (),
    "```yaml\nall_close: true  # for all outputs\n```": (),
    "E2E all_close: true": (),
    "e2e_tensor_compare.all_close: true": (),
    "detailed_tensor_compare all_close: true": (),
    "E2E tensor compare：所有输出 all_close: true": (),
    "E2E tensor compare: all outputs all_close: true": (),
    "- **E2E tensor compare**: all_close = True": (),
    "端到端张量比对：全部输出 all_close：通过": (),
    "all outputs all_close: yes": (),
    "out all_close: true": ("out",),
    "out.all_close: true": ("out",),
    "all_close(lse): true": ("lse",),
    "all_close[out]: true": ("out",),
    "E2E tensor compare: out, lse all_close: true": ("out", "lse"),
    "| Check | Result |\n|---|---|\n| all_close | true |": (),
    "| When | Check | Result |\n|---|---|---|\n| now | E2E tensor compare | all_close: true |": (),
}


@pytest.mark.parametrize("text", LINES)
def test_a_tensor_compare_is_stated_in_many_ways(text: str) -> None:
    [evidence] = compared(text)
    assert (evidence.passed, evidence.outputs, evidence.sha256) == (True, LINES[text], "")
    assert laid_out(text) == []


NOTHING = [
    "The gate asks for all_close: true on all outputs.",
    "- **Rule:** `all_close: true` on every output leaf",
    "E2E tensor compare: 必须 all_close: true",
    "E2E tensor compare: see the log",
    "- [ ] all_close: true",
    "> all_close: true",
    "<!-- all_close: true -->",
    "<!--\nall_close: true\n-->",
    "```\nall_close: true\n```",
    "```markdown\n- all_close: true\n```",
    "detailed_tensor_compare_ok: true",
    "not_all_close: true",
    "| a | all_close |\n| 1 | true |",
    UPSTREAM + "| | M1 | `<operator_name>_module1.py` | | 1e-3 | 1e-3 | | | |\n",
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_speaks_of_a_proof_is_none(text: str) -> None:
    assert compared(text) == []


def test_the_rows_of_upstreams_table() -> None:
    text = UPSTREAM + (
        "| 11-29 | M1 | `attention_module1.py` | scores | 1e-3 | 1e-3 | ✅ | | |\n"
        "| 11-30 | E2E | `attention_impl.py` | `out` / context, lse[0] | 1e-3 | 1e-3 | true | max_diff 1e-6 | `a \\| b` |\n"
        "| 11-30 | E2E | `attention_impl.py` | all outputs | 1e-3 | 1e-3 | no | | |\n"
        "| 12-01 | E2E | `attention_impl.py` | | 1e-3 | 1e-3 | | | |\n"
    )
    found = compared(text)
    assert [(one.line, one.passed, one.is_module) for one in found] == [
        (5, True, True),
        (6, True, False),
        (7, False, False),
        (8, None, False),
    ]
    assert found[1].outputs == ("out", "context", "lse[0]")
    assert found[2].outputs == found[3].outputs == ()
    assert found[1].text == text.splitlines()[5]


def test_a_table_in_chinese() -> None:
    text = (
        "| 时间 | 文件 | 对比张量（名称） | all_close | impl_sha256 |\n|---|---|---|---|---|\n"
        f"| 11-30 | softmax_impl.py | 输出 y、lse | 通过 | {SHA} |\n"
        "| 12-01 | softmax_impl.py | 所有输出 | 失败 | - |\n"
    )
    first, second = compared(text)
    assert (first.passed, first.outputs, first.sha256) == (True, ("y", "lse"), SHA)
    assert (second.passed, second.outputs, second.sha256) == (False, (), "")


# --- layout check -------------------------------------------------------------------------------------------

LAYOUT = {
    "layout: exit 0": True,
    "- **layout 检查**：exit 0": True,
    "layout 检查: `exit 0`": True,
    "layout check: exit 1": False,
    "layout check | exit 0": True,
    "Layout check: exit code 0": True,
    "layout exit code: 0": True,
    "layout_exit: 2": False,
    "layout 检查：退出码 0": True,
    "layout lint: exit -1": False,
    "layout check: passed": None,
    "layout check: exit 0 is needed": None,
    "layout exit code: zero": None,
    "```yaml\nlayout_check: exit 0\n```": True,
    "| Check | Result |\n|---|---|\n| layout check | exit 0 |": True,
    "| When | Check | Command | Exit code |\n|---|---|---|---|\n| now | layout | `opratchet layout` | 0 |": True,
    "| layout | exit code |\n|---|---|\n| softmax_impl.py | 1 |": False,
    "| layout | exit code |\n|---|---|\n| softmax_impl.py | |": None,
    "| When | layout |\n|---|---|\n| now | exit 0 |": True,
    "| When | layout check |\n|---|---|\n| now | fine |": None,
    "| 时间 | 检查 | 退出码 |\n|---|---|---|\n| now | layout 检查 | 0 |": True,
}


@pytest.mark.parametrize("text", LAYOUT)
def test_a_layout_check_is_stated_in_many_ways(text: str) -> None:
    assert verdicts(laid_out(text)) == [LAYOUT[text]]
    assert compared(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "layout: BSND",
        "- **Layout:** NZ",
        "Layout check exit 0 is what the gate asks for.",
        "| name | layout |\n|---|---|\n| query | BNSD |",
        "| step | exit code |\n|---|---|\n| build | 0 |",
        "| When | layout check |\n|---|---|\n| | - |",
        "- [ ] layout check: exit 0",
    ],
)
def test_the_layout_of_a_tensor_is_no_check(text: str) -> None:
    assert laid_out(text) == []


# --- the version that was checked ---------------------------------------------------------------------------

LONG = "ABCDEF0123" * 6 + "abcd"

BOUND = {
    f"all_close: true, impl sha256: {SHA}": SHA,
    f"all_close: true (impl_sha256={LONG})": LONG.lower(),
    f"all_close：true；impl sha256：`{SHA}`": SHA,
    f"- all_close: true\n- impl sha256: {SHA}\n": SHA,
    f"impl_sha256: {SHA}\nall_close: true": SHA,
    f"impl_sha256: {SHA}\n\nall_close: true": "",
    f"# a\nimpl_sha256: {SHA}\n# b\nall_close: true": "",
    f"| all_close | impl_sha256 |\n|---|---|\n| true | `{SHA}` |": SHA,
    f"| all_close | `impl sha256` |\n|---|---|\n| true | {LONG} |": LONG.lower(),
    f"| all_close | Command |\n|---|---|\n| true | test.py, impl sha256: {SHA} |": SHA,
    "| all_close | impl_sha256 |\n|---|---|\n| true | - |": "",
    "| all_close | impl_sha256 |\n|---|---|\n| true |": "",
}


@pytest.mark.parametrize("text", BOUND)
def test_the_hash_that_a_statement_carries(text: str) -> None:
    [evidence] = compared(text)
    assert (evidence.passed, evidence.sha256) == (True, BOUND[text])


def test_a_layout_check_carries_one_too() -> None:
    [evidence] = laid_out(f"layout: exit 0, impl sha256: {SHA}")
    assert (evidence.passed, evidence.sha256) == (True, SHA)


def test_each_statement_has_the_hash_below_it() -> None:
    text = f"all_close: false\nimpl sha256: {SHA}\nall_close: true\nimpl sha256: {LONG}\n"
    assert [one.sha256 for one in compared(text)] == [SHA, LONG.lower()]


@pytest.mark.parametrize("damaged", ["0123456", "xyz" * 6, "0" * 65, "pending"])
def test_a_damaged_hash_makes_a_statement_unreadable(damaged: str) -> None:
    row = f"| all_close | impl_sha256 |\n|---|---|\n| true | {damaged} |"
    for text in (f"all_close: true, impl sha256: {damaged}", row):
        [evidence] = compared(text)
        assert (evidence.passed, evidence.sha256) == (None, "")


PIECES = ["all_close", "layout", "检查", "exit", " 0", ": ", " | ", "\n", "true", "✅", "impl sha256: ", SHA, "e2e", "tensor compare", "|---|---|\n", "out", ",", "(", ")", "- ", "输出"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(text=st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_gives_statements_in_the_order_of_their_lines(text: str) -> None:
    for found in (compared(text), laid_out(text)):
        lines = [evidence.line for evidence in found]
        assert lines == sorted(lines)
        for evidence in found:
            assert evidence.sha256 == "" or 12 <= len(evidence.sha256) <= 64


def test_a_long_file_is_read_in_a_moment() -> None:
    row = (
        "| 11-30 | M1 | a_impl.py | "
        + "out, " * 200
        + " | 1e-3 | 1e-3 | true | "
        + "x " * 2000
        + "| |\n"
    )
    hostile = (
        "all_close" + " " * 100_000 + ": " + "a." * 50_000 + "\n" + "e2e_" * 50_000 + ": true\n"
    )
    assert len(compared(UPSTREAM + row * 2000 + hostile)) == 2000
