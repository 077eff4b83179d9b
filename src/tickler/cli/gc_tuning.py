"""How a worker's process collects garbage: seldom, for it makes next to none."""

from __future__ import annotations

import gc

YOUNG = 20_000  # a batch of claims has thousands of objects, and none of them is in a circle


def spare_the_collector() -> None:
    """Once all is set up: what is here now stays, and no collection needs to look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
