"""History in DynamoDB: one partition per schedule, which outlives it. DynamoDB deletes expired entries itself.

    pk                  sk                              what
    past#u1⇥digest      001921406400123⇥Zk3…            an entry, with a time to live

An entry is named by a hash of its content, so that repeating a call that failed half-way writes it once.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable

import msgspec

from tickler.dynamo.batches import execute_many
from tickler.dynamo.codec import Item
from tickler.model.fire import Entry
from tickler.model.schedule import Id
from tickler.stores.contents import HistoryItem
from tickler.stores.dynamodb.layout import number, text
from tickler.stores.dynamodb.table import Table, settled
from tickler.stores.dynamodb.transactions import Insert

PAST = "past#"
_SEPARATOR = "\t"
_encode = msgspec.json.Encoder().encode


def entry_item(entry: Entry, expires_at: int) -> Item:
    fields = {name: value for name in entry.__struct_fields__ if (value := getattr(entry, name)) is not None}
    id = Id(fields.pop("owner"), fields.pop("key"))
    encoded = _encode(fields)
    name = urlsafe_b64encode(hashlib.blake2b(encoded, digest_size=9, person=b"tickler-past").digest()).decode()
    return {
        "pk": text(_partition(id)),
        "sk": text(_sort(entry.at, name)),
        "entry": text(encoded.decode()),
        "ttl": number(-(-expires_at // 1000)),
    }


def inserts(entries: Iterable[Entry], expires_at: int) -> list[Insert]:
    """Return the writes of entries, for the same transaction as the change that they record."""
    return [Insert(entry_item(entry, expires_at), over=True) for entry in entries]


async def record(table: Table, entries: Iterable[Entry], expires_at: int) -> None:
    """Write entries independently of each other. One that exists already is fine."""
    items = {(item["pk"]["S"], item["sk"]["S"]): item for item in (entry_item(entry, expires_at) for entry in entries)}
    if items:
        settled(await execute_many(table.client, [table.insert(item) for item in items.values()]))


async def read_history(table: Table, id: Id, before: tuple[int, str] | None, limit: int) -> list[tuple[str, Entry]]:
    condition, values = "pk = :past", {":past": text(_partition(id))}
    if before is not None:
        condition, values = f"{condition} AND sk < :before", {**values, ":before": text(_sort(*before))}
    request = {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        "ScanIndexForward": False,
    }
    return await table.first(request, lambda item: _read(item, id), limit)


def read_entry(item: Item) -> HistoryItem:
    """Read an entry of any schedule. Its expiry is known to the second."""
    owner, _, key = item["pk"]["S"].removeprefix(PAST).partition(_SEPARATOR)
    return HistoryItem(_read(item, Id(owner, key))[1], int(item["ttl"]["N"]) * 1000)


def _read(item: Item, id: Id) -> tuple[str, Entry]:
    fields = msgspec.json.decode(item["entry"]["S"])
    name = item["sk"]["S"].partition(_SEPARATOR)[2]
    return name, msgspec.convert({**fields, "owner": id.owner, "key": id.key}, type=Entry)


def _partition(id: Id) -> str:
    return f"{PAST}{id.owner}{_SEPARATOR}{id.key}"


def _sort(at: int, name: str) -> str:
    return f"{at:015}{_SEPARATOR}{name}"
