"""The whole analysis: recorded runs of the cost model, a run of a device worked out by hand, and folders that are wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opratchet.errors import BadInput
from opratchet.profile.swimlane import Cores, analyse, is_output
from opratchet.profile.swimlane.tasks import read_tasks
from tests.profile.swimlane.build import (
    DATA,
    LOG,
    MODEL,
    TASKS,
    TOPOLOGY,
    TRACE,
    copied,
    raw_tasks,
)

CHIP = Cores(2, 4)


@pytest.mark.parametrize(
    ("name", "printed_us", "printed_utilisation"),
    [("softmax", 4.47, 0.1041), ("matmul", 10.40, 0.0831)],
)
def test_recorded_runs_give_what_pypto_printed(
    name: str, printed_us: float, printed_utilisation: float
) -> None:
    """PyPTO's `AICore Utilization` is the time in tasks over all 72 cores, also those of a kind that is not used."""
    found = analyse(DATA / name)
    assert found.execution_us == pytest.approx(printed_us, abs=0.005)
    busy = sum(use.busy_us for use in found.kinds)
    assert busy / (72 * found.execution_us) == pytest.approx(printed_utilisation, abs=0.00005)
    assert found.cores == Cores(24, 48)
    assert found.metric_kind.value == "simulated"
    assert found.cycles_per_us == 1800


@pytest.mark.parametrize("name", ["softmax", "matmul", "device"])
def test_the_tasks_give_the_figures_of_the_log(name: str) -> None:
    """The logs were written by PyPTO's own script."""
    assert not any("agree" in note for note in analyse(DATA / name).notes)


@pytest.mark.parametrize("name", ["softmax", "matmul", "device"])
def test_upstream_rates_are_the_same_without_the_log(name: str, tmp_path: Path) -> None:
    with_log = analyse(DATA / name)
    without = analyse(copied(tmp_path, name, LOG))
    for rate in ("core_utilisation", "bubble", "load_balance"):
        assert getattr(without.upstream, rate) == pytest.approx(getattr(with_log.upstream, rate))
    assert without.upstream_execution_us == pytest.approx(with_log.upstream_execution_us)


@pytest.mark.parametrize("name", ["softmax", "matmul"])
def test_the_trace_alone_gives_the_same(name: str, tmp_path: Path) -> None:
    full = analyse(DATA / name)
    alone = analyse(copied(tmp_path, name, "_simulate.swim.json", LOG, TOPOLOGY))
    assert alone.execution_us == pytest.approx(full.execution_us)
    assert alone.honest.core_utilisation == pytest.approx(full.honest.core_utilisation)
    assert alone.honest.bubble == pytest.approx(full.honest.bubble)
    assert alone.upstream.bubble == pytest.approx(full.upstream.bubble)
    rows = [(row.psg, row.leaf, row.tasks, row.used) for row in full.subgraphs]
    assert sorted(rows) == sorted((r.psg, r.leaf, r.tasks, r.used) for r in alone.subgraphs)
    assert full.critical_path and alone.critical_path
    assert alone.critical_path.us == pytest.approx(full.critical_path.us)


def test_the_matmul_by_hand() -> None:
    """16 cube tasks of 4724 cycles in two subgraphs, then 16 vector tasks of 2273 cycles that wait for two of them each:
    from 9385 to 28101 cycles, and a path of one of each kind. The first two subgraphs tie."""
    found = analyse(DATA / "matmul")
    assert found.execution_us == pytest.approx((28101 - 9385) / 1800)
    assert found.upstream_execution_us == pytest.approx((28101 - 3422) / 1800)
    assert [
        (row.psg, row.kind, row.tasks, row.used, row.theoretical, row.full)
        for row in found.subgraphs
    ] == [
        (2, "AIC", 8, 8, 24, False),
        (0, "AIC", 8, 8, 24, False),
        (1, "AIV", 16, 16, 48, False),
    ]
    assert [row.total_us for row in found.subgraphs] == pytest.approx(
        [8 * 4724 / 1800, 8 * 4724 / 1800, 16 * 2273 / 1800]
    )
    assert found.bottleneck_gap == pytest.approx(0.0)
    assert found.critical_path is not None
    assert found.critical_path.us == pytest.approx((4724 + 2273) / 1800)
    assert [step.core[:3] for step in found.critical_path.steps] == ["AIC", "AIV"]
    assert found.pipes["MTE_IN"] == pytest.approx(0.0748)


class TestADeviceByHand:
    """Two cube cores and two vector cores had a task, of a chip with two and four; 50 ticks are a microsecond.

    AIC_1 works 0-10 and 12-20, AIC_2 0-8, AIV_25 11-15, AIV_26 22-25: see `build`.
    """

    def test_time_and_clock(self) -> None:
        found = analyse(DATA / "device", cores=CHIP)
        assert found.metric_kind.value == "measured"
        assert found.cycles_per_us == 50
        assert found.execution_us == pytest.approx(25.0)
        assert found.upstream_execution_us == pytest.approx(25.0)

    def test_upstream_rates(self) -> None:
        """Utilisation 18/20, 8/8, 4/15, 3/25; bubble 2/20, 0, 1/5, 2/5; AIC times 18 and 8: mean 13, deviation 5."""
        rates = analyse(DATA / "device", cores=CHIP).upstream
        assert rates.core_utilisation == pytest.approx((18 / 20 + 1 + 4 / 15 + 3 / 25) / 4)
        assert rates.bubble == pytest.approx((0.1 + 0 + 0.2 + 0.4) / 4)
        assert rates.load_balance == pytest.approx(1 - 5 / 13)

    def test_honest_rates(self) -> None:
        """26 + 7 us of work in (2 + 4) * 25 us. Task 1048577 is ready from 0 and starts at 12; a cube core is idle
        from 8 on: 4 us. Task 3 waits 1 us, task 4 waits 2 us. Means 13 and 7/4 over maxima 18 and 4."""
        rates = analyse(DATA / "device", cores=CHIP).honest
        assert rates.core_utilisation == pytest.approx(33 / 150)
        assert rates.bubble == pytest.approx((4 + 1 + 2) / 150)
        assert rates.load_balance == pytest.approx((26 * 13 / 18 + 7 * 1.75 / 4) / 33)

    def test_subgraphs(self) -> None:
        found = analyse(DATA / "device", cores=CHIP)
        rows = [
            (r.psg, r.leaf, r.kind, r.tasks, r.used, r.theoretical, r.full) for r in found.subgraphs
        ]
        assert rows == [(0, "101", "AIC", 3, 2, 2, True), (1, "202", "AIV", 2, 2, 4, False)]
        assert [row.mean_us for row in found.subgraphs] == pytest.approx([26 / 3, 3.5])
        assert found.bottleneck_gap == pytest.approx((26 - 7) / 26)

    def test_critical_path(self) -> None:
        """Tasks 1 and 3: 10 + 4 us; the others give 8 + 3."""
        path = analyse(DATA / "device", cores=CHIP).critical_path
        assert path is not None
        assert path.us == pytest.approx(14.0)
        assert path.share == pytest.approx(14 / 25)
        assert [(step.task, step.core, step.psg) for step in path.steps] == [
            ("0-0-1", "AIC_1", 0),
            ("0-0-3", "AIV_25", 1),
        ]
        assert [step.start_us for step in path.steps] == pytest.approx([0, 11])

    def test_merge_guide(self) -> None:
        """The cube subgraph was called in two iterations, the vector subgraph in one."""
        guide = analyse(DATA / "device", cores=CHIP).merge_guide
        rows = [
            (g.setting, g.hash_order, g.sub_graph_count, g.per_iteration, g.tasks) for g in guide
        ]
        assert rows == [
            ("cube_l1_reuse_setting", "func8_0", 4, 2.0, 3),
            ("cube_nbuffer_setting", "func8_0", 4, 2.0, 3),
            ("vec_nbuffer_setting", "func8_1", 6, 6.0, 2),
        ]
        given = analyse(DATA / "device", cores=CHIP, outer_loops=4).merge_guide
        assert [group.per_iteration for group in given] == [1.0, 1.0, 1.5]

    def test_without_the_chip_nothing_is_called_full(self) -> None:
        found = analyse(DATA / "device")
        assert [row.full for row in found.subgraphs] == [None, None]
        assert found.honest.core_utilisation == pytest.approx(33 / 100)
        assert any("give `cores`" in note for note in found.notes)

    def test_newer_files(self, tmp_path: Path) -> None:
        """Newer versions write `leafIndex`, and two columns more in the topology."""
        folder = copied(tmp_path, "device")
        tasks, topology = folder / TASKS, folder / TOPOLOGY
        tasks.write_text(tasks.read_text().replace("subGraphId", "leafIndex"))
        head, *rows = topology.read_text().splitlines()
        new = [head.replace("psgId,", "psgId,wrapId,staticSuccCount,")]
        for row in rows:
            cells = row.split(",")
            new.append(",".join([*cells[:9], "-1", str(len(cells) - 10), *cells[10:]]))
        topology.write_text("\n".join(new) + "\n")
        before = analyse(DATA / "device").record()
        assert {**analyse(folder).record(), "folder": ""} == {**before, "folder": ""}

    def test_from_the_log_alone(self, tmp_path: Path) -> None:
        """Busy 18, 8, 4, 3 us of 25; waits for the scheduler 2, 0, 1, 2 us."""
        folder = copied(tmp_path, "device", TASKS, TRACE, TOPOLOGY)
        found = analyse(folder, cores=CHIP)
        assert found.execution_us == pytest.approx(25.0)
        assert found.honest.core_utilisation == pytest.approx(33 / 150)
        assert found.honest.bubble == pytest.approx(5 / 150)
        assert found.upstream == analyse(DATA / "device").upstream
        assert found.subgraphs == () and found.critical_path is None
        assert any("lower limits" in note for note in found.notes)

    def test_from_the_trace_alone(self, tmp_path: Path) -> None:
        found = analyse(copied(tmp_path, "device", TASKS, LOG, TOPOLOGY), cores=CHIP)
        assert found.honest.bubble == pytest.approx(7 / 150)
        assert found.upstream.bubble == pytest.approx(0.175)
        assert found.critical_path is not None
        assert found.critical_path.us == pytest.approx(14.0)

    def test_from_the_raw_tasks_alone(self, tmp_path: Path) -> None:
        """Nothing tells the clock, so it has to be given; nor dependencies: each task counts as ready from the start,
        the vector tasks for 11 and 22 us."""
        folder = copied(tmp_path, "device", LOG, TRACE, TOPOLOGY)
        with pytest.raises(BadInput, match="cycles_per_us: 50"):
            analyse(folder, cores=CHIP)
        found = analyse(folder, cores=CHIP, cycles_per_us=50)
        assert found.execution_us == pytest.approx(25.0)
        assert found.honest.bubble == pytest.approx((4 + 11 + 22) / 150)
        assert found.critical_path is None
        assert [row.psg for row in found.subgraphs] == [1, 2]  # all that is left: subGraphId
        assert any("no file tells dependencies" in note for note in found.notes)

    def test_a_log_of_another_run_is_told(self, tmp_path: Path) -> None:
        folder = copied(tmp_path, "device")
        log = folder / LOG
        log.write_text(
            log.read_text().replace("Wait Schedule Time: 1.0", "Wait Schedule Time: 1.5")
        )
        assert (
            "bubble_analysis.log does not agree with the tasks for AIV_25" in analyse(folder).notes
        )

    def test_fewer_cores_than_worked_are_refused(self) -> None:
        with pytest.raises(BadInput, match="1 AIC cores are given, and 2 had a task"):
            analyse(DATA / "device", cores=Cores(1, 4))

    @pytest.mark.parametrize("clock", [0.0, -50.0, float("nan"), float("inf")])
    def test_what_is_no_clock_is_refused(self, clock: float) -> None:
        with pytest.raises(BadInput, match="no clock"):
            analyse(DATA / "device", cycles_per_us=clock)


@pytest.mark.parametrize("name", ["softmax", "matmul", "device"])
def test_the_record_is_plain_json(name: str) -> None:
    record = analyse(DATA / name).record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@given(data=st.data())
@pytest.mark.parametrize("name", ["matmul", "device"])
def test_files_that_no_longer_fit_together(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A digit of one file changed, or a file gone: figures that are numbers, or an error that says what is wrong."""
    folder = tmp_path_factory.mktemp("mixed")
    shutil.copytree(DATA / name, folder, dirs_exist_ok=True)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in data.draw(st.sets(st.sampled_from(files), max_size=2)):
        path.unlink()
    path = data.draw(st.sampled_from([path for path in files if path.exists()]))
    text = path.read_text()
    digits = [at for at, letter in enumerate(text) if letter.isdigit()]
    for at in data.draw(st.lists(st.sampled_from(digits), max_size=3)):
        text = text[:at] + data.draw(st.sampled_from("0123456789.-")) + text[at + 1 :]
    path.write_text(text)
    try:
        found = analyse(folder)
    except BadInput as error:
        assert error.what and error.fix
    else:
        json.dumps(found.record(), allow_nan=False)
        assert 0 < found.honest.core_utilisation <= 1 + 1e-9
        assert 0 <= found.honest.bubble <= 1 + 1e-9


class TestWhereTheFilesLie:
    def test_above_and_below(self, tmp_path: Path) -> None:
        run = tmp_path / "output" / "output_1"
        shutil.copytree(DATA / "matmul", run)
        places = (tmp_path, tmp_path / "output", run, run / MODEL)
        found = [analyse(place) for place in places]
        assert all(one.record() == found[0].record() for one in found)
        assert found[0].critical_path is not None  # the topology lies above the model's folder

    def test_several_runs_are_refused_by_name(self, tmp_path: Path) -> None:
        for name in ("output_1", "output_2"):
            shutil.copytree(DATA / "softmax", tmp_path / name)
        with pytest.raises(BadInput, match="2 runs lie in this folder: output_1, output_2"):
            analyse(tmp_path)

    def test_a_device_goes_before_its_simulation(self, tmp_path: Path) -> None:
        folder = copied(tmp_path, "device")
        shutil.copytree(DATA / "matmul" / MODEL, folder / MODEL)
        found = analyse(folder)
        assert found.metric_kind.value == "measured"
        assert any("left aside" in note for note in found.notes)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="no swimlane lies in this folder"):
            analyse(tmp_path)
        with pytest.raises(BadInput, match="this is no folder"):
            analyse(tmp_path / "missing")

    def test_what_an_output_is(self, tmp_path: Path) -> None:
        assert is_output(DATA / "device")
        assert is_output(DATA / "matmul") and is_output(DATA / "matmul" / MODEL)
        shutil.copytree(DATA / "softmax", tmp_path / "softmax" / "output" / "output_1")
        assert is_output(tmp_path / "softmax" / "output")
        assert not is_output(tmp_path / "softmax")  # an operator that was run where it lies
        assert not is_output(tmp_path / "softmax_impl.py")


def test_tasks_of_idle_runs_are_refused(tmp_path: Path) -> None:
    (tmp_path / TASKS).write_text(raw_tasks([(0, "AIC", []), (24, "AIV", [])]))
    with pytest.raises(BadInput, match="no task ran on an AIC or AIV core"):
        analyse(tmp_path, cycles_per_us=50)


def test_span_is_that_of_the_cores(tmp_path: Path) -> None:
    """What the cost model's scheduler does before is not part of it."""
    path = tmp_path / TASKS
    path.write_text(
        raw_tasks([(0, "AIC", [(0, 1, 0, 200, 300)]), (79, "HUB", [(0, 0, 0, 10, 11)])])
    )
    assert read_tasks(path).span_cycles == 100
