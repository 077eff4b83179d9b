"""Garbage collection of a worker or a server: rare, since their objects form no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

GENERATION_0_THRESHOLD = 20_000  # a batch of claims has thousands of objects, without cycles


def tune_gc() -> None:
    """Exempt all present objects from collection, and collect less often. Call it when setup is complete."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GENERATION_0_THRESHOLD, *gc.get_threshold()[1:])


@contextmanager
def tuned_gc() -> Iterator[None]:
    """Tune the garbage collection for the time of a block."""
    before = gc.get_threshold()
    tune_gc()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
