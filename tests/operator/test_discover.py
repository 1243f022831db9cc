"""From a path to an operator: conventions, the manifest, the command line, and what each error says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opratchet.operator.discover import Overrides
from opratchet.operator.model import Tolerance
from tests.operator.folder import MANIFEST, SOURCE, line_of, load, refused, write

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*/*/opratchet.toml"))


@pytest.mark.parametrize("manifest", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_is_understood(manifest: Path) -> None:
    operator = load(manifest.parent)
    name = manifest.parent.name
    assert (operator.name, operator.project) == (name, manifest.parent.parent.name)
    assert (operator.kernel, operator.golden) == (name, f"golden_{name}")
    assert (operator.backend, operator.flow) == ("tilelang-c", "tilelang")
    assert 2 <= len(operator.tuned) <= 3
    assert len(operator.checked) == len(operator.tuned) + 1
    assert set(operator.inputs) <= set("XWBAQKV")
    assert operator.tolerances["float32"] == Tolerance(rtol=1e-4, atol=1e-4)
    assert operator.text == operator.source.read_text(encoding="utf-8")


def test_the_six_examples_are_there() -> None:
    names = {path.parent.name for path in EXAMPLES}
    assert names >= {"softmax", "rmsnorm", "layernorm", "gelu", "gemm", "attention"}


def test_a_folder_without_manifest_is_understood_by_convention(tmp_path: Path) -> None:
    operator = load(write(tmp_path))
    assert operator.kernel == "norm"
    assert operator.golden == "golden_norm"
    assert operator.backend == "tilelang-c"
    assert operator.provenance["kernel"] == "convention: the only @tilelang.jit function"
    assert operator.provenance["golden"] == "convention: golden_norm"
    assert operator.provenance["flow"] == "default"
    decorator = line_of(SOURCE, "@tilelang.jit")
    assert operator.provenance["backend"] == f'norm.py:{decorator}, target="c"'


def test_folder_source_and_manifest_mean_the_same_operator(tmp_path: Path) -> None:
    root = write(tmp_path, manifest=MANIFEST)
    by_folder, by_source, by_manifest = (
        load(path) for path in (root, root / "norm.py", root / "opratchet.toml")
    )
    assert by_folder == by_manifest
    assert by_source.workloads == by_folder.workloads
    assert by_source.source == by_folder.source
    assert by_source.provenance["source"] == "command line"


def test_a_relative_path_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, manifest=MANIFEST)
    monkeypatch.chdir(root)
    for path in (Path(), Path("norm.py"), Path("opratchet.toml"), Path("../norm")):
        operator = load(path)
        assert operator.root == root.resolve()
        assert operator.source == root.resolve() / "norm.py"
        assert operator.project == "proj"


def test_the_manifest_wins_over_convention_and_the_command_line_over_both(tmp_path: Path) -> None:
    text = MANIFEST.replace('backend = "tilelang-c"', 'backend = "tilelang-npuir"')
    root = write(tmp_path, manifest=text)
    stated = load(root)
    assert (stated.backend, stated.provenance["backend"]) == ("tilelang-npuir", "opratchet.toml:2")
    given = load(root, overrides=Overrides(backend="pypto-sim", flow="pypto"))
    assert (given.backend, given.provenance["backend"]) == ("pypto-sim", "command line")
    assert (given.flow, given.provenance["flow"]) == ("pypto", "command line")


@pytest.mark.parametrize(
    ("target", "backend"),
    [("c", "tilelang-c"), ("npuir", "tilelang-npuir"), ("ascend", "tilelang-ascend")],
)
def test_the_backend_follows_the_target_of_the_decorator(
    tmp_path: Path, target: str, backend: str
) -> None:
    text = SOURCE.replace('target="c"', f'target="{target}"')
    assert load(write(tmp_path, text)).backend == backend


@pytest.mark.parametrize(
    ("decorator", "backend"),
    [
        ("@tilelang.jit", "tilelang-c"),
        ("@jit", "tilelang-c"),
        ('@tl.jit(out_idx=[-1], target={"kind": "ascend"})', "tilelang-ascend"),
        ("@tilelang.jit(target=choose())", "tilelang-c"),
    ],
)
def test_other_forms_of_the_decorator(tmp_path: Path, decorator: str, backend: str) -> None:
    text = SOURCE.replace('@tilelang.jit(target="c")', decorator)
    assert load(write(tmp_path, text)).backend == backend


def test_a_target_without_backend_asks_for_one(tmp_path: Path) -> None:
    text = SOURCE.replace('target="c"', 'target="cuda"')
    root = write(tmp_path, text)
    message = refused(lambda: load(root))
    assert f"norm.py:{line_of(text, 'cuda')}" in message
    assert "`cuda`" in message
    assert "--backend" in message
    assert load(root, overrides=Overrides(backend="tilelang-c")).backend == "tilelang-c"


def test_the_manifest_can_name_everything(tmp_path: Path) -> None:
    manifest = """\
[operator]
name = "均方根"
source = "other.py"
kernel = "norm"
golden = "reference"
target = "npuir"
flops = "3 * M * ceildiv(N, 4)"

[tolerances.float16]
rtol = 2e-3

[inputs.X]
distribution = "uniform"
low = -1
high = 1

[knobs]
block_M = [1, 2, 4]

[[workloads]]
id = "half"
shape = { M = 64, N = 128 }
dtype = "float16"
params = { eps = 1e-5 }
"""
    root = write(tmp_path, manifest=manifest)
    (root / "norm.py").rename(root / "other.py")
    text = (root / "other.py").read_text().replace("golden_norm", "reference")
    (root / "other.py").write_text(text)
    operator = load(root)
    assert (operator.name, operator.golden, operator.backend) == (
        "均方根",
        "reference",
        "tilelang-npuir",
    )
    assert operator.tolerances["float16"] == Tolerance(rtol=2e-3, atol=1e-2)
    assert (operator.inputs["X"].a, operator.inputs["X"].b) == (-1.0, 1.0)
    assert operator.knobs == {"block_M": (1, 2, 4)}
    assert operator.workloads[0].params == {"eps": 1e-5}
    assert operator.flops == "3 * M * ceildiv(N, 4)"
    assert (
        operator.provenance["tolerances.float16"] == f"opratchet.toml:{line_of(manifest, '[tol')}"
    )
    assert operator.provenance["knobs.block_M"] == f"opratchet.toml:{line_of(manifest, 'block_M')}"


def test_reading_takes_byte_order_mark_crlf_chinese_names_and_spaces(tmp_path: Path) -> None:
    root = tmp_path / "我的 算子" / "归一 化"
    root.mkdir(parents=True)
    text = SOURCE.replace("norm", "归一化").replace("\n", "\r\n")
    (root / "归一 化.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    manifest = MANIFEST.replace("big", "大").replace("\n", "\r\n")
    (root / "opratchet.toml").write_bytes(b"\xef\xbb\xbf" + manifest.encode())
    operator = load(root)
    assert (operator.name, operator.project) == ("归一 化", "我的 算子")
    assert operator.golden == "golden_归一化"
    assert operator.text == text
    assert operator.provenance["workloads.大"] == f"opratchet.toml:{line_of(MANIFEST, '[[work')}"


def test_another_source_in_the_folder_uses_the_same_manifest(tmp_path: Path) -> None:
    root = write(tmp_path, manifest=MANIFEST)
    (root / "norm_v2.py").write_text(SOURCE)
    operator = load(root / "norm_v2.py")
    assert operator.name == "norm_v2"
    assert operator.golden == "golden_norm"
    assert operator.provenance["golden"] == "convention: the only golden_* function"
    assert [workload.id for workload in operator.workloads] == ["big", "odd"]


# --- bad input ----------------------------------------------------------------------------------------------


def test_a_missing_path_names_its_nearest_neighbour(tmp_path: Path) -> None:
    root = write(tmp_path)
    message = refused(lambda: load(root.parent / "nrom"))
    assert str(root.parent / "nrom") in message
    assert "`norm`" in message


def test_a_path_below_a_file_is_missing(tmp_path: Path) -> None:
    message = refused(lambda: load(write(tmp_path) / "norm.py" / "x"))
    assert "no such file" in message


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_path_that_cannot_exist_is_refused(tmp_path: Path, name: str) -> None:
    refused(lambda: load(tmp_path / name))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, README="text")
    message = refused(lambda: load(root / "README.md"))
    assert "README.md" in message
    assert "opratchet.toml" in message


def test_a_folder_without_its_source_lists_what_it_holds(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "norm.py").rename(root / "kernel.py")
    message = refused(lambda: load(root))
    assert "no `norm.py`" in message
    assert "kernel.py" in message
    assert "source =" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_rights_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "norm.py").chmod(0)
    assert "norm.py" in refused(lambda: load(root))


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    message = refused(lambda: load(write(tmp_path, "import torch\n\ndef golden_norm(:\n")))
    assert "norm.py:3: syntax error" in message


@pytest.mark.parametrize(
    "raw", [b"a = 1\n\x00\n", b"x = " + b"(" * 500, b"x = " + b"-" * 9999 + b"1"]
)
def test_a_source_that_is_hardly_python_is_refused(tmp_path: Path, raw: bytes) -> None:
    assert "norm.py" in refused(lambda: load(write(tmp_path, raw)))


def test_a_file_that_is_not_utf_8_has_the_line_of_the_byte(tmp_path: Path) -> None:
    message = refused(lambda: load(write(tmp_path, "import torch\n# 算子\n".encode("gbk"))))
    assert "norm.py:2: the file is not UTF-8" in message
    root = write(tmp_path)
    (root / "opratchet.toml").write_bytes(b"[operator]\nname = '\xff'\n")
    assert "opratchet.toml:2: the file is not UTF-8" in refused(lambda: load(root))


def test_a_declared_encoding_other_than_utf_8_is_refused(tmp_path: Path) -> None:
    message = refused(lambda: load(write(tmp_path, "# -*- coding: gbk -*-\n" + SOURCE)))
    assert "norm.py:1" in message
    assert "`gbk`" in message
    assert load(write(tmp_path, "# -*- coding: utf-8 -*-\n" + SOURCE)).kernel == "norm"


def test_no_golden_says_which_name_is_looked_for(tmp_path: Path) -> None:
    message = refused(lambda: load(write(tmp_path, SOURCE.replace("golden_norm", "reference"))))
    assert "`golden_norm`" in message
    assert "golden =" in message


def test_two_goldens_that_do_not_fit_are_named(tmp_path: Path) -> None:
    text = SOURCE.replace("golden_norm", "golden_a") + "\ndef golden_b(X): ...\n"
    message = refused(lambda: load(write(tmp_path, text)))
    assert "golden_a, golden_b" in message


def test_no_kernel_says_what_a_kernel_is(tmp_path: Path) -> None:
    text = SOURCE.replace('@tilelang.jit(target="c")\n', "")
    message = refused(lambda: load(write(tmp_path, text)))
    assert "norm.py" in message
    assert "@tilelang.jit" in message


def test_several_kernels_are_named_with_their_lines(tmp_path: Path) -> None:
    text = SOURCE.replace("\ndef run_case", "\n@tilelang.jit\ndef second(M): ...\n\n\ndef run_case")
    root = write(tmp_path, text)
    message = refused(lambda: load(root))
    assert f"norm (line {line_of(text, 'def norm')})" in message
    assert f"second (line {line_of(text, 'def second')})" in message
    assert 'kernel = "norm"' in message
    chosen = write(tmp_path, text, manifest='[operator]\nkernel = "norm"\n')
    assert load(chosen).kernel == "norm"


def test_a_kernel_that_is_defined_twice_is_refused(tmp_path: Path) -> None:
    text = SOURCE + "\n@tilelang.jit\ndef norm(M, N): ...\n"
    message = refused(lambda: load(write(tmp_path, text)))
    first, second = line_of(text, "def norm"), text.count("\n")
    assert f"norm.py:{second}" in message
    assert f"lines {first} and {second}" in message


@pytest.mark.parametrize(
    ("option", "word", "near"),
    [("backend", "tilelang-x", "tilelang-c"), ("flow", "tilelnag", "tilelang")],
)
def test_an_unknown_backend_or_flow_names_the_known_ones(
    tmp_path: Path, option: str, word: str, near: str
) -> None:
    message = refused(lambda: load(write(tmp_path), overrides=Overrides(**{option: word})))
    assert f"--{option}: unknown {option} `{word}`" in message
    assert f"Did you mean `{near}`?" in message
    manifest = f'[operator]\n\n{option} = "{word}"\n'
    message = refused(lambda: load(write(tmp_path, manifest=manifest)))
    assert f"opratchet.toml:3 (operator.{option})" in message


def test_nothing_is_written(tmp_path: Path) -> None:
    root = write(tmp_path, manifest=MANIFEST, DESIGN="## 性能目标\n- 目标延迟: 240 us\n")
    before = sorted(tmp_path.rglob("*"))
    load(root)
    refused(lambda: load(root, overrides=Overrides(backend="none")))
    assert sorted(tmp_path.rglob("*")) == before
