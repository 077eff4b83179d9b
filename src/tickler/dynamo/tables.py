"""Tables: creates them, waits for them, adds indexes and streams, and checks the keys of existing ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tickler.dynamo.client import Client
from tickler.dynamo.failures import RequestRefused
from tickler.errors import SchemaMismatch, StoreUnavailable

POLL_S = 0.5
TABLE_TIMEOUT_S = 600.0
_RECREATE = "use another one, or create it again"


def key_schema(partition: str, sort: str) -> list[dict[str, str]]:
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


async def create_table(client: Client, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Create a table unless it exists, wait until it is active, and return its description. Several processes may do so."""
    table: str = definition["TableName"]
    if await describe(client, table) is None:
        try:
            await client.call("CreateTable", definition)
        except RequestRefused as error:
            if error.code != "ResourceInUse":
                raise
    return await until_active(client, table)


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


async def add_index(client: Client, table: str, definition: Mapping[str, Any], key_types: Mapping[str, str]) -> None:
    """Add an index and wait until it is filled. DynamoDB adds one at a time."""
    request = {
        "TableName": table,
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": kind} for key, kind in key_types.items()],
        "GlobalSecondaryIndexUpdates": [{"Create": definition}],
    }
    try:
        await client.call("UpdateTable", request)
    except RequestRefused as error:
        if error.code != "ResourceInUse":  # another process is adding it
            raise
    await until_active(client, table)


async def turn_on_stream(client: Client, table: str, view_type: str) -> None:
    """Turn on the stream of a table that has none, and wait until the table is active again. Several processes may do so."""
    specification = {"StreamEnabled": True, "StreamViewType": view_type}
    for _ in range(client.address.attempts):
        try:
            await client.call("UpdateTable", {"TableName": table, "StreamSpecification": specification})
        except RequestRefused as error:
            if error.code != "ResourceInUse" and "already has an enabled stream" not in error.message:
                raise
        description = await until_active(client, table)
        if description.get("StreamSpecification", {}).get("StreamEnabled"):
            return
    raise StoreUnavailable(f"the stream of the table {table} cannot be turned on while others change the table: try again")


async def turn_on_ttl(client: Client, table: str, label: str, attribute: str) -> None:
    answer = await client.call("DescribeTimeToLive", {"TableName": table})
    description = answer["TimeToLiveDescription"]
    if description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        if (found := description.get("AttributeName", attribute)) != attribute:
            remedy = "turn time to live off, then run `tickler migrate`"
            raise SchemaMismatch(
                label, f"the time-to-live attribute is {found!r}, and must be {attribute!r}: {remedy}", attribute
            )
        return
    specification = {"AttributeName": attribute, "Enabled": True}
    try:
        await client.call("UpdateTimeToLive", {"TableName": table, "TimeToLiveSpecification": specification})
    except RequestRefused as error:
        if "already enabled" not in error.message:
            raise
