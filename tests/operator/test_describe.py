"""What `opratchet check` shows: each field, its value, where it came from."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from opratchet.operator.describe import as_dict, describe, table
from opratchet.operator.discover import Overrides
from tests.operator.folder import MANIFEST, line_of, load, write


def test_each_field_has_its_value_and_its_origin(tmp_path: Path) -> None:
    manifest = MANIFEST + "[knobs]\nblock_M = [1, 2]\n[tolerances.float16]\nrtol = 1e-3\n"
    design = "## 性能目标\n目标延迟: 0.24 ms\n"
    operator = load(
        write(tmp_path, manifest=manifest, DESIGN=design), overrides=Overrides(flow="pypto")
    )
    rows = {row.field: (row.value, row.source) for row in describe(operator)}

    def at(part: str) -> str:
        return f"opratchet.toml:{line_of(manifest, part)}"

    assert rows["flow"] == ("pypto", "command line")
    assert rows["backend"] == ("tilelang-c", at("backend"))
    assert rows["target"] == ("at most 240 us a call", "DESIGN.md:2")
    assert rows["workload big"] == ("M=64 N=128 float32 tune", at("[[workloads]]"))
    assert rows["workload odd"][0] == "M=3 N=5 float32 smoke"
    assert rows["tolerance float32"] == ("rtol 0.0001, atol 0.0001", "default")
    assert rows["tolerance float16"] == ("rtol 0.001, atol 0.01", at("[tolerances"))
    assert rows["input X"] == ("normal, mean 0, std 1", at("[inputs"))
    assert rows["knob block_M"] == ("1, 2", at("block_M"))
    assert all(source for _, source in rows.values())
    assert "tolerance int8" not in rows


def test_weights_are_shown_where_one_is_not_1(tmp_path: Path) -> None:
    def rows(manifest: str) -> dict[str, str]:
        operator = load(write(tmp_path, manifest=manifest))
        return {row.field: row.value for row in describe(operator) if "workload" in row.field}

    second = '[[workloads]]\nid = "wide"\nshape = { M = 2, N = 9 }\n'
    assert not any("weight" in value for value in rows(MANIFEST + second + "weight = 1\n").values())
    found = rows(MANIFEST + second + "weight = 2.5\n")
    assert found["workload big"].endswith("tune weight 1")
    assert found["workload wide"].endswith("tune weight 2.5")
    assert found["workload odd"].endswith("smoke")


def test_without_a_target_the_goal_is_told(tmp_path: Path) -> None:
    rows = {row.field: row for row in describe(load(write(tmp_path)))}
    assert rows["target"].value.startswith("better than the baseline")
    assert rows["target"].source == "default"


def test_the_columns_are_aligned_even_with_chinese_names(tmp_path: Path) -> None:
    operator = load(write(tmp_path, manifest=MANIFEST.replace("odd", "奇数")))
    rows = describe(operator)

    def start(line: str, part: str) -> int:
        before = line[: line.rindex(part)]
        return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in before)

    starts = {start(line, row.source) for line, row in zip(table(rows), rows, strict=True)}
    assert len(starts) == 1


def test_the_description_is_plain_json(tmp_path: Path) -> None:
    operator = load(write(tmp_path, manifest=MANIFEST + "[target]\nspeedup = 2\n"))
    said = json.loads(json.dumps(as_dict(operator)))
    assert said["workloads"][0]["shape"] == {"M": 64, "N": 128}
    assert [workload["weight"] for workload in said["workloads"]] == [1.0, 1.0]
    assert said["target"]["metric"] == "speedup"
    assert said["tolerances"]["float32"] == {"rtol": 1e-4, "atol": 1e-4}
    assert said["provenance"]["backend"] == "opratchet.toml:2"
