"""Exports and restores the contents of the table as stored. Reading each part scans the whole table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from tickler.dynamo.batches import execute_many, get_many, run_concurrently, write_many
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.errors import InvalidInput, InvalidSchedule, ManagedRow
from tickler.model.cursor import decode_walk, encode_walk
from tickler.model.fire import Fire
from tickler.model.record import Record
from tickler.model.schedule import Id
from tickler.stores.contents import Contents, HistoryItem, RawSchedule
from tickler.stores.dynamodb import layout, records
from tickler.stores.dynamodb.fires import history
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.layout import fire_key, fire_of
from tickler.stores.dynamodb.fires.transaction import FireTransaction, read_owing
from tickler.stores.dynamodb.layout import text
from tickler.stores.dynamodb.maintenance.raw_layout import OF_FIRES, raw_items, read_raw
from tickler.stores.dynamodb.schedules.cancellation import unchanged
from tickler.stores.dynamodb.schedules.reads import StoredItem, read
from tickler.stores.dynamodb.table import TRIES, Table, all_of, settled
from tickler.stores.dynamodb.transactions import Delete, Insert, Update, Write, write_all

T = TypeVar("T")

MAX_PAGES = 20  # per call of `walk`, so that it returns even if little is found
MAX_FIRES = 90  # of one schedule per transaction, beside its head

Place = dict[str, dict[str, str]]  # the key of the last item read


class _Kind(NamedTuple, Generic[T]):
    """How to find, read and write one kind of content."""

    filter: str
    values: Item
    read: Callable[[Table, list[Item]], Awaitable[list[T]]]
    put: Callable[[Table, Sequence[T]], Awaitable[None]]


class DynamodbPart(Generic[T]):
    def __init__(self, table: Table, kind: _Kind[T]) -> None:
        self._table = table
        self._kind = kind

    async def count(self) -> int | None:
        return None

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[T], str | None]:
        kind = self._kind
        request: dict[str, Any] = {"ConsistentRead": True, "FilterExpression": kind.filter}
        if kind.values:
            request["ExpressionAttributeValues"] = kind.values
        if cursor is not None:
            request["ExclusiveStartKey"] = decode_walk(cursor, Place)
        found: list[Item] = []
        last: Item | None = None
        pages = 0
        async for page in self._table.pages(request):
            found += page["Items"]
            last = page.get("LastEvaluatedKey")
            pages += 1
            if len(found) >= limit or pages == MAX_PAGES:
                break
        return await kind.read(self._table, found), None if last is None else encode_walk(last)

    async def restore(self, things: Sequence[T]) -> None:
        await self._kind.put(self._table, things)


def contents(table: Table) -> Contents:
    return Contents(
        records=DynamodbPart(table, _RECORDS),
        schedules=DynamodbPart(table, _SCHEDULES),
        rows=DynamodbPart(table, _ROWS),
        fires=DynamodbPart(table, _FIRES),
        history=DynamodbPart(table, _HISTORY),
    )


# Records.


async def _read_records(table: Table, items: list[Item]) -> list[Record]:
    return [records.read_record(item) for item in items]


async def _put_records(table: Table, things: Sequence[Record]) -> None:
    items = [records.record_item(record) for record in things]
    await write_many(table.client, table.name, [{"PutRequest": {"Item": item}} for item in items])


# Schedules, and index rows without a schedule.


async def _read_schedules(table: Table, items: list[Item]) -> list[RawSchedule]:
    """Read schedules. Those with a body item are read again with it, because they may have a new one by now."""
    known = {
        id: (each.head, each.body) for id, each in (await read(table, map(layout.id_of, filter(_has_body_item, items)))).items()
    }
    known |= {layout.id_of(item): (item, layout.join_body(item, None)) for item in items if not _has_body_item(item)}
    found = (read_raw(head, body) for head, body in known.values())
    return [raw for raw in found if raw is not None]


async def _put_schedules(table: Table, schedules: Sequence[RawSchedule]) -> None:
    """Write schedules, if the stored ones are unchanged since they were read. Their fires stay."""
    left = {raw.id: raw for raw in schedules}
    shards = (await table.settings.get()).write_shards
    for attempt in range(1, TRIES + 1):
        known = await read(table, left)
        for id, raw in left.items():
            if not raw.managed and id in known and known[id].stored is not None:
                raise ManagedRow(*id)
        new = [(_items(raw, table.home, shards), known.get(id)) for id, raw in left.items()]
        bodies = [body for (_, body), before in new if body is not None and before is None]
        await write_many(table.client, table.name, [{"PutRequest": {"Item": body}} for body in bodies])
        outcomes = settled(await write_all(table, [_plan(head, body, before) for (head, body), before in new]))
        left = {id: raw for (id, raw), outcome in zip(left.items(), outcomes, strict=True) if not outcome.done}
        if not left:
            return
        await pause(attempt)
    raise table.contended(next(iter(left)))


def _has_body_item(head: Item) -> bool:
    return "body_revision" in head


def _items(raw: RawSchedule, home: str, shards: int) -> tuple[Item, Item | None]:
    try:
        return raw_items(raw, home, shards)
    except InvalidSchedule as error:
        raise InvalidInput(f"{raw.id}: {error}") from None


def _plan(head: Item, body: Item | None, before: StoredItem | None) -> list[Write]:
    """Return the writes of a schedule. The body of a new one was written before, and is unused until its head exists."""
    if before is None:
        return [Insert(head)]
    key, id = {"pk": head["pk"], "sk": head["sk"]}, layout.id_of(head)
    values = {name: value for name, value in head.items() if name not in key}
    gone = [name for name in before.head if name not in head and name not in OF_FIRES]
    writes: list[Write] = [Update(key, values, unchanged(before.head), gone)]
    old_body = before.head.get("body_revision")
    if old_body == head.get("body_revision"):
        return writes
    if old_body is not None:
        writes.append(Delete(layout.body_key(id, old_body), {}))
    return writes if body is None else [*writes, Insert(body, over=True)]


# Fires and history.


async def _read_fires(table: Table, items: list[Item]) -> list[Fire]:
    return [fire for fire in map(fire_of, items) if fire is not None]


async def _put_fires(table: Table, fires: Sequence[Fire]) -> None:
    by_schedule: defaultdict[Id, list[Fire]] = defaultdict(list)
    for fire in fires:
        by_schedule[Id(fire.owner, fire.key)].append(fire)
    all_of(await run_concurrently(list(by_schedule.items()), lambda each: _put_of_schedule(table, *each)))


async def _put_of_schedule(table: Table, id: Id, fires: Sequence[Fire]) -> None:
    for start in range(0, len(fires), MAX_FIRES):
        await _put_some(table, id, fires[start : start + MAX_FIRES])


async def _put_some(table: Table, id: Id, fires: Sequence[Fire]) -> None:
    for attempt in range(1, TRIES + 1):
        transaction = await read_owing(table, id)
        new = await _missing(table, fires, transaction)
        if not new or await _write_fires(table, transaction, new):
            return
        await pause(attempt)
    raise table.contended(id)


async def _missing(table: Table, fires: Sequence[Fire], transaction: FireTransaction | None) -> list[Fire]:
    stored: set[str] = set()
    if transaction is not None and transaction.on_head is not None:
        stored.add(transaction.on_head.id)
    if transaction is None or "spilled" in transaction.head or "dead" in transaction.head:  # other fires may have their own items
        keys = [fire_key(replace(fire, state=state)) for fire in fires for state in ("open", "waiting", "dead")]
        stored |= {fire.id for fire in map(fire_of, await get_many(table.client, table.name, keys)) if fire is not None}
    return [fire for fire in fires if fire.id not in stored]


async def _write_fires(table: Table, transaction: FireTransaction | None, fires: Sequence[Fire]) -> bool:
    """Write fires, and return whether that succeeded. Without a schedule, they stay until a lease cancels them."""
    if transaction is None:
        shards = (await table.settings.get()).write_shards
        inserts = [table.insert(fire_layout.own_item(fire, table.home, shards)) for fire in fires]
        settled(await execute_many(table.client, inserts))
        return True
    for fire in fires:
        transaction.add(fire)
    return not await transaction.write()


async def _read_history(table: Table, items: list[Item]) -> list[HistoryItem]:
    return [history.read_entry(item) for item in items]


async def _put_history(table: Table, things: Sequence[HistoryItem]) -> None:
    """Write entries, each once: equal entries have the same key."""
    items = [history.entry_item(entry, expires_at) for entry, expires_at in things]
    once = {layout.place(item): item for item in reversed(items)}
    settled(await execute_many(table.client, [table.insert(item) for item in once.values()]))


_HEADS = "begins_with(pk, :owner) AND begins_with(sk, :head)"
_OF_HEADS = {":owner": text("owner#"), ":head": text(layout.ALL_HEADS)}

_RECORDS = _Kind("begins_with(pk, :record)", {":record": text("record#")}, _read_records, _put_records)
_SCHEDULES = _Kind(f"{_HEADS} AND attribute_exists(version)", _OF_HEADS, _read_schedules, _put_schedules)
_ROWS = _Kind(f"{_HEADS} AND attribute_not_exists(version)", _OF_HEADS, _read_schedules, _put_schedules)
_FIRES = _Kind("attribute_exists(fire_nominal)", {}, _read_fires, _put_fires)
_HISTORY = _Kind("begins_with(pk, :past)", {":past": text(history.PAST)}, _read_history, _put_history)
