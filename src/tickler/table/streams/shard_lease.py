"""A shard that this process holds: how far it was delivered, and what is saved of that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from tickler.table.engines.change_log import ChangeRecord, ShardRead
from tickler.table.streams.leases import ShardState


class ShardLease:
    """`state` is what is saved. `valid_until` is by the clock of the event loop, from before the lease was saved."""

    def __init__(self, state: ShardState, valid_until: float) -> None:
        self.state = state
        self.valid_until = valid_until
        self.position = state.position
        self.is_leaving = False  # it goes to another process once its deliveries have ended
        self.is_unsaved = False  # something was delivered since it was saved
        self.task: asyncio.Task[None] | None = None
        self._ended = False
        self._lost_at_ms = state.lost_at_ms
        self._records: Sequence[ChangeRecord] = ()
        self._undelivered: dict[int, ChangeRecord] = {}  # in the order of the shard

    def is_valid(self, now: float) -> bool:
        return now < self.valid_until

    @property
    def is_free(self) -> bool:
        """Whether more of it can be read: nothing is being delivered."""
        return self.task is None and not self._ended and not self.is_leaving

    def begin(self, read: ShardRead, now_ms: int) -> None:
        """Take notice of what was read."""
        self._records = read.records
        self._undelivered = dict(enumerate(read.records))
        if read.lost:
            self._lost_at_ms, self.is_unsaved = now_ms, True

    def done(self, number: int) -> None:
        """Take notice that a record was delivered. The position goes on as far as nothing is missing before it."""
        del self._undelivered[number]
        first = next(iter(self._undelivered), len(self._records))
        if first:
            self.position, self.is_unsaved = self._records[first - 1].position, True

    def end(self, read: ShardRead) -> None:
        """Take notice that the deliveries of a read have ended. If none is missing, the position is where the read ended."""
        if not self._undelivered:
            self.position = read.position
            self._ended = read.ended
            self.is_unsaved = self.is_unsaved or read.ended
        self._records, self._undelivered = (), {}

    def next_state(self, lease_until_ms: int, now_ms: int) -> ShardState:
        """Return what to save. A shard that has ended, or goes to another process, is held by nobody."""
        is_moved = self.position != self.state.position or not self.state.moved_at_ms
        given_up = self._ended or (self.is_leaving and self.task is None)
        return replace(
            self.state,
            position=self.position,
            ended=self._ended,
            holder=None if given_up else self.state.holder,
            lease_until_ms=0 if given_up else lease_until_ms,
            moved_at_ms=now_ms if is_moved else self.state.moved_at_ms,
            lost_at_ms=self._lost_at_ms,
        )
