"""Records in DynamoDB: small items, one partition per kind. Records that expire are in the index `due`, for pruning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tickler.database.unit_of_work import UnitOfWork
from tickler.dynamo.batches import execute_many, get_many
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.transactions import TransactionPart
from tickler.errors import VersionConflict
from tickler.model.record import Record
from tickler.records.contract import label_of
from tickler.records.kinds import ZONE
from tickler.stores.dynamodb.layout import EXPIRES, new_revision, number, record_key, text
from tickler.stores.dynamodb.table import TRIES, Table, refuse_using, settled
from tickler.stores.dynamodb.transactions import Delete, Insert, Update, Write


class NewRecord(NamedTuple):
    """A record to write. Its revision tells this write from all others."""

    kind: str
    name: str
    value: bytes
    expires_at: int | None
    revision: str

    def write(self, before: Item | None, version: int) -> Write:
        """Return the write of this version in place of the item that was read before, if there was one."""
        key = record_key(self.kind, self.name)
        values: Item = {"value": text(self.value.decode()), "version": number(version), "revision": text(self.revision)}
        expiry = {} if self.expires_at is None else _expiry(self.expires_at)
        if before is None:
            return Insert({**key, **values, **expiry})
        gone = [name for name in _expiry(0) if name in before and name not in expiry]
        return Update(key, {**values, **expiry}, {"revision": before["revision"]}, gone)


class DynamodbRecords:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._zones: set[str] = set()  # known to have a record

    async def get(self, kind: str, name: str, *, now_ms: int) -> Record | None:
        item = await self.read_item(kind, name)
        return _record(kind, item) if item is not None and _alive(item, now_ms) else None

    async def put(
        self,
        kind: str,
        name: str,
        value: bytes,
        *,
        now_ms: int,
        expires_at: int | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> int:
        new = NewRecord(kind, name, value, expires_at, new_revision())
        for attempt in range(1, TRIES + 1):
            before = await self.read_item(kind, name)
            if before is not None and before["revision"]["S"] == new.revision:
                return int(before["version"]["N"])  # written by an earlier attempt whose response was lost
            found = int(before["version"]["N"]) if before is not None and _alive(before, now_ms) else 0
            if expected is not None and expected != found:
                raise VersionConflict(f"record {kind}/{name}", expected, found)
            write = new.write(before, found + 1)
            if isinstance(using, UnitOfWork):
                await self._join(using, kind, name, write)
                return found + 1
            refuse_using(using)
            (outcome,) = settled(await execute_many(self._table.client, [write.statement(self._table.name)]))
            if outcome.done:
                return found + 1
            await pause(attempt)
        raise self._table.contended(f"record {kind}/{name}")

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        if isinstance(using, UnitOfWork):
            before = await self.read_item(kind, name)
            seen = {"revision": None if before is None else before["revision"]}
            await self._join(using, kind, name, Delete(record_key(kind, name), seen))
            return before is not None
        refuse_using(using)
        while (item := await self.read_item(kind, name)) is not None:
            statement = self._table.delete(record_key(kind, name), {"revision": item["revision"]}, old=True)
            (outcome,) = settled(await execute_many(self._table.client, [statement]))
            if outcome.done:
                return outcome.item is not None  # deleting a missing item succeeds, too
        return False

    async def list(self, kind: str, *, now_ms: int, after: str = "", limit: int = 100) -> list[Record]:
        condition = "pk = :kind AND sk > :after" if after else "pk = :kind"
        values = {":kind": text(f"record#{kind}"), **({":after": text(after)} if after else {})}
        request = {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "ConsistentRead": True}
        return await self._table.first(request, lambda item: _record(kind, item) if _alive(item, now_ms) else None, limit)

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Delete expired records. DynamoDB also does so within days, because the items have a time to live."""
        expired = await self._table.first(self._table.due.query(EXPIRES, number(now_ms)), lambda item: item, limit)
        statements = [
            self._table.delete({"pk": item["pk"], "sk": item["sk"]}, {"next_fire_at": item["next_fire_at"]}, old=True)
            for item in expired
        ]
        outcomes = settled(await execute_many(self._table.client, statements))
        return sum(outcome.done and outcome.item is not None for outcome in outcomes)

    async def remember_zones(self, zones: Iterable[str]) -> None:
        """Record that this machine can read these zones. Call it before a row with one of them is written."""
        new = sorted(set(zones) - self._zones)
        if new:
            items: list[Item] = [
                {**record_key(ZONE, zone), "value": text("{}"), "version": number(1), "revision": text(new_revision())}
                for zone in new
            ]
            settled(await execute_many(self._table.client, [self._table.insert(item) for item in items]))
            self._zones.update(new)

    async def known_zones(self, zones: Iterable[str]) -> set[str]:
        """Return those of `zones` that some machine has recorded as readable."""
        keys = [record_key(ZONE, zone) for zone in zones]
        return {item["sk"]["S"] for item in await get_many(self._table.client, self._table.name, keys)} if keys else set()

    async def _join(self, unit: UnitOfWork, kind: str, name: str, write: Write) -> None:
        await unit.join(self._table.client, [label_of(kind, name)])
        unit.add(TransactionPart(write.part(self._table.name), label_of(kind, name)))

    async def read_item(self, kind: str, name: str) -> Item | None:
        """Return the item of a record, even if it has expired."""
        answer = await self._table.client.call(
            "GetItem", {"TableName": self._table.name, "Key": record_key(kind, name), "ConsistentRead": True}
        )
        item: Item | None = answer.get("Item")
        return item


def read_record(item: Item) -> Record:
    """Read a record as stored, even if it has expired."""
    return _record(item["pk"]["S"].partition("#")[2], item)


def record_item(record: Record) -> Item:
    expiry = {} if record.expires_at is None else _expiry(record.expires_at)
    value = {"value": text(msgspec.json.encode(record.value).decode()), "version": number(record.version)}
    return {**record_key(record.kind, record.name), **value, "revision": text(new_revision()), **expiry}


def _expiry(expires_at: int) -> Item:
    """Return the attributes of an expiry: its index entry, and the time to live after which DynamoDB deletes it."""
    return {"next_fire_at": number(expires_at), "due_shard": text(EXPIRES), "ttl": number(-(-expires_at // 1000))}


def _alive(item: Item, now_ms: int) -> bool:
    return "next_fire_at" not in item or int(item["next_fire_at"]["N"]) > now_ms


def _record(kind: str, item: Item) -> Record:
    expires_at = int(item["next_fire_at"]["N"]) if "next_fire_at" in item else None
    return Record(kind, item["sk"]["S"], msgspec.json.decode(item["value"]["S"]), int(item["version"]["N"]), expires_at)
