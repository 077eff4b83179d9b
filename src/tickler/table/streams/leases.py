"""Which shards a process reads, beside other processes of the same consumer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tickler.table.engines.change_log import Shard


class ShardState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a consumer has come in a shard, and which process holds it.

    `moved_at_ms` is when the position was last saved after a move, or when the shard was first held; `lost_at_ms` is when changes
    were last found to be deleted unread.
    """

    position: str | None = None
    ended: bool = False
    holder: str | None = None
    lease_until_ms: int = 0
    moved_at_ms: int = 0
    lost_at_ms: int = 0

    def is_held(self, now_ms: int) -> bool:
        return self.holder is not None and self.lease_until_ms > now_ms


class LeasePlan(NamedTuple):
    take: list[str]
    give_up: list[str]


def readable(shards: Sequence[Shard], states: Mapping[str, ShardState]) -> list[str]:
    """Return the shards that can be read now: not ended, and all their parents are, as far as these are known."""
    parents = {shard.id: shard.parents for shard in shards}
    known = [*parents, *(shard for shard in states if shard not in parents)]  # a shard that was trimmed away tells that
    return [
        shard for shard in known if not _ended(states, shard) and all(_ended(states, each) for each in parents.get(shard, ()))
    ]


def plan_leases(
    shards: Collection[str], states: Mapping[str, ShardState], me: str, members: Collection[str], now_ms: int
) -> LeasePlan:
    """Divide shards among the processes of a consumer, so that no two differ by more than one.

    If they do not divide evenly, the first processes in the order of their names have one more. A process takes free shards up
    to its share, and gives up what it has beyond it. A shard is free if nobody holds it, or its lease has expired.
    """
    everybody = sorted({*members, me})
    share, left = divmod(len(shards), len(everybody))
    share += everybody.index(me) < left
    mine = [shard for shard in shards if shard in states and states[shard].holder == me and states[shard].is_held(now_ms)]
    free = [shard for shard in shards if shard not in states or not states[shard].is_held(now_ms)]
    return LeasePlan(free[: max(0, share - len(mine))], mine[share:])


def _ended(states: Mapping[str, ShardState], shard: str) -> bool:
    return shard in states and states[shard].ended
