"""Schema of the table: its keys, how to create it, and checks of an existing one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tickler.database import migrations
from tickler.dynamo import Client, RequestRefused
from tickler.dynamo.failures import ConditionFailed
from tickler.errors import SchemaMismatch, StoreUnavailable
from tickler.stores.dynamodb.layout import DUE, LISTED, OPEN, OPEN_PROJECTED, PROJECTED
from tickler.stores.dynamodb.settings import Settings

NEWEST = 2
FIRST_MIGRATION = "0001_table"
DEFAULT_SHARDS = 16
MAX_SHARDS = 1024
TTL = "ttl"
POLL_S = 0.5
TABLE_TIMEOUT_S = 600.0
_RECREATE = "use another one, or create it again"

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
        "KeySchema": _key_schema("pk", "sk"),
        "GlobalSecondaryIndexes": [index_definition(index) for index in INDEX_KEYS],
    }


def index_definition(index: str) -> dict[str, Any]:
    return {"IndexName": index, "KeySchema": _key_schema(*INDEX_KEYS[index]), "Projection": INDEX_PROJECTIONS[index]}


def _key_schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


async def describe(client: Client, table: str) -> dict[str, Any] | None:
    try:
        answer = await client.call("DescribeTable", {"TableName": table})
    except RequestRefused as error:
        if error.code == "ResourceNotFound":
            return None
        raise
    description: dict[str, Any] = answer["Table"]
    return description


async def make(client: Client, table: str, label: str, settings: Settings) -> None:
    """Create the table, indexes and settings that are missing. Several processes may do so at the same time."""
    description = await describe(client, table)
    if description is None:
        try:
            await client.call("CreateTable", table_definition(table))
        except RequestRefused as error:
            if error.code != "ResourceInUse":
                raise
    description = await until_active(client, table)
    check_keys(label, description, missing_is_fine=True)
    present = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", [])}
    for index in INDEX_KEYS:  # DynamoDB adds one index at a time
        if index not in present:
            await _add_index(client, table, index)
    await _turn_on_ttl(client, table, label)
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


def check_key(label: str, what: str, schema: list[dict[str, str]], types: dict[str, str], wanted: dict[str, str]) -> None:
    """Raise `SchemaMismatch` unless the key is the attributes of `wanted`, in that order, with those types."""
    found = [each["AttributeName"] for each in sorted(schema, key=lambda each: each["KeyType"])]
    for role, expected, attribute in zip(("partition", "sort"), wanted, [*found, "", ""][:2], strict=True):
        if attribute != expected:
            shown = repr(attribute) if attribute else "none"
            raise SchemaMismatch(label, f"the {role} key of {what} is {shown}, and must be {expected!r}: {_RECREATE}", expected)
        if types[attribute] != wanted[expected]:
            raise SchemaMismatch(
                label,
                f"the key {attribute!r} of {what} has type {types[attribute]}, and must have {wanted[expected]}: {_RECREATE}",
                attribute,
            )


def _check_projection(label: str, index: str, projection: dict[str, Any]) -> None:
    wanted: list[str] = INDEX_PROJECTIONS[index].get("NonKeyAttributes", [])
    absent = set(wanted) - set(projection.get("NonKeyAttributes", []))
    if absent and projection["ProjectionType"] != "ALL":
        first = sorted(absent)[0]
        raise SchemaMismatch(
            label, f"the index {index!r} does not project {first!r}: create it again with {', '.join(wanted)}", first
        )


async def until_active(client: Client, table: str) -> dict[str, Any]:
    """Wait until the table and its indexes are active."""
    waited = 0.0
    while waited < TABLE_TIMEOUT_S:
        description = await describe(client, table)
        if description is not None:
            states = [
                description["TableStatus"],
                *(each["IndexStatus"] for each in description.get("GlobalSecondaryIndexes", [])),
            ]
            if set(states) == {"ACTIVE"}:
                return description
        await asyncio.sleep(POLL_S)
        waited += POLL_S
    raise StoreUnavailable(f"the table {table} is not active after {TABLE_TIMEOUT_S:g} s: check it in the console, and try again")


async def _add_index(client: Client, table: str, index: str) -> None:
    attributes = [{"AttributeName": key, "AttributeType": KEY_TYPES[key]} for key in INDEX_KEYS[index]]
    updates = [{"Create": index_definition(index)}]
    request = {"TableName": table, "AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": updates}
    try:
        await client.call("UpdateTable", request)
    except RequestRefused as error:
        if error.code != "ResourceInUse":  # another process is adding it
            raise
    await until_active(client, table)


async def _turn_on_ttl(client: Client, table: str, label: str) -> None:
    answer = await client.call("DescribeTimeToLive", {"TableName": table})
    description = answer["TimeToLiveDescription"]
    if description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        if (attribute := description.get("AttributeName", TTL)) != TTL:
            remedy = "turn time to live off, then run `tickler migrate`"
            raise SchemaMismatch(label, f"the time-to-live attribute is {attribute!r}, and must be {TTL!r}: {remedy}", TTL)
        return
    specification = {"AttributeName": TTL, "Enabled": True}
    try:
        await client.call("UpdateTimeToLive", {"TableName": table, "TimeToLiveSpecification": specification})
    except RequestRefused as error:
        if "already enabled" not in error.message:
            raise
