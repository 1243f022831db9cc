"""Rest for the garbage collector while a long ledger is read: it would walk all lines again and again, and none is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_rests() -> Iterator[None]:
    """No garbage is looked for inside; afterwards as before, and what was read is not walked for it (`gc.freeze`)."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.freeze()
            gc.enable()
