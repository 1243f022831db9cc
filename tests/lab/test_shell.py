"""Running shell commands: real processes, their time, and what is left of them."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import psutil
import pytest

from opratchet.errors import BadInput
from opratchet.lab.printed import by_regex
from opratchet.lab.shell import Command, Pairing, Reading, figure_of, run


def marked(token: str) -> list[int]:
    """Processes whose command line holds a token."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if token in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.info["pid"])
    return found


def gone(token: str) -> bool:
    """Whether they end within some seconds."""
    deadline = time.monotonic() + 5
    while marked(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not marked(token)


def test_a_run_gives_its_wall_time_code_and_output() -> None:
    ran = run("echo out; echo err >&2; sleep 0.2; exit 3", 30)
    assert 0.2 <= ran.seconds < 5
    assert (ran.code, ran.stdout, ran.stderr) == (3, "out\n", "err\n")


def test_the_end_of_a_run_is_seen_at_once() -> None:
    assert min(run("true", 30).seconds for _ in range(20)) < 0.03


def test_a_run_has_no_input() -> None:
    assert run("cat", 30).stdout == ""


def test_a_large_output_does_not_block() -> None:
    ran = run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", 30)
    assert ran.code == 0
    assert ran.stdout.endswith("x\nend\n")


@pytest.mark.parametrize(
    "command",
    [
        "sleep {n}",
        "sleep {n} & sleep {n}; true",
        "trap '' TERM INT; sleep {n}; sleep {n}",
        "(setsid sleep {n}) & wait",
        "timeout 500 sleep {n}",
    ],
)
def test_what_takes_too_long_is_killed_with_its_tree(command: str) -> None:
    token = f"300.{os.getpid()}"
    start = time.monotonic()
    ran = run(command.format(n=token), 0.5)
    assert time.monotonic() - start < 10
    assert ran.code is None
    assert gone(f"sleep {token}")


def test_what_a_run_leaves_in_the_background_is_killed() -> None:
    token = f"301.{os.getpid()}"
    assert run(f"sleep {token} & exit 0", 30).code == 0
    assert gone(f"sleep {token}")


def test_a_run_is_bound_to_a_cpu_and_the_tool_is_not() -> None:
    before = os.sched_getaffinity(0)
    program = "import os; print(sorted(os.sched_getaffinity(0)))"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"
    for cpu in sorted(before):
        assert run(command, 60, cpu).stdout.strip() == f"[{cpu}]"
    assert run(command, 60).stdout.strip() == str(sorted(before))
    assert os.sched_getaffinity(0) == before


def test_a_turn_is_abba_in_fresh_processes(tmp_path: Path) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    reading = Reading(by_regex("t=(.*)"), "ms")
    pairing = Pairing(
        Command("A", f"echo A $$ >> {log}; echo t=3"),
        Command("B", f"echo B $$ >> {log}; echo t=2"),
        reading,
    )
    pairing.warm_up(1)
    stream = pairing.turns(time.monotonic() + 60)
    assert [next(stream), next(stream)] == pytest.approx([0.405465, 0.405465], abs=1e-5)
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert "".join(name for name, _pid in lines) == "AB" + "ABBA" * 2
    assert len({pid for _name, pid in lines}) == len(lines)
    assert pairing.times == {"A": [3.0] * 4, "B": [2.0] * 4}


def test_no_turn_is_begun_that_would_end_too_late() -> None:
    pairing = Pairing(Command("A", "sleep 0.1"), Command("B", "sleep 0.1"), Reading())
    assert len([*pairing.turns(time.monotonic() + 1.0)]) in (1, 2)
    assert [*pairing.turns(time.monotonic() - 1.0)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo why; exit 3", ["ended with exit code 3", "why"]),
        ("echo why >&2; kill -9 $$", ["ended by signal 9", "why"]),
        ("echo other", ["nothing in its output matches", "(exit code 0)", "other"]),
        ("true", ["nothing in its output matches", "It printed nothing"]),
        ("echo t=fast", ["'fast'", "not a number"]),
        ("echo t=0", ["nothing is done in no time"]),
        ("echo t=-1", ["before it began"]),
        ("echo t=nan", ["not a number"]),
        ("echo t=inf", ["would not have ended"]),
        ("sleep 60", ["did not end within 1 s", "--timeout"]),
    ],
)
def test_a_run_without_a_time_is_an_error_that_shows_it(text: str, expected: list[str]) -> None:
    reading = Reading(by_regex("t=(.*)"), "ms", timeout=1.0)
    with pytest.raises(BadInput) as caught:
        figure_of(Command("B", text), run(text, reading.timeout), reading)
    for part in ["B:", f"`{text}`", *expected]:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("unit", "low", "high"), [("us", 5e4, 5e6), ("ms", 50, 5e3), ("s", 0.05, 5)]
)
def test_a_wall_time_is_given_in_its_unit(unit: str, low: float, high: float) -> None:
    assert (
        low
        <= Pairing(Command("A", "sleep 0.05"), Command("B", ""), Reading(None, unit)).figure(
            Command("A", "sleep 0.05")
        )
        < high
    )
