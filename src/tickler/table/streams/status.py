"""How the consumers of a table are doing."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tickler.table.engines.engine import Engine
from tickler.table.streams.leases import ShardState
from tickler.table.streams.parking import count_parked
from tickler.table.streams.progress import all_states

MAX_COUNTED = 10_000
SEEN_CHANGES = 50  # from the oldest waiting one on
STOPPED_AFTER_MS = 10 * 60_000
UNCOUNTED_STOPPED_AFTER_MS = 12 * 3600_000  # where waiting changes cannot be counted, and are deleted after a day
LOST_SHOWN_MS = 7 * 24 * 3600_000


class ConsumerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer is. `waiting` changes are not delivered yet; None where that cannot be counted.

    `moved_at_ms` is when it last saved a position, `lost_at_ms` when it last found changes deleted unread; 0 for never.
    `stuck_at_ms` is since when the oldest waiting change has been there and its shard has not moved; None if none waits.
    """

    table: str
    name: str
    shards: int
    held: int
    waiting: int | None
    parked: int
    moved_at_ms: int
    lost_at_ms: int
    stuck_at_ms: int | None
    now_ms: int

    @property
    def is_stopped(self) -> bool:
        """Whether changes wait, or may wait, and it does not get on."""
        if self.waiting is None:
            return not self.held and self.now_ms - self.moved_at_ms > UNCOUNTED_STOPPED_AFTER_MS
        return self.stuck_at_ms is not None and self.now_ms - self.stuck_at_ms > STOPPED_AFTER_MS

    @property
    def has_lost(self) -> bool:
        """Whether changes were found deleted unread in the last days."""
        return self.now_ms - self.lost_at_ms < LOST_SHOWN_MS

    @property
    def state(self) -> str:
        return "stopped" if self.is_stopped else "running" if self.held else "idle"


async def consumer_statuses(engine: Engine, table: str, now_ms: int) -> list[ConsumerStatus]:
    """Return the consumers that have run on a table."""
    parked = await count_parked(engine.metadata)
    states = await all_states(engine.metadata)
    return [await _status(engine, table, name, states[name], parked.get(name, 0), now_ms) for name in sorted(states)]


async def _status(
    engine: Engine, table: str, name: str, states: Mapping[str, ShardState], parked: int, now_ms: int
) -> ConsumerStatus:
    open_shards = {shard: state for shard, state in states.items() if not state.ended}
    positions = {shard: state.position for shard, state in open_shards.items()}
    waiting = await engine.changes.waiting(positions, limit=MAX_COUNTED) if positions else 0
    return ConsumerStatus(
        table=table,
        name=name,
        shards=len(open_shards),
        held=sum(state.is_held(now_ms) for state in open_shards.values()),
        waiting=waiting,
        parked=parked,
        moved_at_ms=max((state.moved_at_ms for state in states.values()), default=0),
        lost_at_ms=max((state.lost_at_ms for state in states.values()), default=0),
        stuck_at_ms=await _stuck_at_ms(engine, open_shards) if waiting else None,
        now_ms=now_ms,
    )


async def _stuck_at_ms(engine: Engine, states: Mapping[str, ShardState]) -> int | None:
    """Return since when the first waiting change of a shard waits, or since its shard has moved, if that was later."""
    reads = await engine.changes.read({shard: state.position for shard, state in states.items()}, limit=SEEN_CHANGES)
    return min((max(read.records[0].at_ms, states[read.shard].moved_at_ms) for read in reads if read.records), default=None)
