"""The table on DynamoDB: its keys and indexes, how to create it, and checks of an existing one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tickler.dynamo.client import Client
from tickler.dynamo.tables import add_index, check_key, create_table, describe, key_schema, turn_on_ttl
from tickler.errors import SchemaMismatch
from tickler.table.engines.dynamodb.items import TTL
from tickler.table.engines.engine import THE_TABLE

_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def table_definition(name: str, gsis: Iterable[str]) -> dict[str, Any]:
    """Return the request of CreateTable."""
    types = {"pk": "S", "sk": "S"}
    for gsi in gsis:
        types |= _key_types(gsi)
    indexes = [_index_definition(gsi) for gsi in gsis]
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": kind} for each, kind in types.items()],
        "KeySchema": key_schema("pk", "sk"),
        **({"GlobalSecondaryIndexes": indexes} if indexes else {}),
    }


async def make(client: Client, name: str, label: str, gsis: Iterable[str]) -> list[str]:
    """Create the table and the indexes that are missing, and turn on expiry. Several processes may do so at the same time.

    Returns the names of what was missing.
    """
    wanted = list(gsis)
    was_missing = await describe(client, name) is None
    description = await create_table(client, table_definition(name, wanted))
    check(label, description, wanted, missing_is_fine=True)
    present = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", [])}
    added = [gsi for gsi in wanted if gsi not in present]
    for gsi in added:
        await add_index(client, name, _index_definition(gsi), _key_types(gsi))
    await turn_on_ttl(client, name, label, TTL)
    return [THE_TABLE, *wanted] if was_missing else added


def check(label: str, description: dict[str, Any], gsis: Iterable[str], *, missing_is_fine: bool = False) -> None:
    """Raise `SchemaMismatch`, which names the index, if a key or a projection is wrong."""
    types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
    check_key(label, "the table", description["KeySchema"], types, {"pk": "S", "sk": "S"})
    indexes = {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", [])}
    for gsi in gsis:
        if gsi not in indexes:
            if not missing_is_fine:
                raise SchemaMismatch(
                    label, f"the table has no index {gsi!r}: run `tickler table create`, or open it with create=True", gsi
                )
            continue
        check_key(label, f"the index {gsi!r}", indexes[gsi]["KeySchema"], types, _key_types(gsi))
        projection = indexes[gsi]["Projection"]["ProjectionType"]
        if projection != "ALL":
            raise SchemaMismatch(label, f"the index {gsi!r} projects {projection}, and must project ALL: create it again", gsi)


def cloudformation(name: str, gsis: Iterable[str]) -> str:
    """Return a CloudFormation template of the table."""
    definition = table_definition(name, gsis)
    lines = [
        "Resources:",
        "  Table:",
        "    Type: AWS::DynamoDB::Table",
        "    DeletionPolicy: Retain",
        "    UpdateReplacePolicy: Retain",
        "    Properties:",
        *_yaml({**definition, "TimeToLiveSpecification": {"AttributeName": TTL, "Enabled": True}}, "      "),
    ]
    return "\n".join(lines) + "\n"


def _yaml(value: Any, indent: str) -> list[str]:
    """Return a mapping as the lines of a YAML block."""
    lines: list[str] = []
    for key, each in value.items():
        if isinstance(each, dict):
            lines += [f"{indent}{key}:", *_yaml(each, indent + "  ")]
        elif isinstance(each, list):
            lines.append(f"{indent}{key}:")
            for entry in each:
                first, *rest = _yaml(entry, "")
                lines += [f"{indent}  - {first}", *(f"{indent}    {line}" for line in rest)]
        else:
            lines.append(f"{indent}{key}: {_scalar(each)}")
    return lines


def _scalar(value: str | bool) -> str:
    """Return a name, in quotes where YAML would read something else: a number, true, or null."""
    if isinstance(value, bool):
        return str(value).lower()
    is_plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", value) and value.lower() not in _YAML_WORDS
    return value if is_plain else f'"{value}"'


def _key_types(gsi: str) -> dict[str, str]:
    return {f"{gsi}pk": "S", f"{gsi}sk": "S"}


def _index_definition(gsi: str) -> dict[str, Any]:
    return {"IndexName": gsi, "KeySchema": key_schema(*_key_types(gsi)), "Projection": {"ProjectionType": "ALL"}}
