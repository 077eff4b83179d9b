"""Schedules in DynamoDB. A schedule and its index row are one item, so they cannot diverge."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.database.unit_of_work import UnitOfWork
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.schedules.contract import Decide
from tickler.schedules.write import id_of
from tickler.stores.dynamodb.fires.lists import failing_ids
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.schedules.reads import listed_ids, owners_ids, read
from tickler.stores.dynamodb.schedules.writes import Writer
from tickler.stores.dynamodb.table import Table, refuse_using

# An *unindexed* schedule is listed as active and has no next fire; only a manual edit of the table can make one.
_LISTED_AS: dict[State | None, tuple[str, ...]] = {
    None: ("active", "paused", "finished", "unreadable"),
    "active": ("active",),
    "paused": ("paused",),
    "finished": ("finished",),
    "unreadable": ("unreadable",),
    "unindexed": ("active",),
}


class DynamodbSchedules:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._writer = Writer(table, records)

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        if isinstance(using, UnitOfWork):
            changes, parts = await self._writer.parts(await read(self._table, ids), decide)
            await using.join(self._table.client, map(id_of, changes))
            using.add(*parts)
            return
        refuse_using(using)
        await self._writer.change(await read(self._table, ids), decide)

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        await self.change(await owners_ids(self._table, owner), decide, using=using)

    async def get(self, id: Id, *, using: object = None) -> StoredSchedule | None:
        if not isinstance(using, UnitOfWork):
            refuse_using(using)
        known = (await read(self._table, [id])).get(id)
        return None if known is None else known.stored

    async def list(
        self, *, owner: str | None, state: State | None, after: Id | None, limit: int, failing: bool = False
    ) -> list[StoredSchedule]:
        """Of one owner and any state: as it is. Otherwise by way of an index, which may be behind by a moment."""
        found: list[StoredSchedule] = []
        if failing:
            async for some in failing_ids(self._table, owner, after, limit):
                found += await self._read(some, state)
                if len(found) >= limit:
                    break
            return found[:limit]
        while True:
            if owner is not None and state is None:
                ids = await owners_ids(self._table, owner, after, limit)
            else:
                ids = await listed_ids(self._table, _LISTED_AS[state], owner, after, limit)
            found += await self._read(ids, state)
            if len(ids) < limit or len(found) >= limit:
                return found[:limit]
            after = ids[-1]

    async def _read(self, ids: Sequence[Id], state: State | None) -> Sequence[StoredSchedule]:
        """Those that are there, and in that state, if one is given."""
        known = await read(self._table, ids)
        stored = sorted((each.stored for each in known.values() if each.stored is not None), key=lambda each: each.id)
        return [each for each in stored if state in (None, each.state)]
