"""Writes the keys of indexes anew, where items have others than their entity defines now."""

from __future__ import annotations

from typing import Any

import msgspec

from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed
from tickler.table.definition import METADATA_PARTITION, EntityDefinition
from tickler.table.engines.dynamodb.changes import Clauses
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.expressions import Expressions, all_of
from tickler.table.engines.dynamodb.items import TTL, entity_name, ttl_of
from tickler.table.engines.dynamodb.requests import is_of
from tickler.table.engines.engine import Reindexed
from tickler.table.planner import paths_of, slot_with

SCANNED_AT_A_TIME = 1_000

_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def reindex_some(connection: Connection, after: str | None) -> Reindexed:
    """Reindex one page of a scan. Its position is the key of the last item, as JSON."""
    request: dict[str, object] = {"ConsistentRead": True, "Limit": SCANNED_AT_A_TIME}
    if after is not None:
        request["ExclusiveStartKey"] = _decode(after.encode())
    page = await connection.call("Scan", request, _decode)
    changed = sum([await _rekeyed(connection, raw) for raw in page["Items"]])
    last = page.get("LastEvaluatedKey")
    items = sum(raw["pk"]["S"] != METADATA_PARTITION for raw in page["Items"])
    return Reindexed(None if last is None else msgspec.json.encode(last).decode(), items, changed)


async def _rekeyed(connection: Connection, raw: Item | None) -> bool:
    while raw is not None and raw["pk"]["S"] != METADATA_PARTITION:
        definition = connection.table.entities.get(entity_name(raw))
        request = None if definition is None else _request(connection, definition, raw)
        if request is None:
            return False
        try:
            await connection.call("UpdateItem", request, _decode)
        except ConditionFailed as failure:
            raw = failure.item  # somebody wrote it in between
        else:
            return True
    return False


def _request(connection: Connection, definition: EntityDefinition, raw: Item) -> dict[str, object] | None:
    """Return the update of an item whose keys are not as defined, guarded on what they depend on; None if they are right."""
    entity = connection.entity(raw)
    lookup, expires_at = definition.lookup(entity), definition.expires_at(entity)
    keys = {gsi: definition.slot_key(gsi, lookup) for gsi in definition.gsis}
    ttl = None if expires_at is None else ttl_of(expires_at)
    if raw.get(TTL) == ttl and all(_stored_key(gsi, raw) == key for gsi, key in keys.items()):
        return None
    expressions = Expressions()
    clauses = Clauses(expressions)
    clauses.keys({gsi: slot_with(key) for gsi, key in keys.items()})
    clauses.expire_at(expires_at)
    paths = [path for index in definition.indexes for path in paths_of(index)]
    paths += [] if definition.expires is None else [definition.paths[definition.expires.name]]
    guards = [expressions.unchanged(path, raw) for path in paths]
    condition = all_of([is_of(expressions, definition), *dict.fromkeys(guards)])
    return {
        "Key": {"pk": raw["pk"], "sk": raw["sk"]},
        "UpdateExpression": clauses.text(),
        "ConditionExpression": condition,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **expressions.fields(condition, clauses.text()),
    }


def _stored_key(gsi: str, raw: Item) -> tuple[str, str] | None:
    return (raw[f"{gsi}pk"]["S"], raw[f"{gsi}sk"]["S"]) if f"{gsi}pk" in raw and f"{gsi}sk" in raw else None
