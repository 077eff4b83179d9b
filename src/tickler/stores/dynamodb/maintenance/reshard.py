"""Changes to all of a table while it is in use: more shards, and another home region."""

from __future__ import annotations

import asyncio

from tickler.database.progress import OnProgress
from tickler.dynamo import Item, Statement, execute_many
from tickler.dynamo.client import pause
from tickler.dynamo.failures import ConditionFailed
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires.layout import fire_of, is_fire, open_shard
from tickler.stores.dynamodb.layout import SETTINGS_KEY, number, text
from tickler.stores.dynamodb.schema import MAX_SHARDS
from tickler.stores.dynamodb.settings import Settings, read_settings
from tickler.stores.dynamodb.table import Table, settled


async def raise_shards(table: Table, shards: int, on_progress: OnProgress) -> None:
    """Spread rows over more shards, with workers and writers running.

    1. Tell readers to search all the new shards; nothing is in them yet.
    2. Wait until every reader has heard of it: two of their refresh periods.
    3. Tell writers to use them. Rows move as they advance; those that sleep for a year stay where they are, and are
       found there, since the old shards are among the new. Fires stay where they were opened.
    """
    settings = await _settings(table)
    if shards < settings.read_shards:
        raise InvalidInput(
            f"{table.label} has {settings.read_shards} shards, and only more are possible: rows may sleep in any one for years"
        )
    if shards > MAX_SHARDS:
        raise InvalidInput(f"shards: {shards} are too many, every claim asks each of them: {MAX_SHARDS} are allowed")
    if shards == settings.write_shards:
        on_progress(f"{table.label} has {shards} shards already", 2, 2)
        return
    await _publish(table, settings, "read_shards", shards)
    wait_s = 2 * settings.refresh_ms / 1000
    on_progress(f"readers search {shards} shards; waiting {wait_s:g} s until all of them do", 1, 2)
    await asyncio.sleep(wait_s)
    await _publish(table, settings, "write_shards", shards)
    on_progress(f"rows are spread over {shards} shards from now on, each as it advances", 2, 2)


async def move_home(table: Table, home: str, come_from: str | None, on_progress: OnProgress) -> int:
    """Make `home` the region that claims: all schedules, rows and open fires, or those of one region. How many were moved.

    Reads the whole table. Each item moves on condition that it was not claimed or changed in between; those that were are
    tried again.
    """
    settings = await _settings(table)
    moved, lost, attempt = 0, 1, 0
    while lost:
        await pause(attempt)
        lost, attempt = 0, attempt + 1
        async for page in table.pages({"ConsistentRead": True}):
            homes = [(item, at) for item in page["Items"] if (at := _home(item)) is not None and at != home]
            elsewhere = [item for item, at in homes if come_from in (None, at)]
            outcomes = settled(await execute_many(table.client, [_moved(table, item, home, settings) for item in elsewhere]))
            moved += sum(outcome.done for outcome in outcomes)
            lost += sum(not outcome.done for outcome in outcomes)
            on_progress(f"moved {moved} to {home}", moved, None)
    return moved


def _home(item: Item) -> str | None:
    """Of a head, or of an open fire that is not on it."""
    if "home" in item:
        return str(item["home"]["S"])
    return str(item["open_shard"]["S"]).rpartition("#")[0] if "open_shard" in item else None


def _moved(table: Table, item: Item, home: str, settings: Settings) -> Statement:
    key: Item = {"pk": item["pk"], "sk": item["sk"]}
    fire = fire_of(item)
    if is_fire(item):
        assert fire is not None
        shard = open_shard(fire, home, settings.write_shards)
        return table.update(key, {"open_shard": text(shard)}, {"open_shard": item["open_shard"]})
    # A new revision: a claim, a put or a restore that has seen it in its old home must not bring it back there.
    values: Item = {"home": text(home), "revision": text(layout.new_revision())}
    shard = layout.due_shard(layout.id_of(item), home, settings.write_shards)
    if "next_fire_at" in item:
        values["due_shard"] = text(shard)
    if fire is not None:
        values["open_shard"] = text(shard)
    seen = {name: item.get(name) for name in ("revision", "next_fire_at", "open_shard")}
    return table.update(key, values, seen)


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
