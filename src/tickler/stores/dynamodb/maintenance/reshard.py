"""Changes a whole table while it is in use: raises its number of shards, and moves schedules to another home region."""

from __future__ import annotations

import asyncio

from tickler.database.progress import OnProgress
from tickler.dynamo.batches import execute_many
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed
from tickler.dynamo.statements import Statement
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable
from tickler.stores.dynamodb import layout
from tickler.stores.dynamodb.fires.layout import fire_of, is_fire, open_shard
from tickler.stores.dynamodb.layout import SETTINGS_KEY, number, text
from tickler.stores.dynamodb.schema import MAX_SHARDS
from tickler.stores.dynamodb.settings import Settings, read_settings
from tickler.stores.dynamodb.table import Table, settled


async def raise_shards(table: Table, shards: int, on_progress: OnProgress) -> None:
    """Spread rows over more shards while workers and writers run.

    1. Raise the number for readers. They search the new shards, which are still empty.
    2. Wait two refresh periods, until every reader has the new number.
    3. Raise the number for writers. Rows move as they advance. A row that is due in a year stays in its old shard, and is
       found there, because the old shards are among the new. Fires stay where they were opened.
    """
    settings = await _settings(table)
    if shards < settings.read_shards:
        raise InvalidInput(
            f"{table.label} has {settings.read_shards} shards, and rows may stay in each for years: pass a higher number"
        )
    if shards > MAX_SHARDS:
        raise InvalidInput(f"shards: {shards} is too many, because every claim queries each of them: pass at most {MAX_SHARDS}")
    if shards == settings.write_shards:
        on_progress(f"{table.label} has {shards} shards already", 2, 2)
        return
    await _publish(table, settings, "read_shards", shards)
    wait_s = 2 * settings.refresh_ms / 1000
    on_progress(f"readers search {shards} shards; waiting {wait_s:g} s until all of them do", 1, 2)
    await asyncio.sleep(wait_s)
    await _publish(table, settings, "write_shards", shards)
    on_progress(f"writers use {shards} shards; each row moves when it advances", 2, 2)


async def move_home(table: Table, home: str, come_from: str | None, on_progress: OnProgress) -> int:
    """Move schedules, rows and open fires, of all regions or of one, to the region `home`. Returns how many were moved.

    Scans the whole table. Each item moves if it was not claimed or changed in between; otherwise it is tried again.
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
            on_progress(f"moved {moved} items to {home}", moved, None)
    return moved


def _home(item: Item) -> str | None:
    """Return the home region of a head, or of an open fire with its own item."""
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
    # A new revision, so that a claim, put or restore that read the old home cannot write it back.
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
    """Write one number, if the shards are unchanged."""
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
        raise StoreUnavailable(f"{table.label}: another process is changing the shards: run `tickler migrate` again") from error
