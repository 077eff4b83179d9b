"""Lets the reads of an engine lag behind, as those of DynamoDB may: each item by itself, by up to a second."""

from __future__ import annotations

import time
from random import Random
from typing import Any

LAG_S = 1.0


class LaggingItems:
    """Answers with what an item was when it was last taken, if that is less than its lag ago."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._taken: dict[tuple[str | None, str, object], tuple[float, Any]] = {}

    def seen(self, key: tuple[str | None, str, object], item: Any) -> Any:
        now = time.monotonic()
        until, former = self._taken.get(key, (0.0, None))
        if now < until:
            return former
        self._taken[key] = (now + self._random.uniform(0, LAG_S), item)
        return item


def let_reads_lag(engine: Any, seed: int = 1) -> None:
    """Let pages lag behind that are not read consistently: those of indexes, and those of rows where readers allow it."""
    slice_, items = engine.slice, LaggingItems(seed)

    async def lagging(ask: Any, **options: Any) -> Any:
        found = await slice_(ask, **options)
        if ask.consistent:
            return found
        placed = zip(found.positions, found.items, strict=True)
        return found._replace(items=[items.seen((ask.span.gsi, ask.span.partition, where), item) for where, item in placed])

    engine.slice = lagging
