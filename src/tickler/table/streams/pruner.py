"""Deletes changes that no consumer needs any more."""

from __future__ import annotations

import random

from tickler.table.streams.context import StreamContext
from tickler.table.streams.progress import all_states

RETENTION_MS = 7 * 24 * 3600 * 1000
PRUNED_EVERY_S = 30.0
PRUNED_AT_A_TIME = 10_000


class Pruner:
    def __init__(self, context: StreamContext) -> None:
        self._context = context
        self._due_at = 0.0

    async def prune_if_due(self, now: float) -> None:
        """Delete some changes, from time to time. `now` is by the clock of the event loop."""
        if now >= self._due_at:
            self._due_at = now + PRUNED_EVERY_S * random.uniform(0.5, 1)  # noqa: S311  # so that processes take turns
            await prune(self._context)


async def prune(context: StreamContext) -> int:
    """Delete changes that all consumers have behind them, and those that are too old. Returns how many."""
    states = await all_states(context.metadata)
    positions = [{shard: each.position for shard, each in shards.items() if not each.ended} for shards in states.values()]
    return await context.changes.prune(positions, keep_ms=RETENTION_MS, limit=PRUNED_AT_A_TIME)
