"""Finds and lists fires, for people and not for claims: the cost grows with what is open, waiting or dead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NamedTuple

from tickler.dynamo.batches import gathered, get_many, run_concurrently
from tickler.dynamo.codec import Item
from tickler.model.fire import DueItem, Fire, FireState, Health
from tickler.model.schedule import Id
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires import layout as fire_layout
from tickler.stores.dynamodb.fires.history import read_history
from tickler.stores.dynamodb.fires.layout import fire_of, place_of, schedule_of, which
from tickler.stores.dynamodb.fires.transaction import own_fires
from tickler.stores.dynamodb.index.due_query import SparseIndex
from tickler.stores.dynamodb.layout import number, place, text
from tickler.stores.dynamodb.schedules.reads import owners_heads
from tickler.stores.dynamodb.table import Table, all_of

PAGE_SIZE = 25  # of a shard, to find the first row that has a target

Place = tuple[int, str]  # nominal instant and id


class Listed(NamedTuple):
    """A fire as read from an index."""

    place: Place
    owner: str
    key: Item


async def find_fire(table: Table, fire_id: str) -> Fire | None:
    """Find a fire by its id alone. Reads all open fires, and one bucket of each list."""

    async def walk(entries: AsyncIterator[Listed]) -> list[Item]:
        return [each.key async for each in entries if each.place[1] == fire_id]

    walks = [_open_in(table, shard) for shard in await table.shards()]
    walks += [_listed_in(table, state, fire_layout.listed_in(state, fire_id), None) for state in ("waiting", "dead")]
    keys = [key for found in all_of(await gathered(map(walk, walks))) for key in found]
    return next((fire for fire in await _read(table, keys) if fire.id == fire_id), None)


async def list_fires(
    table: Table, state: FireState, id: Id | None, owner: str | None, after: Place | None, limit: int
) -> list[Fire]:
    """List fires: those of one schedule consistently, others by an index, which may lag by a moment."""
    if id is not None:
        return await _of_schedule(table, id, state, after, limit)
    found: list[Fire] = []
    while True:
        entries = await _entries(table, state, owner, after, limit)
        fires = {fire.id: fire for fire in await _read(table, [each.key for each in entries]) if fire.state == state}
        found += [fires[each.place[1]] for each in entries if each.place[1] in fires]
        if len(entries) < limit or len(found) >= limit:
            return found[:limit]
        after = entries[-1].place


async def failing_ids(table: Table, owner: str | None, after: Id | None, limit: int) -> AsyncIterator[Sequence[Id]]:
    """Yield the ids after `after` of schedules with a dead fire, in order, up to `limit` at a time.

    For one owner, reads its heads, and the dead fires of those that ever had one. For all, reads the keys of all dead fires once.
    """
    if owner is not None:
        async for page in owners_heads(table, owner, after):
            died = [layout.id_of(head) for head in page if "dead" in head]
            for some in _chunks(died, limit):
                dead = all_of(await run_concurrently(some, lambda id: own_fires(table, id, "dead", limit=1)))
                yield [id for id, fires in zip(some, dead, strict=True) if fires]
        return

    async def walk(partition: str) -> set[Id]:
        return {schedule_of(each.key) async for each in _listed_in(table, "dead", partition, None)}

    parts = all_of(await gathered(map(walk, fire_layout.listed_partitions("dead"))))
    for some in _chunks(sorted(id for id in set().union(*parts) if after is None or id > after), limit):
        yield some


def _chunks(ids: Sequence[Id], size: int) -> Iterator[Sequence[Id]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


async def health(table: Table, ids: Sequence[Id]) -> dict[Id, Health]:
    """Return the health of schedules: one query each, or two if the head shows that a fire of it ever died."""
    known = [id for id in ids if layout.can_exist(id)]
    heads = await get_many(table.client, table.name, [layout.head_key(id) for id in known])
    died = {layout.id_of(head) for head in heads if "dead" in head}

    async def look(id: Id) -> Health:
        past = await read_history(table, id, None, 1)
        dead = await own_fires(table, id, "dead", limit=1) if id in died else []
        return Health(past[0][1] if past else None, bool(dead))

    found = all_of(await run_concurrently(known, look))
    return dict.fromkeys(ids, Health()) | dict(zip(known, found, strict=True))


async def peek(table: Table, due_by: int, limit: int) -> list[DueItem]:
    """Return the earliest due schedules with a target and open fires. Reads a page of each shard, or more."""

    async def some(index: SparseIndex, shard: str, due: Callable[[Item], DueItem | None]) -> list[DueItem]:
        request, found = {**index.query(shard, number(due_by)), "Limit": max(limit, PAGE_SIZE)}, list[DueItem]()
        while True:
            page = await table.client.call("Query", request)
            found += filter(None, map(due, page["Items"]))
            if len(found) >= limit or "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
            request.pop("Limit", None)  # many rows have no target

    shards = await table.shards()
    rows = [some(table.due, shard, _due_row) for shard in shards]
    parts = all_of(await gathered([*rows, *(some(table.open, shard, _due_fire) for shard in shards)]))
    return sorted((due for part in parts for due in part), key=lambda due: due.at)[:limit]


def _due_row(item: Item) -> DueItem | None:
    return DueItem(*layout.id_of(item), int(item["next_fire_at"]["N"]), None) if "has_target" in item else None


def _due_fire(item: Item) -> DueItem | None:
    return DueItem(*schedule_of(item), int(item["deliver_after"]["N"]), which(item))


async def _of_schedule(table: Table, id: Id, state: FireState, after: Place | None, limit: int) -> list[Fire]:
    if not layout.can_exist(id):
        return []
    fires = await own_fires(table, id, state, after=after, limit=limit)
    if state == "open":
        on_head = filter(None, map(fire_of, await get_many(table.client, table.name, [layout.head_key(id)])))
        fires += [fire for fire in on_head if after is None or (fire.nominal_at, fire.id) > after]
    return sorted(fires, key=lambda fire: (fire.nominal_at, fire.id))[:limit]


async def _entries(table: Table, state: FireState, owner: str | None, after: Place | None, limit: int) -> list[Listed]:
    """Return the first entries after a place, of one owner or all."""

    async def some(entries: AsyncIterator[Listed], most: int | None) -> list[Listed]:
        found: list[Listed] = []
        async for each in entries:
            if owner in (None, each.owner) and (after is None or each.place > after):
                found.append(each)
                if most is not None and len(found) >= most:
                    break
        return found

    if state == "open":  # `open` is sorted by delivery, so all entries have to be read
        parts = [some(_open_in(table, shard), None) for shard in await table.shards()]
    else:
        parts = [some(_listed_in(table, state, each, after), limit) for each in fire_layout.listed_partitions(state)]
    found = {each.place: each for part in all_of(await gathered(parts)) for each in part}
    return sorted(found.values(), key=lambda each: each.place)[:limit]


async def _open_in(table: Table, shard: str) -> AsyncIterator[Listed]:
    async for page in table.pages(table.open.query(shard)):
        for item in page["Items"]:
            yield Listed((int(item["fire_nominal"]["N"]), which(item)), schedule_of(item).owner, _key(item))


async def _listed_in(table: Table, state: FireState, partition: str, after: Place | None) -> AsyncIterator[Listed]:
    low, high = fire_layout.sort_after(state, after), layout.after_all(fire_layout.sort_prefix(state))
    request = table.listed.query(partition)
    request["KeyConditionExpression"] += " AND sk BETWEEN :low AND :high"
    request["ExpressionAttributeValues"] |= {":low": text(low), ":high": text(high)}
    async for page in table.pages(request):
        for item in page["Items"]:
            yield Listed(place_of(item), schedule_of(item).owner, _key(item))


async def _read(table: Table, keys: Sequence[Item]) -> list[Fire]:
    distinct = {place(key): key for key in keys}
    items = await get_many(table.client, table.name, list(distinct.values()))
    return [fire for fire in map(fire_of, items) if fire is not None]


def _key(item: Item) -> Item:
    return {"pk": item["pk"], "sk": item["sk"]}
