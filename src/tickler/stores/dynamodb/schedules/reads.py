"""Reads schedules by id, heads with their bodies, and lists the ids of an owner or in a state."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple

from tickler.dynamo.batches import gathered, get_many
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Attribute, Item
from tickler.errors import StoreUnavailable
from tickler.fires.byte_budget import ByteBudget
from tickler.model.schedule import Id, StoredSchedule
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.layout import LISTED, text
from tickler.stores.dynamodb.table import TRIES, Table, all_of


class StoredItem(NamedTuple):
    """A head as read, with its schedule; `stored` is None for an index row without a schedule."""

    head: Item
    body: bytes
    stored: StoredSchedule | None

    @property
    def is_left(self) -> bool:
        """Whether it is a schedule whose body exceeded the budget, and was not read."""
        return self.stored is None and "version" in self.head


async def read(table: Table, ids: Iterable[Id], budget: ByteBudget | None = None) -> dict[Id, StoredItem]:
    """Read heads and their bodies, again where a schedule was changed in between.

    With a budget, bodies are read in the order of `ids` until one does not fit. That schedule and all after it have
    `is_left` set.
    """
    known: dict[Id, StoredItem] = {}
    left = [id for id in ids if layout.can_exist(id)]
    for attempt in range(1, TRIES + 1):
        found = await get_many(table.client, table.name, [layout.head_key(id) for id in left])
        heads = {layout.id_of(head): head for head in sorted(found, key=layout.place)}
        if budget is not None:
            ordered = [(id, heads[id]) for id in left if id in heads]
            heads = dict(budget.fitting(ordered, lambda each: layout.body_bytes(each[1])))
            known |= {id: StoredItem(head, b"", None) for id, head in ordered[len(heads) :]}
        body_keys = {id: layout.body_key(id, head["body_revision"]) for id, head in heads.items() if "body_revision" in head}
        bodies = {layout.place(item): item for item in await get_many(table.client, table.name, list(body_keys.values()))}
        left = []
        for id, head in heads.items():
            body = bodies.get(layout.place(body_keys[id])) if id in body_keys else None
            if id in body_keys and body is None:
                left.append(id)
            else:
                known[id] = _known(head, body)
        if not left:
            return known
        await pause(attempt)
    raise StoreUnavailable(f"{table.label}: the body of {left[0]} is missing, and may not be replicated yet: try again")


async def owners_ids(table: Table, owner: str, after: Id | None = None, limit: int | None = None) -> list[Id]:
    """Return the ids of an owner's schedules, consistently, without index rows that have no schedule."""
    found: list[Id] = []
    async for page in owners_heads(table, owner, after, limit):
        found += [layout.id_of(head) for head in page if "version" in head]
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


async def owners_heads(
    table: Table, owner: str, after: Id | None = None, limit: int | None = None
) -> AsyncIterator[Sequence[Item]]:
    """Yield an owner's heads in order, consistently, `limit` per page, or as many as DynamoDB returns."""
    if after is not None and after.owner > owner:
        return
    condition, values = _range(owner, after)
    request: dict[str, object] = {
        "KeyConditionExpression": f"pk = :owner AND {condition}",
        "ExpressionAttributeValues": {":owner": text(f"owner#{owner}"), **values},
        "ConsistentRead": True,
    }
    if limit is not None:
        request["Limit"] = limit
    async for page in table.pages(request):
        yield page["Items"]


async def listed_ids(table: Table, states: Iterable[str], owner: str | None, after: Id | None, limit: int) -> list[Id]:
    """Return the first ids after `after` in some states, of one owner or all. The index may lag by a moment."""
    if owner is not None and after is not None and after.owner > owner:
        return []

    async def listed(partition: str) -> list[Id]:
        condition, values = _range(owner, after)
        request = {
            "IndexName": LISTED,
            "KeyConditionExpression": f"listed = :partition AND {condition}",
            "ExpressionAttributeValues": {":partition": text(partition), **values},
        }
        return await table.first(request, layout.id_of, limit)

    partitions = [partition for state in states for partition in layout.listed_partitions(state)]
    return list(dict.fromkeys(heapq.merge(*all_of(await gathered(map(listed, partitions))))))[:limit]


def _known(head: Item, body: Mapping[str, Attribute] | None) -> StoredItem:
    if "version" not in head:
        return StoredItem(head, b"", None)
    whole = layout.join_body(head, body)
    return StoredItem(head, whole, layout.read_schedule(head, whole))


def _range(owner: str | None, after: Id | None) -> tuple[str, Item]:
    """Return a condition on `sk` for the heads after an id, of one owner or all."""
    first = layout.owners_heads(owner) if owner is not None else layout.ALL_HEADS
    low = first if after is None else f"{layout.head_sort(after)}\0"
    return "sk BETWEEN :low AND :high", {":low": text(max(first, low)), ":high": text(layout.after_all(first))}
