"""What the factory of a candidate may do: all that examples, hand-written kernels and strategies do, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from opratchet.backend.tilelang_c import TileLangC
from opratchet.edit.model import Edit, NotApplicable, Situation
from opratchet.edit.registry import STRATEGIES
from opratchet.edit.source import KernelSource
from opratchet.edit.untrusted import misplaced

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = [
    *sorted(p for p in (ROOT / "examples").glob("*/*/*.py") if p.parts[-3] != "custom"),
    *sorted((ROOT / "benchmarks/by_hand").glob("*.py")),
]
SHAPES = [{"M": 64, "N": 512, "K": 64, "S": 64, "D": 64}]
SOFTMAX = (ROOT / "examples/activation/softmax/softmax.py").read_text(encoding="utf-8")
TRUSTED = KernelSource(SOFTMAX, "softmax")
FLAGS = 'compile_flags=["-O3", "-march=native"]'
BODY = "    @T.prim_func\n"


def found_in(text: str) -> str:
    """What is misplaced in a candidate of the softmax."""
    return misplaced(KernelSource(text, "softmax"), TRUSTED)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_is_shipped_and_what_the_strategies_make_of_it_passes(path: Path) -> None:
    source = KernelSource(path.read_text(encoding="utf-8"), path.stem)
    assert misplaced(source, source) == ""
    situation = Situation(source, TileLangC().target(), SHAPES)
    for strategy in STRATEGIES.values():
        offered = strategy.edits(situation)
        edits: list[Edit] = [] if isinstance(offered, NotApplicable) else offered[:4]
        for edit in edits:
            assert misplaced(KernelSource(edit.text, path.stem), source) == "", edit.id


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os", "imports nothing"),
        ("from os import system", "imports nothing"),
        ("global T", "changes nothing outside"),
        ("open('/tmp/x')", "`open`"),
        ("eval('1')", "`eval`"),
        ("getattr(T, 'call_extern')", "`getattr`"),
        ("__import__('os')", "`__import__`"),
        ("print('passed')", "`print`"),
        ("torch.softmax", "`torch`"),
        ("golden_softmax", "`golden_softmax`"),
        ("run_L0()", "`run_L0`"),
        ("T.call_extern('int32', 'f')", "`.call_extern`"),
        ("T.import_source('int f();')", "`.import_source`"),
        ("T.tvm_access_ptr()", "`.tvm_access_ptr`"),
        ("T.tir.call_packed('f')", "`.call_packed`"),
        ("tilelang.compile(None)", "`.compile`"),
        ("tilelang.env.os", "`.os`"),
        ("(lambda: 0).__globals__", "`.__globals__`"),
        ("T._ffi", "`._ffi`"),
        ("softmax.known = 1", "`.known`"),
        ("'{0.x}'.format(T)", "`.format`"),
        ("x = [].sort", "`.sort`"),
        ("class A: pass", "defines no class"),
        ("del T", "deletes nothing"),
        ("raise ValueError", "raises no exception"),
    ],
)
def test_what_no_kernel_needs_is_named_with_its_line(line: str, said: str) -> None:
    candidate = SOFTMAX.replace(BODY, f"    {line}\n{BODY}", 1)
    number = candidate[: candidate.index(f"    {line}\n{BODY}")].count("\n") + 1
    found = found_in(candidate)
    assert found.startswith(f"line {number}: ")
    assert said in found


def test_a_local_name_of_another_scope_is_no_excuse() -> None:
    candidate = SOFTMAX.replace(
        BODY, f"    def f(torch):\n        return torch\n\n    f(torch)\n{BODY}", 1
    )
    assert "`torch`" in found_in(candidate)
    assert found_in(candidate.replace("f(torch)\n    @", "f(M)\n    @")) == ""


def test_try_and_with_a_file_are_refused() -> None:
    tried = SOFTMAX.replace(
        BODY, f"    try:\n        x = M\n    except ValueError:\n        x = 1\n{BODY}", 1
    )
    assert "catches no exception" in found_in(tried)


@pytest.mark.parametrize(
    "flag",
    [
        "-include",
        "/tmp/x.h",
        "-I/tmp",
        "-Dexpf=fast",
        "-fplugin=x.so",
        "@flags",
        "-Wl,x",
        "-B/tmp",
        "-xc",
    ],
)
def test_flags_that_bring_code_are_refused(flag: str) -> None:
    candidate = SOFTMAX.replace(FLAGS, f'compile_flags=["-O3", "{flag}"]')
    assert f"`{flag}`" in found_in(candidate)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (FLAGS, "compile_flags=[str(1)]", "written out"),
        ('target="c"', 'target="llvm"', "`target`"),
        (FLAGS, f"{FLAGS}, debug_root_path='/tmp'", "`debug_root_path`"),
        ("block_M=4", "block_M=4, known={}", "plain value"),
        ("@tilelang.jit", "@staticmethod\n@tilelang.jit", "`staticmethod`"),
    ],
)
def test_what_stands_around_the_body_is_looked_at_too(old: str, new: str, said: str) -> None:
    assert said in found_in(SOFTMAX.replace(old, new, 1))


def test_a_list_of_the_module_carries_nothing_from_one_build_to_the_next() -> None:
    constant = "KNOWN = []\n\n\n@tilelang.jit"
    candidate = SOFTMAX.replace("@tilelang.jit", constant, 1)
    assert "`KNOWN`" in found_in(candidate.replace(BODY, f"    KNOWN.append(M)\n{BODY}", 1))
    listed = candidate.replace("KNOWN = []", 'KNOWN = ["-O2"]').replace(
        FLAGS, "compile_flags=KNOWN"
    )
    assert found_in(listed) == ""


def test_what_the_users_own_factory_does_is_the_users_business() -> None:
    own = SOFTMAX.replace(BODY, f"    import os\n\n    os.getpid()\n{BODY}", 1)
    trusted = KernelSource(own, "softmax")
    assert misplaced(KernelSource(own.replace("block_M=4", "block_M=2"), "softmax"), trusted) == ""
    assert "`.system`" in misplaced(
        KernelSource(own.replace("os.getpid()", "os.system('x')"), "softmax"), trusted
    )
