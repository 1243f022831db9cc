"""Figures on record: what no measurement can have given is refused when it is made, and when it is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from opratchet.errors import LedgerError
from opratchet.ledger.events import BaselineMeasured, Noted
from opratchet.ledger.store import LEDGER, Ledger, read_lines, seal, unseal
from opratchet.ledger.words import Latency, MetricKind, Ratio, WorkloadKind, WorkloadRecord
from tests.builders import latency, ratio

BAD_FIGURES = [0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, True, "12", None]
BAD_COUNTS = [0, -3, 1.5, True, "4", None]
FIGURES = st.floats() | st.integers(-3, 3) | st.booleans() | st.none() | st.text(max_size=3)


def remade(record: Latency | Ratio, **changes: Any) -> Latency | Ratio:
    """The record made anew with some fields changed; a copy would not be checked."""
    return type(record)(**{**record.model_dump(), **changes})


@pytest.mark.parametrize("bad", BAD_FIGURES)
@pytest.mark.parametrize("field", ["us", "low_us", "high_us"])
def test_a_latency_holds_no_impossible_figure(field: str, bad: object) -> None:
    with pytest.raises(ValidationError, match=field):
        remade(latency(10.0), **{field: bad})


@pytest.mark.parametrize("bad", BAD_FIGURES)
@pytest.mark.parametrize("field", ["value", "low", "high"])
def test_a_ratio_holds_no_impossible_figure(field: str, bad: object) -> None:
    with pytest.raises(ValidationError, match=field):
        remade(ratio(1.5), **{field: bad})


@pytest.mark.parametrize("bad", BAD_COUNTS)
def test_a_figure_has_something_behind_it(bad: object) -> None:
    for record, field in (
        (latency(1.0), "samples"),
        (ratio(1.0), "pairs"),
        (ratio(1.0), "processes"),
    ):
        with pytest.raises(ValidationError, match=field):
            remade(record, **{field: bad})


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "2"])
def test_a_weight_is_a_positive_finite_number(bad: object) -> None:
    with pytest.raises(ValidationError, match="weight"):
        WorkloadRecord(id="a", shape={}, dtype="float32", kind=WorkloadKind.TUNE, weight=bad)  # type: ignore[arg-type]


def test_the_centre_may_lie_upon_both_ends_and_not_beyond_them() -> None:
    same = {"us": 7.0, "low_us": 7.0, "high_us": 7.0}
    assert remade(latency(1.0), **same)
    assert remade(ratio(1.0), value=7.0, low=7.0, high=7.0)
    for change in ({"us": 8.0}, {"low_us": 7.5}, {"high_us": 6.5}):
        with pytest.raises(ValidationError, match="within"):
            remade(latency(1.0), **{**same, **change})
    with pytest.raises(ValidationError, match="within"):
        remade(ratio(1.0), value=0.5)


@given(FIGURES, FIGURES, FIGURES)
def test_what_is_held_is_a_true_interval(low: Any, us: Any, high: Any) -> None:
    try:
        held = Latency(kind=MetricKind.MEASURED, us=us, low_us=low, high_us=high, samples=5)
    except ValidationError:
        numbers = [type(x) in (int, float) for x in (low, us, high)]
        assert not all(numbers) or not 0 < low <= us <= high < math.inf
        return
    assert 0 < held.low_us <= held.us <= held.high_us < math.inf
    assert Latency.model_validate_json(held.model_dump_json()) == held


@pytest.mark.parametrize(
    "bad", ["0.0", "-1.0", '"NaN"', '"Infinity"', "NaN", "1e999", "true", "null"]
)
def test_a_ledger_with_an_impossible_figure_is_refused_with_its_line(
    tmp_path: Path, bad: str
) -> None:
    """The chain is whole: whoever wrote the figure also wrote the hash."""
    with Ledger(tmp_path, create=True) as ledger:
        ledger.append(Noted(text="before"))
        ledger.append(BaselineMeasured(latency={"n64": latency(123.0)}))
    path = tmp_path / LEDGER
    first, second = path.read_bytes().splitlines()
    body, _hash = unseal(second)
    assert json.loads(body)["event"]["latency"]["n64"]["us"] == 123.0
    path.write_bytes(first + b"\n" + seal(body.replace(b":123.0", b":" + bad.encode())) + b"\n")
    with pytest.raises(LedgerError) as caught:
        read_lines(path)
    assert caught.value.where == f"{path}:2"
