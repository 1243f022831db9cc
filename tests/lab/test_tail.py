"""The end of what a worker printed."""

from __future__ import annotations

import os

from opratchet.lab.tail import Tail


def test_the_tail_of_a_pipe() -> None:
    tail = Tail(10)
    os.write(tail.descriptor, b"x" * 200_000 + b"0123456789")
    tail.handed_over()
    assert tail.text().endswith("\n0123456789")
    assert tail.text().startswith("[200000 bytes")
    tail.close()
    tail.close()
