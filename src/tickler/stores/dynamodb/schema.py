"""Schema of the table: its keys, how to create it, and checks of an existing one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tickler.database import migrations
from tickler.dynamo.client import Client
from tickler.dynamo.failures import ConditionFailed
from tickler.dynamo.tables import add_index, check_key, create_table, key_schema, turn_on_ttl
from tickler.errors import SchemaMismatch
from tickler.stores.dynamodb.layout import DUE, LISTED, OPEN, OPEN_PROJECTED, PROJECTED
from tickler.stores.dynamodb.settings import Settings

NEWEST = 2
FIRST_MIGRATION = "0001_table"
DEFAULT_SHARDS = 16
MAX_SHARDS = 1024
TTL = "ttl"

KEY_TYPES = {
    "pk": "S",
    "sk": "S",
    "due_shard": "S",
    "next_fire_at": "N",
    "open_shard": "S",
    "deliver_after": "N",
    "listed": "S",
}
INDEX_KEYS = {DUE: ("due_shard", "next_fire_at"), OPEN: ("open_shard", "deliver_after"), LISTED: ("listed", "sk")}
INDEX_PROJECTIONS: dict[str, dict[str, Any]] = {
    DUE: {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(PROJECTED)},
    OPEN: {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(OPEN_PROJECTED)},
    LISTED: {"ProjectionType": "KEYS_ONLY"},
}


def table_definition(name: str) -> dict[str, Any]:
    """Return the request of CreateTable. The templates add what a production table needs: a stream, backups."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": kind} for each, kind in KEY_TYPES.items()],
        "KeySchema": key_schema("pk", "sk"),
        "GlobalSecondaryIndexes": [index_definition(index) for index in INDEX_KEYS],
    }


def index_definition(index: str) -> dict[str, Any]:
    return {"IndexName": index, "KeySchema": key_schema(*INDEX_KEYS[index]), "Projection": INDEX_PROJECTIONS[index]}


async def make(client: Client, table: str, label: str, settings: Settings) -> None:
    """Create the table, indexes and settings that are missing. Several processes may do so at the same time."""
    description = await create_table(client, table_definition(table))
    check_keys(label, description, missing_is_fine=True)
    present = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", [])}
    for index in INDEX_KEYS:  # DynamoDB adds one index at a time
        if index not in present:
            await add_index(client, table, index_definition(index), {key: KEY_TYPES[key] for key in INDEX_KEYS[index]})
    await turn_on_ttl(client, table, label, TTL)
    condition = {"ConditionExpression": "attribute_not_exists(pk)"}
    with suppress(ConditionFailed):  # the settings exist, or another process has just written them
        await client.call("PutItem", {"TableName": table, "Item": settings.item(), **condition})


def check_version(label: str, version: int) -> None:
    """Raise `SchemaMismatch` for a table that cannot be migrated to this version; otherwise check as for any store."""
    if version == 1:
        raise SchemaMismatch(
            label,
            f"the schema is version 1, and this Tickler needs {NEWEST}: DynamoDB cannot add the attributes that its index 'due' "
            "needs to an existing index; create another table with `tickler migrate`, and put your schedules there",
            "has_target",
        )
    migrations.check_version(label, version, NEWEST)


def check_keys(label: str, description: dict[str, Any], *, missing_is_fine: bool = False) -> None:
    """Raise `SchemaMismatch`, which names the index and the attribute, if a key or a projection is wrong."""
    types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
    check_key(label, "the table", description["KeySchema"], types, {"pk": "S", "sk": "S"})
    indexes = {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", [])}
    for name, keys in INDEX_KEYS.items():
        if name in indexes:
            check_key(label, f"the index {name!r}", indexes[name]["KeySchema"], types, {key: KEY_TYPES[key] for key in keys})
            _check_projection(label, name, indexes[name]["Projection"])
        elif not missing_is_fine:
            raise SchemaMismatch(label, f"the table has no index {name!r}: run `tickler migrate`, which adds it", name)


def _check_projection(label: str, index: str, projection: dict[str, Any]) -> None:
    wanted: list[str] = INDEX_PROJECTIONS[index].get("NonKeyAttributes", [])
    absent = set(wanted) - set(projection.get("NonKeyAttributes", []))
    if absent and projection["ProjectionType"] != "ALL":
        first = sorted(absent)[0]
        raise SchemaMismatch(
            label, f"the index {index!r} does not project {first!r}: create it again with {', '.join(wanted)}", first
        )
