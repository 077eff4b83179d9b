"""Deletes changes that no consumer needs any more."""

from __future__ import annotations

import random

from tickler.table.engines.change_log import ChangeLog
from tickler.table.engines.metadata import Metadata
from tickler.table.streams.context import StreamContext
from tickler.table.streams.leases import ShardState
from tickler.table.streams.progress import all_states

RETENTION_MS = 7 * 24 * 3600 * 1000
PRUNED_EVERY_S = 30.0
PRUNED_AT_A_TIME = 10_000
PAUSE_S = 1.0  # while there is more to delete


class Pruner:
    def __init__(self, context: StreamContext) -> None:
        self._context = context
        self._due_at = 0.0

    async def prune_if_due(self, now: float) -> None:
        """Delete some changes, from time to time. `now` is by the clock of the event loop."""
        if now >= self._due_at:
            self._due_at = now + PRUNED_EVERY_S * random.uniform(0.5, 1)  # noqa: S311  # so that processes take turns
            if await prune(self._context.changes, self._context.metadata) >= PRUNED_AT_A_TIME:
                self._due_at = now + PAUSE_S  # there may be more


async def prune(changes: ChangeLog, metadata: Metadata) -> int:
    """Delete changes that all consumers have behind them, and those that are too old. Returns how many.

    A consumer without a state of a shard has not begun to read it, and needs all of it.
    """
    consumers = await all_states(metadata)
    shards = [shard.id for shard in await changes.shards()]
    positions = [{shard: states.get(shard, ShardState()).position for shard in shards} for states in consumers.values()]
    return await changes.prune(positions, keep_ms=RETENTION_MS, limit=PRUNED_AT_A_TIME)
