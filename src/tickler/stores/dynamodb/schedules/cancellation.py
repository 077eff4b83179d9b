"""Cancels the fires of a schedule that is deleted, and records that in the history."""

from __future__ import annotations

from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Condition
from tickler.dynamo.transactions import MAX_TRANSACTION_ITEMS
from tickler.errors import InvalidInput
from tickler.fires.lease import SCHEDULE_GONE
from tickler.model.fire import Fire, cancelled
from tickler.schedules.write import ScheduleRemoval
from tickler.stores.dynamodb.fires.history import inserts
from tickler.stores.dynamodb.fires.layout import OWED, fire_key, fire_of, same_fire
from tickler.stores.dynamodb.fires.transaction import own_fires
from tickler.stores.dynamodb.table import Table
from tickler.stores.dynamodb.transactions import Delete, Write, write_transaction

MAX_WITH_HEAD = (MAX_TRANSACTION_ITEMS - 3) // 2  # fires, two writes each, beside the head, its body and the entry of its fire


def unchanged(head: Item) -> Condition:
    """Return the condition that a head was not written, claimed or set aside since it was read."""
    return {"revision": head["revision"], "next_fire_at": head.get("next_fire_at")}


def deletable(head: Item) -> Condition:
    """Return the condition that a head is unchanged, and so are the fires that it shows."""
    return {**unchanged(head), **{name: head.get(name) for name in OWED}}


async def cancellations(table: Table, removal: ScheduleRemoval, head: Item, *, joins: bool = False) -> list[Write]:
    """Return the writes that belong to the deletion of a schedule. If they exceed a transaction, cancels most fires first.

    `joins`: they become part of another transaction, in which case too many are refused.
    """
    on_head = fire_of(head)
    entries = [] if on_head is None else [cancelled(on_head, removal.at, SCHEDULE_GONE)]
    writes: list[Write] = list(inserts(entries, removal.expires_at))
    if "spilled" not in head and "dead" not in head:
        return writes
    fires = await own_fires(table, removal.id, None)
    if joins and len(fires) > MAX_WITH_HEAD:
        raise InvalidInput(
            f"{removal.id} has {len(fires)} open fires, too many to cancel in one transaction: delete it without using="
        )
    while len(fires) > MAX_WITH_HEAD:
        some, fires = fires[:MAX_WITH_HEAD], fires[MAX_WITH_HEAD:]
        if await write_transaction(table, _cancelled(some, removal)):
            fires = await own_fires(table, removal.id, None)  # one was settled in between
    return [*writes, *_cancelled(fires, removal)]


def _cancelled(fires: list[Fire], removal: ScheduleRemoval) -> list[Write]:
    entries = [cancelled(fire, removal.at, SCHEDULE_GONE) for fire in fires]
    return [*(Delete(fire_key(fire), same_fire(fire)) for fire in fires), *inserts(entries, removal.expires_at)]
