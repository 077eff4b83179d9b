"""Garbage collection of a worker process: rare, since its objects form no cycles."""

from __future__ import annotations

import gc

GENERATION_0_THRESHOLD = 20_000  # a batch of claims has thousands of objects, without cycles


def tune_gc() -> None:
    """Exempt all present objects from collection, and collect less often. Call it when setup is complete."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GENERATION_0_THRESHOLD, *gc.get_threshold()[1:])
