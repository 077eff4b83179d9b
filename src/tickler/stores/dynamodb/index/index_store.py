"""The schedule index in DynamoDB. Rows are head items, which are in the sparse GSI `due` only while they will fire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from tickler.dynamo.batches import execute_many, gathered, get_many
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Statement
from tickler.errors import ManagedRow, StoreUnavailable
from tickler.index.advance import readable, reads
from tickler.model.cursor import decode_walk, encode_walk
from tickler.model.index_row import IndexRow, SetAside
from tickler.model.schedule import Id
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.index.claim import Claimer
from tickler.stores.dynamodb.index.claim_writes import DueReader
from tickler.stores.dynamodb.layout import text
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.table import TRIES, Table, all_of, refuse_using, settled

_UNREADABLE = layout.listed_partitions("unreadable")


class WalkPlace(NamedTuple):
    """A position in a walk."""

    shard: Annotated[int, Meta(ge=0)]  # its number
    met: dict[str, dict[str, str]] | None  # the last entry of it that was read


class DynamodbIndex:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records
        self.claimer = Claimer(table, records)

    async def upsert_many(self, rows: Sequence[IndexRow], *, using: object = None) -> None:
        """Write each row on its own; a call that fails half-way can be repeated."""
        refuse_using(using)
        settings = await self._table.settings.get()
        wanted = {Id(row.owner, row.key): layout.row_head(row, self._table.home, settings.write_shards) for row in rows}
        await self._records.remember_zones({row.when.tz for row in rows})
        for attempt in range(1, TRIES + 1):
            found = await self._heads(wanted)
            for id, head in found.items():
                if "version" in head:
                    raise ManagedRow(*id)
                if head["revision"] == wanted[id]["revision"]:
                    del wanted[id]  # an earlier attempt wrote it, and its response was lost
            statements = [self._upsert(head, found.get(id)) for id, head in wanted.items()]
            outcomes = settled(await execute_many(self._table.client, statements))
            lost = [id for id, outcome in zip(wanted, outcomes, strict=True) if not outcome.done]
            wanted = {id: wanted[id] for id in lost}
            if not wanted:
                return
            await pause(attempt)
        raise StoreUnavailable(
            f"{self._table.label}: {len(wanted)} rows were changed by others {TRIES} times in a row: try again"
        )

    async def remove(self, owner: str, key: str, *, using: object = None) -> None:
        refuse_using(using)
        if not layout.can_exist(Id(owner, key)):
            return
        statement = self._table.delete(layout.head_key(Id(owner, key)), {"version": None})
        (outcome,) = settled(await execute_many(self._table.client, [statement]))
        if outcome.item is not None and "version" in outcome.item:
            raise ManagedRow(owner, key)

    async def claim_due(self, now_ms: int, limit: int = 100) -> list[IndexRow]:
        return await self.claimer.claim(now_ms, limit)

    async def next_due(self) -> int | None:
        async def earliest(shard: str) -> list[int]:
            page = await self._due_page(shard, None, 1)
            return [int(item["next_fire_at"]["N"]) for item in page["Items"]]

        found = all_of(await gathered(earliest(shard) for shard in await self._table.shards()))
        return min((at for each in found for at in each), default=None)

    async def count(self, *, due_by: int | None = None, most: int | None = None) -> int:
        return await self._table.count(self._table.due, await self._table.shards(), until=due_by, most=most)

    async def next_fires(self, owner: str, limit: int) -> tuple[list[int], bool]:
        """Read `limit` heads. Some may not be in the index, so there may be more rows than are returned."""
        heads = layout.owners_heads(owner)
        request: dict[str, object] = {
            "KeyConditionExpression": "pk = :owner AND begins_with(sk, :heads)",
            "ExpressionAttributeValues": {":owner": text(f"owner#{owner}"), ":heads": text(heads)},
            "ProjectionExpression": "next_fire_at",
            "Limit": limit,
        }
        found: list[int] = []
        met = 0
        async for page in self._table.pages(request):
            found += [int(item["next_fire_at"]["N"]) for item in page["Items"] if "next_fire_at" in item]
            met += len(page["Items"])
            if met >= limit:
                return found[:limit], "LastEvaluatedKey" in page or met > limit
        return found, False

    async def set_aside(self, limit: int = 100) -> list[SetAside]:
        heads = await self._unreadable_heads(limit)
        return sorted((layout.set_aside(head) for head in heads), key=lambda aside: (aside.owner, aside.key))[:limit]

    async def count_set_aside(self) -> int:
        return await self._table.count(self._table.listed, _UNREADABLE)

    async def restore(self) -> int:
        heads = await self._unreadable_heads(None)
        settings = await self._table.settings.get()
        statements = [
            self._restored(head, settings.write_shards) for head in heads if reads(head["when_text"]["S"], head["tz"]["S"])
        ]
        outcomes = settled(await execute_many(self._table.client, statements))
        return sum(outcome.done for outcome in outcomes)

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        """Walk the rows of this region shard by shard, earliest first.

        A row that is advanced meanwhile is returned, perhaps twice. One that moves to an earlier instant, or to another shard
        because there are more shards now, may be missed. A row written a moment ago may not be in the GSI yet.
        """
        number, start = (0, None) if cursor is None else decode_walk(cursor, WalkPlace)
        shards = await self._table.shards()
        found: list[Item] = []
        while number < len(shards) and len(found) < limit:
            page = await self._due_page(shards[number], start, limit - len(found))
            found += page["Items"]
            start = page.get("LastEvaluatedKey")
            if start is None:
                number += 1
        read = DueReader(self._table.label).read
        rows = readable(row for item in found if (row := read(item)) is not None)
        return rows, encode_walk(WalkPlace(number, start)) if number < len(shards) else None

    async def _due_page(self, shard: str, start: Item | None, limit: int) -> dict[str, Any]:
        request = {**self._table.due.query(shard), "Limit": limit}
        if start is not None:
            request["ExclusiveStartKey"] = start
        return await self._table.client.call("Query", request)

    def _upsert(self, head: Item, before: Item | None) -> Statement:
        if before is None:
            return self._table.insert(head)
        values = {name: value for name, value in head.items() if name not in ("pk", "sk")}
        gone = [name for name in before if name not in head]
        # A claim changes a head but not its revision: what it wrote, such as a time to live, must be removed.
        seen = {"revision": before["revision"], "version": None, "next_fire_at": before.get("next_fire_at")}
        return self._table.update({"pk": head["pk"], "sk": head["sk"]}, values, seen, gone)

    def _restored(self, head: Item, shards: int) -> Statement:
        id = layout.id_of(head)
        values: Item = {"next_fire_at": head["was_due_at"], "due_shard": text(layout.due_shard(id, head["home"]["S"], shards))}
        gone = ["aside", "reason", "was_due_at"]
        if "version" in head:
            values["listed"] = text(layout.listed_in("active", id))
        else:
            gone.append("listed")
        seen = {"revision": head["revision"], "aside": text("unreadable")}
        return self._table.update({"pk": head["pk"], "sk": head["sk"]}, values, seen, gone)

    async def _unreadable_heads(self, limit: int | None) -> list[Item]:
        async def listed(partition: str) -> list[Item]:
            request = self._table.listed.query(partition)
            return await self._table.first(request, lambda item: {"pk": item["pk"], "sk": item["sk"]}, limit)

        keys = [key for each in all_of(await gathered(map(listed, _UNREADABLE))) for key in each]
        heads = await get_many(self._table.client, self._table.name, keys)
        return [head for head in heads if "was_due_at" in head]  # a row that was just restored may still be listed

    async def _heads(self, ids: Sequence[Id] | dict[Id, Item]) -> dict[Id, Item]:
        keys = [layout.head_key(id) for id in ids]
        return {layout.id_of(head): head for head in await get_many(self._table.client, self._table.name, keys)}
