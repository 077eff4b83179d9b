"""Changes to all of a table while it is in use: more shards, and another home region."""

from __future__ import annotations

import asyncio

from tickler.dynamo import Item, Statement, execute_many
from tickler.dynamo.client import pause
from tickler.dynamo.failures import ConditionFailed
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable
from tickler.store import Say
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.layout import SETTINGS_KEY, number, text
from tickler.stores.dynamodb.schema import MOST_SHARDS
from tickler.stores.dynamodb.settings import Settings, read_settings
from tickler.stores.dynamodb.table import Table, settled


async def raise_shards(table: Table, shards: int, say: Say) -> None:
    """Spread rows over more shards, with workers and writers running.

    1. Tell readers to search all the new shards; nothing is in them yet.
    2. Wait until every reader has heard of it: two of their refresh periods.
    3. Tell writers to use them. Rows move as they advance; those that sleep for a year stay where they are, and are
       found there, since the old shards are among the new.
    """
    settings = await _settings(table)
    if shards < settings.read_shards:
        raise InvalidInput(
            f"{table.label} has {settings.read_shards} shards, and only more are possible: rows may sleep in any one for years"
        )
    if shards > MOST_SHARDS:
        raise InvalidInput(f"shards: {shards} are too many, every claim asks each of them: {MOST_SHARDS} are allowed")
    if shards == settings.write_shards:
        say(f"{table.label} has {shards} shards already")
        return
    await _publish(table, settings, "read_shards", shards)
    say(f"readers search {shards} shards; waiting {2 * settings.refresh_ms / 1000:g} s until all of them do")
    await asyncio.sleep(2 * settings.refresh_ms / 1000)
    await _publish(table, settings, "write_shards", shards)
    say(f"rows are spread over {shards} shards from now on, each as it advances")


async def move_home(table: Table, home: str, come_from: str | None, say: Say) -> int:
    """Make `home` the region that claims: all schedules and rows, or those of one region. How many were moved.

    Reads the whole table. Each item moves on condition that it was not claimed or changed in between; those that were are
    tried again.
    """
    settings = await _settings(table)
    moved, lost, attempt = 0, 1, 0
    while lost:
        await pause(attempt)
        lost, attempt = 0, attempt + 1
        async for page in table.pages({"ConsistentRead": True}):
            elsewhere = [item for item in page["Items"] if "home" in item and item["home"]["S"] != home]
            heads = [item for item in elsewhere if come_from in (None, item["home"]["S"])]
            outcomes = settled(await execute_many(table.client, [_moved(table, head, home, settings) for head in heads]))
            moved += sum(outcome.done for outcome in outcomes)
            lost += sum(not outcome.done for outcome in outcomes)
            say(f"moved {moved} to {home}")
    return moved


def _moved(table: Table, head: Item, home: str, settings: Settings) -> Statement:
    id = layout.id_of(head)
    # A new revision: a claim, a put or a restore that has seen it in its old home must not bring it back there.
    values: Item = {"home": text(home), "revision": text(layout.new_revision())}
    if "next_fire_at" in head:
        values["due_shard"] = text(layout.due_shard(id, home, settings.write_shards))
    seen = {"revision": head["revision"], "next_fire_at": head.get("next_fire_at")}
    return table.update(layout.head_key(id), values, seen)


async def _settings(table: Table) -> Settings:
    settings = await read_settings(table.client, table.name)
    if settings is None:
        raise SchemaMissing(table.label)
    return settings


async def _publish(table: Table, seen: Settings, field: str, value: int) -> None:
    """Write one number, if the shards are still what they were."""
    request = {
        "TableName": table.name,
        "Key": SETTINGS_KEY,
        "UpdateExpression": f"SET {field} = :value",
        "ConditionExpression": "write_shards = :seen AND read_shards <= :value",
        "ExpressionAttributeValues": {":value": number(value), ":seen": number(seen.write_shards)},
    }
    try:
        await table.client.call("UpdateItem", request)
    except ConditionFailed as error:
        raise StoreUnavailable(
            f"{table.label}: somebody else changes the shards right now: look again with `tickler migrate`"
        ) from error
