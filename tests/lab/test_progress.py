"""When a batch's calls are said to have been put off, on sightings that are made up."""

from __future__ import annotations

import mmap

import pytest

from opratchet.lab.progress import FEWEST_WATCHED, Progress, Witness

START, END = 1_000_000, 2_000_000


def seen(progress: Progress, at: int, times: int, due: float = 0.3) -> None:
    """So many batches in which the poison was last seen at this share of the batch, in per cent; 0 for never."""
    for _ in range(times):
        witness = Witness(mmap.mmap(-1, 1), 0, 0, due)
        witness.poisoned_at = START + (END - START) * at // 100 if at else 0
        progress.saw(witness, START, END)


@pytest.mark.parametrize("at", [1, 30, 54])
def test_work_that_is_done_about_when_it_is_due_is_no_evidence(at: int) -> None:
    progress = Progress()
    seen(progress, at, 100)
    assert progress.evidence() == ""


@pytest.mark.parametrize("at", [56, 99])
def test_work_that_is_long_overdue_in_most_batches_is_evidence(at: int) -> None:
    progress = Progress()
    seen(progress, at, FEWEST_WATCHED)
    assert f"{FEWEST_WATCHED} of {FEWEST_WATCHED}" in progress.evidence()


def test_a_worker_that_lost_its_cpu_now_and_then_is_not_accused() -> None:
    progress = Progress()
    seen(progress, 99, 40)
    seen(progress, 20, 60)
    assert progress.evidence() == ""


def test_batches_that_nobody_could_look_into_do_not_count() -> None:
    progress = Progress()
    seen(progress, 99, FEWEST_WATCHED - 1)
    seen(progress, 0, 100)
    progress.saw(None, START, END)
    assert progress.watched == FEWEST_WATCHED - 1
    assert progress.evidence() == ""


def test_a_witness_sees_the_poison_until_it_is_overwritten() -> None:
    memory = mmap.mmap(-1, 8)
    memory[3] = 0xFF
    witness = Witness(memory, 3, 0xFF, 0.5)
    assert not witness.is_gone()
    assert witness.poisoned_at
    memory[3] = 1
    assert witness.is_gone()
