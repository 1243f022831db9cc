"""The page that starts and ends a batch: what either side sees, and that nobody waits longer than he may."""

from __future__ import annotations

import threading
import time

import pytest

from opratchet.lab.flags import DONE, GO, READY, Flags

BATCH_SECONDS = 0.02


def worker(flags: Flags) -> None:
    """Two batches, as a run worker does them."""
    for _ in range(2):
        words, number = flags.wait_for_start()
        time.sleep(BATCH_SECONDS)
        words[DONE] = number


@pytest.mark.parametrize("alone", [True, False])
def test_a_batch_takes_from_its_start_to_its_end(alone: bool) -> None:
    ours = Flags.made()
    thread = threading.Thread(target=worker, args=(Flags(ours.fd),))
    thread.start()
    taken = [ours.start_and_wait(10, lambda: False, alone=alone) for _ in range(2)]
    thread.join()
    ours.close()
    assert all(BATCH_SECONDS <= (end - start) / 1e9 < 5 for start, end in taken)


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_a_worker_that_hangs_is_waited_for_once_and_no_longer(ready: bool, alone: bool) -> None:
    ours = Flags.made()
    if ready:
        ours._words[READY] = 1
    start = time.monotonic()
    ours.start_and_wait(0.5, lambda: False, alone=alone)
    assert 0.4 < time.monotonic() - start < 0.95  # not the limit twice
    ours.close()


def test_a_worker_that_is_gone_is_not_waited_for() -> None:
    ours = Flags.made()
    start = time.monotonic()
    ours.start_and_wait(60, lambda: True)
    assert time.monotonic() - start < 5
    ours.close()


def test_an_end_of_an_earlier_batch_does_not_end_this_one() -> None:
    ours = Flags.made()
    ours._words[READY], ours._words[DONE] = 1, 7
    start = time.monotonic()
    ours.start_and_wait(0.3, lambda: False)
    assert time.monotonic() - start > 0.25
    assert ours._words[GO] == 1
    ours.close()
