"""SPEC.md: what its front matter states, and what is told when it does not state it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.operator.model import Tolerance
from opratchet.operator.spec import Budget, Spec, read_spec
from tests.operator.folder import refused

FRONT = {
    "schema_version": "1",
    "op_name": "softmax",
    "supported_dtypes": "[float32]",
    "p0_shapes": "[{x: [512, 1024]}]",
    "tolerance": "{rtol: 1e-3, atol: 1e-4}",
}


def written(folder: Path, body: str = "# softmax\n", **keys: str | None) -> Path:
    """A SPEC.md with some keys changed, added, or (None) left out."""
    front = {key: value for key, value in {**FRONT, **keys}.items() if value is not None}
    lines = [f"{key}: {value}" for key, value in front.items()]
    path = folder / "SPEC.md"
    path.write_text("\n".join(["---", *lines, "---", body]), encoding="utf-8")
    return path


def spec(folder: Path, body: str = "# softmax\n", **keys: str | None) -> Spec:
    return read_spec(written(folder, body, **keys))


def shapes(
    folder: Path, p0: str, *parameters: str, **keys: str
) -> list[tuple[str, dict[str, tuple[int, ...]]]]:
    cases = spec(folder, p0_shapes=p0, **keys).cases(parameters)
    return [(case.level, dict(case.tensors)) for case in cases]


def test_what_it_states(tmp_path: Path) -> None:
    read = spec(
        tmp_path,
        supported_dtypes="[fp16, bfloat16, half]",
        default_params="{dim: -1, eps: 1e-6, mode: 'silu'}",
        dynamic_axes="['B', 'S']",
        dynamic_axes_ranges="{B: [1, 4]}",
        shape_constraints="\n  - x.shape == y.shape",
        perf_target="35 us",
    )
    assert read.op_name == "softmax"
    assert read.dtypes == ("float16", "bfloat16")
    assert read.tolerance == Tolerance(rtol=1e-3, atol=1e-4)
    assert read.default_params == {"dim": -1, "eps": 1e-6, "mode": "silu"}
    assert read.budget == Budget(35.0, "latency_us", "device", "35 us", 12)
    assert read.at("p0_shapes") == "SPEC.md:5"
    assert read.where("p0_shapes", 0, "x") == f"{tmp_path / 'SPEC.md'}:5 (p0_shapes[0].x)"


def test_only_what_is_needed_has_to_be_there(tmp_path: Path) -> None:
    read = spec(tmp_path, schema_version=None)
    assert (read.default_params, read.budget, read.l0_shapes) == ({}, None, None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(
    tmp_path: Path, end: str, start: bytes
) -> None:
    path = written(tmp_path, "# softmax\n\n性能目标: 35 us")
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_bytes(start + end.join(lines).encode())
    budget = read_spec(path).budget
    assert budget is not None
    assert budget.line == lines.index("性能目标: 35 us") + 1 + start.count(b"\n")


# --- the budget ---------------------------------------------------------------------------------------------


def test_the_budget_of_the_front_matter_comes_before_that_of_the_body(tmp_path: Path) -> None:
    body = "### 10. 性能要求\n- **性能目标**: 首跑精度成功性能的 2 倍\n"
    for none in (None, "null", "~", ""):
        assert spec(tmp_path, body, perf_target=none).budget == Budget(
            2.0, "speedup", "", "首跑精度成功性能的 2 倍", 8 + (none is not None) + 1
        )
    read = spec(tmp_path, body, perf_target="0.035 ms").budget
    assert read is not None
    assert (read.value, read.line) == (35.0, 7)
    assert "line 10 says otherwise" in read.note


def test_the_other_name_of_the_key_counts_too(tmp_path: Path) -> None:
    budget = spec(tmp_path, performance_target="'首跑精度成功性能的 2 倍'").budget
    assert budget is not None
    assert budget.value == 2


@pytest.mark.parametrize("stated", ["35", "{latency: 35}", "[35, 40]", "soon"])
def test_a_budget_without_a_figure_is_kept_as_a_text(tmp_path: Path, stated: str) -> None:
    budget = spec(tmp_path, perf_target=stated).budget
    assert budget is not None
    assert budget.value is None
    assert budget.text
    assert budget.note


# --- shapes -------------------------------------------------------------------------------------------------


def test_a_mapping_names_the_tensors_in_any_order(tmp_path: Path) -> None:
    p0 = "[{key: [1, 128, 128], query: [1, 64, 128]}, {query: [2, 64, 128], key: [2, 128, 128]}]"
    assert shapes(tmp_path, p0, "query", "key") == [
        ("P0", {"query": (1, 64, 128), "key": (1, 128, 128)}),
        ("P0", {"query": (2, 64, 128), "key": (2, 128, 128)}),
    ]
    assert shapes(tmp_path, "{query: [4], key: [8]}", "query", "key") == [
        ("P0", {"query": (4,), "key": (8,)})
    ]


def test_lists_that_have_one_reading(tmp_path: Path) -> None:
    assert shapes(tmp_path, "[[2048, 2048]]", "x") == [("P0", {"x": (2048, 2048)})]
    assert shapes(tmp_path, "[[1, 1, 1024, 64], [1, 128, 2048, 64]]", "x") == [
        ("P0", {"x": (1, 1, 1024, 64)}),
        ("P0", {"x": (1, 128, 2048, 64)}),
    ]
    assert shapes(tmp_path, "[[2, 4, 8], [8]]", "x", "bias") == [
        ("P0", {"x": (2, 4, 8), "bias": (8,)})
    ]
    assert shapes(tmp_path, "[[8, 1024], [8, 1024]]", "a", "b") == [
        ("P0", {"a": (8, 1024), "b": (8, 1024)})
    ]
    assert shapes(tmp_path, "[[[2, 3], [3, 4]], [[5, 6], [6, 7]]]", "a", "b") == [
        ("P0", {"a": (2, 3), "b": (3, 4)}),
        ("P0", {"a": (5, 6), "b": (6, 7)}),
    ]


def test_default_parameters_are_no_tensors(tmp_path: Path) -> None:
    params = "{eps: 1e-6, width: 4}"  # `width` is none of the golden's, as upstream has it too
    assert shapes(tmp_path, "[[8, 16]]", "x", "eps", default_params=params) == [
        ("P0", {"x": (8, 16)})
    ]


AMBIGUOUS = {
    # an operator of upstream with three tensors, whose three shapes are three cases of the first
    "[[1, 1, 1024, 64], [1, 128, 2048, 64], [4, 128, 8192, 64]]": ("x", "cos", "sin"),
    # a product of two matrices, as upstream's loader of cases writes it
    "[[512, 1024], [1024, 256]]": ("a", "b"),
    "[[2048, 2048]]": ("x", "weight"),
    "[[8], [16], [32]]": ("x", "y"),
}


@pytest.mark.parametrize("p0", AMBIGUOUS)
def test_what_has_two_readings_is_refused_with_the_mapping_written_out(
    tmp_path: Path, p0: str
) -> None:
    names = AMBIGUOUS[p0]
    message = refused(lambda: shapes(tmp_path, p0, *names))
    assert f"{tmp_path / 'SPEC.md'}:5 (p0_shapes)" in message
    assert "not clear which shape is whose" in message
    written_out = [part for part in message.split("`") if part.startswith("p0_shapes: [{")]
    assert written_out
    for form in written_out:  # each form that is proposed is one that is read
        form = form.removeprefix("p0_shapes: ").replace("[...]", "[1]")
        assert shapes(tmp_path, form, *names)


def test_the_forms_that_are_proposed(tmp_path: Path) -> None:
    message = refused(lambda: shapes(tmp_path, "[[512, 1024], [1024, 256]]", "a", "b"))
    assert "For one case: `p0_shapes: [{a: [512, 1024], b: [1024, 256]}]`" in message
    assert (
        "For 2 cases: `p0_shapes: [{a: [512, 1024], b: [...]}, {a: [1024, 256], b: [...]}]`"
        in message
    )


NO_SHAPES = {
    "[]": "no list of shapes",
    "512": "no list of shapes",
    "[2048, 2048]": "which tensor has which shape",
    "[[]]": "no shape",
    "[[8, 0]]": "0 is no length of an axis",
    "[[8, -1]]": "-1 is no length of an axis",
    "[[8, B]]": "'B' is no length of an axis",
    "[[8, 1.5]]": "1.5 is no length of an axis",
    "[[8, true]]": "True is no length of an axis",
    "[{y: [8]}]": "the golden takes no tensor `y`",
    "[{}]": "no shape for x",
    "[{x: 8}]": "8 is no shape",
    "[[[8], [8]]]": "which tensor has which shape",
    "[{x: [8]}, 7]": "which tensor has which shape",
}


@pytest.mark.parametrize("p0", NO_SHAPES)
def test_what_is_no_list_of_shapes_is_refused_with_its_line(tmp_path: Path, p0: str) -> None:
    message = refused(lambda: shapes(tmp_path, p0, "x"))
    assert f"{tmp_path / 'SPEC.md'}:5 (p0_shapes" in message
    assert NO_SHAPES[p0] in message


def test_a_case_has_to_name_all_tensors(tmp_path: Path) -> None:
    message = refused(lambda: shapes(tmp_path, "[{q: [8]}]", "q", "k", "v"))
    assert "no shape for k, v" in message
    assert "`p0_shapes: [{q: [...], k: [...], v: [...]}]`" in message


def test_a_golden_without_tensors_is_refused(tmp_path: Path) -> None:
    read = spec(tmp_path, default_params="{x: 1}")
    assert "takes no tensor" in refused(lambda: read.cases(["x"]))


def test_ids_tell_the_cases_apart(tmp_path: Path) -> None:
    p0 = "[{a: [8, 16], b: [16, 4]}, {a: [8, 16], b: [16, 5]}, {a: [7], b: [7]}, {a: [7], b: [7]}]"
    read = spec(tmp_path, p0_shapes=p0, l0_shapes="[{a: [3, 5], b: [5, 2]}, {a: [7], b: [7]}]")
    assert [(case.id, case.level) for case in read.cases(["a", "b"])] == [
        ("8x16-16x4", "P0"),
        ("8x16-16x5", "P0"),
        ("7", "P0"),
        ("3x5", "L0"),
    ]


def test_small_shapes_are_for_accuracy_only(tmp_path: Path) -> None:
    assert shapes(tmp_path, "[[512, 1024]]", "x", l0_shapes="[[3, 40]]") == [
        ("P0", {"x": (512, 1024)}),
        ("L0", {"x": (3, 40)}),
    ]
    message = refused(lambda: shapes(tmp_path, "[[512, 1024]]", "x", l0_shapes="[[0]]"))
    assert "SPEC.md:7 (l0_shapes[0])" in message


# --- what is refused ----------------------------------------------------------------------------------------

WRONG = {
    "op_name": {
        "[a]": "cannot name a file",
        "a/b": "cannot name a file",
        "12": "cannot name a file",
    },
    "supported_dtypes": {
        "float32": "no list of dtypes",
        "[]": "no list of dtypes",
        "[float23]": "unknown dtype `float23`",
    },
    "tolerance": {
        "1e-3": "takes `rtol` and `atol`",
        "{rtol: 1e-3}": "takes `rtol` and `atol`",
        "{rtol: 1e-3, atol: -1}": "takes `rtol` and `atol`",
        "{rtol: .inf, atol: 0}": "takes `rtol` and `atol`",
        "{rtol: true, atol: 0}": "takes `rtol` and `atol`",
        "{rtol: '1e-3', atol: 0}": "takes `rtol` and `atol`",
    },
    "default_params": {"[eps]": "no table"},
    "schema_version": {"2": "schema version is 2"},
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key in WRONG for value in WRONG[key]])
def test_a_value_without_meaning_is_told_with_its_line(
    tmp_path: Path, key: str, value: str
) -> None:
    path = written(tmp_path, **{key: value})
    line = next(
        n for n, text in enumerate(path.read_text().splitlines(), 1) if text.startswith(f"{key}:")
    )
    message = refused(lambda: read_spec(path))
    assert f"{path}:{line} ({key}" in message
    assert WRONG[key][value] in message


def test_a_tolerance_over_whole_tensors_is_refused_with_what_to_write(tmp_path: Path) -> None:
    matrix = "{mare_matrix: 0.01, mere_matrix: 0.001, rmse_matrix: 0.001}"
    message = refused(lambda: spec(tmp_path, supported_dtypes="[float16]", tolerance=matrix))
    assert "mare_matrix, mere_matrix, rmse_matrix" in message
    assert "single element" in message
    assert "`tolerance: {rtol: 0.01, atol: 0.01}`" in message


@pytest.mark.parametrize("key", ["op_name", "supported_dtypes", "p0_shapes", "tolerance"])
def test_what_is_missing_is_told_with_how_to_write_it(tmp_path: Path, key: str) -> None:
    message = refused(lambda: spec(tmp_path, **{key: None}))
    assert f"`{key}` is missing" in message
    assert f"`{key}: " in message


def test_a_slip_in_a_key_is_told_and_keys_of_others_are_left_alone(tmp_path: Path) -> None:
    message = refused(lambda: spec(tmp_path, p0_shapes=None, p0_shape="[[8]]", l0_shape="[[8]]"))
    assert "`p0_shape`" in message
    assert "Did you mean `p0_shapes`?" in message
    assert "Did you mean `l0_shapes`?" in message
    assert "missing" not in message
    assert spec(tmp_path, p1_shapes="[[8]]", dynamic_axis="[B]", category="fused-norm", rtol="1e-3")


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    message = refused(lambda: spec(tmp_path, op_name=None, tolerance="1", supported_dtypes="[x]"))
    assert "3 things are wrong" in message


NO_FRONT = {
    "": ":1: there is no front matter",
    "# softmax\n\nop_name: softmax\n": ":1: there is no front matter",
    "# softmax\n---\nop_name: softmax\n---\n": ":1: there is no front matter",
    "\n---\nop_name: softmax\n": ":2: the front matter has no end",
    "---\n---\n": "4 things are wrong",
    "---\n- op_name\n---\n": "4 things are wrong",
    "---\nop_name: [\n---\n": ":2: not valid YAML",
}


@pytest.mark.parametrize("text", NO_FRONT)
def test_a_file_without_front_matter_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "SPEC.md"
    path.write_text(text)
    assert NO_FRONT[text] in refused(lambda: read_spec(path))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "SPEC.md"
    assert "no such file" in refused(lambda: read_spec(path))
    path.write_bytes(b"---\nop_name: \xff\n---\n")
    assert f"{path}:2" in refused(lambda: read_spec(path))


PIECES = ["---\n", "op_name: a\n", "p0_shapes: ", "[", "]", "{", "}", "x: ", "8", ", ", "\n", "tolerance: {rtol: 0, atol: 0}\n", "supported_dtypes: [float32]\n", "default_params: ", "性能目标: 2x\n", "```\n"]  # fmt: skip


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=25),
    names=st.lists(st.sampled_from("xyz"), unique=True),
)
def test_any_file_is_read_or_told(tmp_path: Path, pieces: list[str], names: list[str]) -> None:
    path = tmp_path / "SPEC.md"
    for text in ("".join(pieces), "".join(["---\n", *pieces, "\n---\n"])):
        path.write_text(text, encoding="utf-8")
        try:
            cases = read_spec(path).cases(names)
        except BadInput as error:
            assert str(path) in str(error)
            assert error.fix
        else:
            assert len({case.id for case in cases}) == len(cases) > 0
