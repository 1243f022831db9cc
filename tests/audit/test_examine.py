"""A sound folder is clean, whatever the run went through; what is missing, moved or added is named."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any

import pytest

from opratchet.audit.examine import examine
from opratchet.audit.findings import Audit
from opratchet.ledger.state import fold
from opratchet.ledger.store import LEDGER, Ledger, read_lines
from opratchet.report.stage_result import stage_result
from opratchet.report.views import rebuild
from tests.audit.recorded import Events, first, forge, record


def told(audit: Audit) -> str:
    """All findings as text."""
    return "\n".join(f"{f.where}: {f.what} | {f.found} | {f.expected}" for f in audit.findings)


def files(audit: Audit) -> set[str]:
    """The files in which something was found."""
    return {finding.file for finding in audit.findings}


def tree(folder: Path) -> dict[str, bytes]:
    """Everything below a folder."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_sound_folder_is_clean_and_nothing_is_written(original: Path) -> None:
    before = tree(original.parent)
    audit = examine(original)
    assert told(audit) == ""
    assert audit.remarks == []
    assert audit.complete
    assert audit.counts["lines"] > 20
    assert tree(original.parent) == before


def test_a_run_that_broke_off_is_clean(tmp_path: Path) -> None:
    folder = record(tmp_path, close=False)
    audit = examine(folder)
    assert told(audit) == ""
    assert not audit.complete
    (folder / "run.pid").write_text("1\n")
    audit = examine(folder)
    assert audit.is_clean
    assert [remark.file for remark in audit.remarks] == ["run.pid"]


def test_a_run_that_goes_on_is_audited_as_far_as_it_is(tmp_path: Path) -> None:
    folder = record(tmp_path, close=False)
    with Ledger(folder, create=False) as ledger:
        with (folder / LEDGER).open("ab") as file:
            file.write(b'{"seq": 17, "at"')
        audit = examine(folder)
        assert audit.running is not None
        assert told(audit) == ""
        assert ledger.lines


def test_nothing_is_found_while_a_run_writes(tmp_path: Path) -> None:
    folder = tmp_path / "norm" / "rmsnorm" / "perf_opt"
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(record, tmp_path)
        looks = 0
        while not writing.done():
            if (folder / LEDGER).is_file() and (folder / LEDGER).stat().st_size:
                assert told(examine(folder)) == ""
                looks += 1
    assert looks
    assert writing.result() == folder
    assert told(examine(folder)) == ""


def test_nothing_is_found_between_any_two_writes_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer may be held up for long wherever it is: every step on the disk is looked at while nothing moves."""
    folder = tmp_path / "norm" / "rmsnorm" / "perf_opt"
    found: dict[str, str] = {}

    def looking(real: Callable[..., Any], what: str) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            result = real(*args, **more)
            if (folder / LEDGER).is_file() and (folder / LEDGER).stat().st_size:
                looks[what] += 1
                found[f"{what} {looks[what]}"] = told(examine(folder))
            return result

        return step

    looks = Counter[str]()
    for owner, name in ((Ledger, "append_all"), (Path, "replace"), (Path, "symlink_to")):
        monkeypatch.setattr(owner, name, looking(getattr(owner, name), name))
    record(tmp_path)
    assert looks["append_all"] > 20
    assert looks["replace"] > 20
    assert looks["symlink_to"] == 1
    assert {step: text for step, text in found.items() if text} == {}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_reports_may_be_in_either_language(run: Path, language: Any) -> None:
    rebuild(run, fold(read_lines(run / LEDGER)), language)
    assert told(examine(run)) == ""


def test_a_copy_elsewhere_is_clean_and_says_so(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "kept", symlinks=True)
    audit = examine(tmp_path / "kept")
    assert told(audit) == ""
    assert {remark.file for remark in audit.remarks} == {"stage_result.md", "baseline.py"}


@pytest.mark.parametrize("path", [".", "perf_opt", "rmsnorm/perf_opt", "../x/../rmsnorm/perf_opt"])
def test_the_folder_may_have_been_named_from_anywhere(
    run: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = fold(read_lines(run / LEDGER))
    (run / "stage_result.md").write_text(stage_result(state, "zh", PurePath(path)))
    assert told(examine(run)) == ""
    monkeypatch.chdir(run.parent)
    assert told(examine(Path("perf_opt"))) == ""


def test_files_of_the_user_do_not_matter(run: Path) -> None:
    (run / "notes.txt").write_text("mine")
    (run / "plots").mkdir()
    (run / "rmsnorm_mine.py").write_text("mine")
    assert told(examine(run)) == ""


def test_an_old_ledger_is_clean(run: Path) -> None:
    def age(events: Events) -> None:
        events[:] = [e for e in events if e["type"] not in ("trial_passed", "machine_checked")]
        later = ("noise", "work", "conditions", "spread", "planned", "documents", "blocked_by")
        for event in events:
            for key in (*later, "no_effect", "log"):
                event.pop(key, None)
            for workload in event.get("workloads", ()):
                workload.pop("weight")
            for found in [event.get("ratio"), *event.get("ratios", {}).values()]:
                if found:
                    found.pop("processes")

    forge(run, age)
    assert told(examine(run)) == ""


@pytest.mark.parametrize("lines", [1, 2, 5, 12, 20])
def test_lines_missing_at_the_end_are_noticed(run: Path, lines: int) -> None:
    path = run / LEDGER
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
    assert not examine(run).is_clean


def test_a_ledger_cut_anywhere_is_noticed(run: Path) -> None:
    whole = (run / LEDGER).read_bytes()
    for end in range(0, len(whole), 997):
        (run / LEDGER).write_bytes(whole[:end])
        assert LEDGER in files(examine(run)) or end == 0


def test_two_ledgers_in_one_are_noticed(run: Path) -> None:
    path = run / LEDGER
    count = len(path.read_bytes().splitlines())
    path.write_bytes(path.read_bytes() * 2)
    audit = examine(run)
    assert f"{LEDGER}:{count + 1}" in told(audit)
    assert "begins exactly once" in told(audit)


def test_lines_added_doubled_and_swapped_are_named(run: Path) -> None:
    path = run / LEDGER
    lines = path.read_bytes().splitlines(keepends=True)
    for changed, place in (
        ([*lines, lines[-1]], len(lines) + 1),
        ([*lines, b"hello\n"], len(lines) + 1),
        ([*lines[:5], lines[4], *lines[5:]], 6),
        ([*lines[:5], lines[6], lines[5], *lines[7:]], 6),
        ([*lines[:5], *lines[6:]], 6),
        (lines[1:], 1),
    ):
        path.write_bytes(b"".join(changed))
        assert f"{LEDGER}:{place}" in told(examine(run))


def test_every_damaged_line_is_named(run: Path) -> None:
    path = run / LEDGER
    lines = path.read_bytes().splitlines(keepends=True)
    for number in (2, 7, 12):
        lines[number] = lines[number].replace(b'"', b"'", 1)
    lines[4] = lines[4].replace(b"seq", b"sek")
    lines[9] = lines[9][:-20] + b"0" * 17 + lines[9][-3:]
    path.write_bytes(b"".join(lines))
    named = {f.line for f in examine(run).findings if f.check == "ledger"}
    assert named == {3, 5, 8, 10, 13}


def test_a_missing_source_and_a_stray_one_are_named(run: Path) -> None:
    kept = sorted((run / "objects").iterdir())
    kept[0].unlink()
    (run / "objects" / "stray.py").write_text("mine")
    assert files(examine(run)) >= {f"objects/{kept[0].name}", "objects/stray.py"}


def test_swapped_versions_are_named_with_the_line(run: Path) -> None:
    one, three = run / "rmsnorm_opt_v1.py", run / "rmsnorm_opt_v3.py"
    texts = one.read_bytes(), three.read_bytes()
    one.write_bytes(texts[1])
    three.write_bytes(texts[0])
    audit = examine(run)
    assert files(audit) == {one.name, three.name}
    assert all(finding.line for finding in audit.findings)


@pytest.mark.parametrize(
    "name",
    [
        "rmsnorm.py",
        "rmsnorm_opt_v2.py",
        "baseline.py",
        "opt_log.md",
        "stage_result.md",
        "perf_records.jsonl",
        "workload_inventory.json",
    ],
)
def test_a_file_that_is_missing_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    assert files(examine(run)) == {name}
    (run / name).mkdir()
    assert files(examine(run)) == {name}


def test_a_version_of_no_round_is_named(run: Path) -> None:
    (run / "rmsnorm_opt_v7.py").write_text("mine")
    assert files(examine(run)) == {"rmsnorm_opt_v7.py"}


def test_a_figure_changed_by_hand_is_given_with_both_values(run: Path) -> None:
    log = run / "opt_log.md"
    text = log.read_text()
    line = text[: text.index("100.00")].count("\n") + 1
    log.write_text(text.replace("100.00", "90.00", 1))
    [finding] = examine(run).findings
    assert (finding.file, finding.line) == ("opt_log.md", line)
    assert "90.00" in finding.found
    assert "100.00" in finding.expected
    assert "10 % off" in finding.what


def test_a_record_changed_by_hand_is_given_with_its_key(run: Path) -> None:
    records = run / "perf_records.jsonl"
    records.write_text(
        records.read_text().replace('"duration_us": 400.0', '"duration_us": 401.0', 1)
    )
    [finding] = examine(run).findings
    assert (finding.line, finding.key) == (1, "duration_us")
    assert (finding.found, finding.expected) == ("401.0", "400.0")


def test_a_report_with_lines_added_and_taken_out_names_them(run: Path) -> None:
    log = run / "opt_log.md"
    lines = log.read_text().split("\n")
    log.write_text("\n".join([*lines[:10], "added", *lines[10:20], *lines[21:]]) + "\nend")
    assert {finding.line for finding in examine(run).findings} >= {11}


def test_a_changed_header_does_not_lead_out_of_the_folder(run: Path) -> None:
    def change(events: Events) -> None:
        first(events, "run_started")["operator"] = "../../../etc/passwd\x1b[2J\x00"

    forge(run, change)
    audit = examine(run)
    assert not audit.is_clean
    assert "\x1b" not in told(audit)
