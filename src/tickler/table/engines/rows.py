"""Rows as the memory and SQL engines read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tickler.errors import InvalidInput, SchemaMismatch
from tickler.table.definition import TableDefinition
from tickler.table.key import ItemId


def is_alive(expires_at: int | None, now_ms: int) -> bool:
    return expires_at is None or expires_at > now_ms


def decode(table: TableDefinition, entity: str, body: bytes) -> Any:
    definition = table.entities.get(entity)
    if definition is None:
        raise unknown_entity(table, entity)
    return definition.decode(body)


def decode_at(table: TableDefinition, id: ItemId[Any], entity: str, body: bytes) -> Any:
    """Decode the row under the key of an item. `SchemaMismatch` if it is of another entity than the key."""
    if entity != id.definition.name:
        raise other_entity(table, id, entity)
    return id.definition.decode(body)


def decode_all(table: TableDefinition, entities: Sequence[str], bodies: Sequence[bytes]) -> list[Any]:
    """Decode rows, in one call if they are of one entity."""
    names = set(entities)
    if len(names) == 1 and entities[0] in table.entities:
        return decode_alike(table, entities[0], bodies)
    return [decode(table, entity, body) for entity, body in zip(entities, bodies, strict=True)]


def decode_alike(table: TableDefinition, entity: str, bodies: Sequence[bytes]) -> list[Any]:
    """Decode rows of one entity of the table in one call."""
    try:
        return table.entities[entity].decode_list(b"[%b]" % b",".join(bodies))
    except msgspec.MsgspecError:
        return [decode(table, entity, body) for body in bodies]  # raises for the one at fault


def unknown_entity(table: TableDefinition, entity: str) -> SchemaMismatch:
    return SchemaMismatch(table.name, f"an item is of the unknown entity {entity!r}: import the module that defines it", entity)


def other_entity(table: TableDefinition, id: ItemId[Any], entity: str) -> SchemaMismatch:
    """Return the error for an item whose key is that of one entity, and which another program stored as another."""
    if entity not in table.entities:
        return unknown_entity(table, entity)
    return SchemaMismatch(table.name, f"{id!r} is stored as {entity!r}: give one of these entities another key", entity)


def duplicate(key: str | None) -> InvalidInput:
    return InvalidInput(f"load: {key}: it is there already, or twice in this load; nothing was loaded: leave it out, or put it")
