"""The manifest: every error names the file, the line, the key, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opratchet.errors import OpratchetError
from opratchet.operator.model import Operator
from tests.operator.folder import MANIFEST, line_of, load, refused, write

WORKLOAD = '[[workloads]]\nid = "a"\nshape = { M = 4, N = 8 }\n'

# A manifest, the part of it on whose line the error has to be, the key, and words of the message.
BAD = {
    "unknown key": ('[operator]\nbackned = "tilelang-c"\n', "backned", "operator.backned", "`backend`"),
    "unknown table": ("[operators]\n", "[operators]", "operators", "`operator`"),
    "unknown workload key": (WORKLOAD + 'knd = "tune"\n', "knd", "workloads[0].knd", "`kind`"),
    "unknown input key": ("[inputs.X]\nmaen = 1\n", "maen", "inputs.X.maen", "`mean`"),
    "unknown target key": ("[target]\nlatency = 240\n", "latency", "target.latency", "`latency_us`"),
    "text for a number": ('[target]\nlatency_us = "fast"\n', "latency_us", "target.latency_us", "'fast'"),
    "target not above zero": ("[target]\nspeedup = 0\n", "speedup", "target.speedup", "greater than 0"),
    "target nan": ("[target]\nlatency_us = nan\n", "latency_us", "target.latency_us", "finite"),
    "two figures": ("[target]\nspeedup = 2\nlatency_us = 3\n", "[target]", "target", "latency_us, speedup"),
    "no figure": ("[target]\n", "[target]", "target", "none"),
    "target of no workload": (
        WORKLOAD + '[target]\nspeedup = 2\nworkload = "b"\n', 'workload = "b"', "target.workload", "`b`",
    ),
    "negative tolerance": ("[tolerances.float32]\nrtol = -1\n", "rtol", "tolerances.float32.rtol", "-1"),
    "nan tolerance": ("[tolerances.float32]\natol = nan\n", "atol", "tolerances.float32.atol", "finite"),
    "boolean tolerance": ("[tolerances.float32]\natol = true\n", "atol", "tolerances.float32.atol", "True"),
    "dtype of a tolerance": ("[tolerances.float23]\natol = 1\n", "float23", "tolerances.float23", "`float32`"),
    "unknown dtype": (WORKLOAD + 'dtype = "float23"\n', "float23", "workloads[0].dtype", "`float32`"),
    "no tolerance known": (WORKLOAD + 'dtype = "float8_e5m2"\n', "[[", "tolerances", "[tolerances.float8_e5m2]"),
    "zero size": ('[[workloads]]\nid = "a"\nshape = { M = 0, N = 8 }\n', "M = 0", "workloads[0].shape.M", "above zero"),
    "negative size": ('[[workloads]]\nid = "a"\nshape.M = 3\nshape.N = -8\n', "-8", "workloads[0].shape.N", "-8"),
    "boolean size": ('[[workloads]]\nid = "a"\nshape.M = true\nshape.N = 8\n', "true", "workloads[0].shape.M", "True"),
    "size in quotes": ('[[workloads]]\nid = "a"\nshape.M = "4"\nshape.N = 8\n', '"4"', "workloads[0].shape.M", "without quotes"),
    "huge size": ('[[workloads]]\nid = "a"\nshape.M = 0xfffffffffffffffff\n', "0xf", "workloads[0].shape.M", "64 bits"),
    "unknown shape name": (
        '[[workloads]]\nid = "a"\nshape = { M = 4, Nn = 8 }\n', "Nn", "workloads[0].shape.Nn", "no parameter `Nn`",
    ),
    "missing size": ('[[workloads]]\nid = "a"\nshape = { M = 4 }\n', "shape", "workloads[0].shape", "no value for N"),
    "unknown parameter": (WORKLOAD + "params = { esp = 1 }\n", "esp", "workloads[0].params.esp", "`eps`"),
    "given twice": (WORKLOAD + "params = { M = 1 }\n", "params", "workloads[0].params.M", "twice"),
    "date as parameter": (WORKLOAD + "params = { eps = 2026-01-01 }\n", "params", "workloads[0].params.eps", "date"),
    "no id": ("[[workloads]]\nshape = { M = 4, N = 8 }\n", "[[workloads]]", "workloads[0].id", "Add `id"),
    "empty id": ('[[workloads]]\nid = ""\n', "id", "workloads[0].id", "at least"),
    "duplicate id": (WORKLOAD + "\n# again\n" + WORKLOAD.replace("id ", "id  "), "id  ", "workloads[1].id", "'a'"),
    "unknown kind": (WORKLOAD + 'kind = "fast"\n', "kind", "workloads[0].kind", "'tune', 'smoke' or 'skipped'"),
    "skipped without reason": (WORKLOAD + 'kind = "skipped"\n' + WORKLOAD.replace('"a"', '"b"'), "kind", "workloads[0].kind", "reason"),
    "weight of zero": (WORKLOAD + "weight = 0\n", "weight", "workloads[0].weight", "greater than 0"),
    "negative weight": (WORKLOAD + "weight = -2.5\n", "weight", "workloads[0].weight", "-2.5"),
    "infinite weight": (WORKLOAD + "weight = inf\n", "weight", "workloads[0].weight", "finite"),
    "weight nan": (WORKLOAD + "weight = nan\n", "weight", "workloads[0].weight", "finite"),
    "boolean weight": (WORKLOAD + "weight = true\n", "weight", "workloads[0].weight", "True"),
    "weight in quotes": (WORKLOAD + 'weight = "2"\n', "weight", "workloads[0].weight", "without quotes"),
    "weight of a smoke": (
        WORKLOAD + WORKLOAD.replace('"a"', '"b"') + 'kind = "smoke"\nweight = 1\n', "weight", "workloads[1].weight", "'b' is smoke",
    ),
    "weight of a skipped": (
        WORKLOAD + WORKLOAD.replace('"a"', '"b"') + 'kind = "skipped"\nreason = "big"\nweight = 2\n', "weight", "workloads[1].weight", "'b' is skipped",
    ),
    "nothing to tune": (WORKLOAD + 'kind = "smoke"\n', "kind", "workloads[0].kind", "`tune`"),
    "no workload": ("workloads = []\n", "workloads", "workloads", "at least one"),
    "knob without values": ("[knobs]\nblock_M = []\n", "block_M", "knobs.block_M", "at least one"),
    "knob of one value": ("[knobs]\nblock_M = 4\n", "block_M", "knobs.block_M", "[1, 2, 4]"),
    "unknown tensor": ("[inputs.Z]\nstd = 1\n", "[inputs.Z]", "inputs.Z", "no tensor `Z`"),
    "mixed distribution": ("[inputs.X]\nlow = 1\n", "low", "inputs.X.low", "`mean` and `std`"),
    "empty interval": ('[inputs.X]\ndistribution = "uniform"\nlow = 2\n', "low", "inputs.X.low", "below `high`"),
    "zero spread": ("[inputs.X]\nstd = 0\n", "std", "inputs.X.std", "above zero"),
    "unknown distribution": ('[inputs.X]\ndistribution = "poisson"\n', "distribution", "inputs.X.distribution", "'normal' or 'uniform'"),
    "tolerances without dtype": ("[tolerances]\nrtol = 1e-3\n", "rtol", "tolerances.rtol", "[tolerances.float32]"),
    "single brackets": ('[workloads]\nid = "a"\n', "[workloads]", "workloads", "[[workloads]]"),
    "shape as a list": ('[[workloads]]\nid = "a"\nshape = [1, 2]\n', "shape", "workloads[0].shape", "{ M = 512"),
    "no such kernel": ('[operator]\nkernel = "nrom"\n', "kernel", "operator.kernel", "`norm`"),
    "no such golden": ('[operator]\ngolden = "golden"\n', "golden", "operator.golden", "`golden_norm`"),
    "no such source": ('[operator]\nsource = "nrom.py"\n', "source", "operator.source", "`norm.py`"),
    "source elsewhere": ('[operator]\nsource = "../../x.py"\n', "source", "operator.source", "outside"),
    "absolute source": ('[operator]\nsource = "/etc/passwd"\n', "source", "operator.source", "outside"),
    "name with a slash": ('[operator]\nname = "a/b"\n', "name", "operator.name", "file name"),
    "formula": ('[operator]\nflops = "2 * M *"\n', "flops", "operator.flops", "2 * M * N * K"),
    "name in the formula": ('[operator]\nflops = "2 * M * K"\n', "flops", "operator.flops", "`K`"),
    "figure as compile target": ("[operator]\ntarget = 240\n", "target", "operator.target", "[target] latency_us"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_line_key_and_remedy(tmp_path: Path, case: str) -> None:
    manifest, part, key, words = BAD[case]
    root = write(tmp_path, manifest=manifest)
    message = refused(lambda: load(root))
    assert f"{root / 'opratchet.toml'}:{line_of(manifest, part)} ({key})" in message
    assert words in message


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    manifest = '[operator]\nbackned = "x"\n[target]\nspeedup = -1\n'
    message = refused(lambda: load(write(tmp_path, manifest=manifest)))
    assert "2 things are wrong" in message
    assert "opratchet.toml:2 (operator.backned)" in message
    assert "opratchet.toml:4 (target.speedup)" in message


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        ("[operator]\nname = norm\n", 2),
        ("[operator\n", 1),
        ("a = 1\na = 2\n", 2),
        ("[operator]\nname = 'norm\n", 2),
        ("[operator]\n\n\nx = [1,\n", 4),
        ("a = 1\r\nb\r\n", 2),
    ],
)
def test_a_toml_syntax_error_has_its_line(tmp_path: Path, manifest: str, line: int) -> None:
    root = write(tmp_path)
    (root / "opratchet.toml").write_bytes(manifest.encode())
    message = refused(lambda: load(root))
    assert f"opratchet.toml:{line}: not valid TOML" in message


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000 + "\n"])
def test_toml_that_the_reader_cannot_take_is_refused(tmp_path: Path, text: str) -> None:
    assert "not valid TOML" in refused(lambda: load(write(tmp_path, manifest=text)))


def test_skipped_workloads_need_not_fit_the_kernel(tmp_path: Path) -> None:
    skipped = '[[workloads]]\nid = "b"\nshape = { Q = 1 }\nkind = "skipped"\nreason = "太大"\n'
    operator = load(write(tmp_path, manifest=WORKLOAD + skipped))
    assert [workload.id for workload in operator.checked] == ["a"]
    assert operator.workloads[1].reason == "太大"


def test_an_empty_manifest_changes_nothing(tmp_path: Path) -> None:
    by_convention = load(write(tmp_path))
    assert load(write(tmp_path, manifest="")) == by_convention


def test_a_whole_number_serves_as_a_float(tmp_path: Path) -> None:
    manifest = WORKLOAD + "[target]\nlatency_us = 240\n[tolerances.float32]\nrtol = 0\n"
    operator = load(write(tmp_path, manifest=manifest))
    assert operator.target is not None
    assert operator.target.value == 240.0
    assert operator.tolerances["float32"].rtol == 0.0


# --- mutated manifests --------------------------------------------------------------------------------------

FULL = MANIFEST + """
[tolerances.float32]
rtol = 1e-4

[knobs]
block_M = [1, 2]

[target]
latency_us = 240
workload = "big"
"""  # fmt: skip
TOKENS = (
    *"[]{}\"'=.,#\n\\ \x00é",
    "nan", "-inf", "true", "0", "-1", "1e999", "0xffffffffffffffffff", "1979-05-27", "'''", '"""', "[[workloads]]\n",
    "[operator]\n", "M", "id", "kind", "[target.x]\n", "..", "算子", "9" * 30,
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The full manifest with a few pieces removed, repeated, exchanged or inserted."""
    text = FULL
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 12)))
        text = text[:at] + draw(st.sampled_from((*TOKENS, text[at:end] * 2))) + text[end:]
    return text


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("mutated"), manifest=FULL)


def test_the_manifest_that_is_mutated_is_a_good_one(root: Path) -> None:
    assert load(root).target is not None


@settings(
    max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=mutated())
def test_a_mutated_manifest_is_an_operator_or_a_told_error(root: Path, text: str) -> None:
    (root / "opratchet.toml").write_bytes(text.encode())
    try:
        operator = load(root)
    except OpratchetError as error:
        assert error.exit_code == 2
        assert error.fix
        assert "norm" in str(error)  # the path
        return
    assert isinstance(operator, Operator)
    assert operator.tuned
    assert all(size > 0 for workload in operator.workloads for size in workload.shape.values())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


KEYS = (
    *("operator", "inputs.X", "tolerances.float32", "knobs", "target", "workloads"),
    *("operator.name", "operator.source", "operator.flops", "knobs.block_M", "target.speedup"),
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.sampled_from(KEYS), value=VALUES)
def test_any_value_under_any_key_is_an_operator_or_a_told_error(
    root: Path, key: str, value: object
) -> None:
    (root / "opratchet.toml").write_text(f"{key} = {_toml(value)}\n", encoding="utf-8")
    try:
        load(root)
    except OpratchetError as error:
        assert "opratchet.toml:" in str(error)


def _toml(value: object) -> str:
    """A plain value as TOML; None becomes an empty text."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
        case dict():
            return (
                "{"
                + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items())
                + "}"
            )
    escaped = "".join(f"\\U{ord(letter):08x}" for letter in value or "")
    return f'"{escaped}"'
