"""Encodes values and entities as DynamoDB stores them: each attribute under its own name, with its own type."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence, Set
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

from tickler.dynamo.codec import Attribute, Item, to_attribute
from tickler.errors import InvalidInput, InvalidItem
from tickler.table.definition import EntityDefinition
from tickler.table.key import ItemId

ENTITY = "entity"
TTL = "ttl"

_KEY_HALF = re.compile(r"([a-z][a-z0-9_]{0,30})[ps]k")


def key_of(id: ItemId[Any]) -> Item:
    return {"pk": {"S": id.pk}, "sk": {"S": id.sk}}


def entity_name(raw: Item) -> str:
    """Return of which entity an item is, "" if it does not say so."""
    return str(raw.get(ENTITY, {}).get("S", ""))


def item_of(definition: EntityDefinition, entity: Any) -> Item:
    """Return an entity as an item, with the keys of its indexes. Raises `InvalidItem`."""
    row = definition.row(entity)
    item: Item = {"pk": {"S": row.pk}, "sk": {"S": row.sk}, ENTITY: {"S": definition.name}}
    for gsi, (partition, sort) in row.keys.items():
        item |= {f"{gsi}pk": {"S": partition}, f"{gsi}sk": {"S": sort}}
    if row.expires_at is not None:
        item[TTL] = ttl_of(row.expires_at)
    try:
        return item | fields_of(definition.decode_one(row.body))  # decoded, so that each value has its declared type
    except InvalidInput as error:
        raise InvalidItem(definition.name, str(error)) from None


def index_keys(names: Collection[str], attributes: Collection[str]) -> set[str]:
    """Find the keys of indexes among the names in an item, also of indexes that only another program defines.

    They are what has both halves, and is not among the attributes of the entity.
    """
    halves = {name: half[1] for name in names if name not in attributes and (half := _KEY_HALF.fullmatch(name))}
    return {name for name, gsi in halves.items() if f"{gsi}pk" in names and f"{gsi}sk" in names}


def ttl_of(expires_at_ms: int) -> Attribute:
    """Return the second from which on DynamoDB may delete an item: never before it expires."""
    return {"N": str(math.ceil(expires_at_ms / 1000))}


def fields_of(struct: Any) -> Item:
    """Return the attributes of an entity or part. Missing ones and empty sets are absent."""
    values = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return {name: attribute_of(value) for name, value in values.items() if is_stored(value)}


def is_stored(value: object) -> bool:
    """Tell whether a value is present on DynamoDB, which has no empty sets."""
    return value is not msgspec.UNSET and not (isinstance(value, Set) and not value)


def attribute_of(value: Any) -> Attribute:
    """Return a value as DynamoDB's attribute value."""
    kind = type(value)
    if kind is str:
        return to_attribute(value)
    if isinstance(value, Enum):
        return attribute_of(value.value)
    if isinstance(value, datetime):
        return {"S": instant_text(value)}
    if isinstance(value, date | UUID):
        return {"S": str(value)}
    if isinstance(value, msgspec.Struct):
        return {"M": fields_of(value)}
    if isinstance(value, Mapping):
        return {"M": {map_key(key): attribute_of(each) for key, each in value.items()}}
    if isinstance(value, Set):
        return _set_of(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return {"L": [attribute_of(each) for each in value]}
    if value is None or isinstance(value, str | int | float | bytes | bytearray) or hasattr(value, "as_tuple"):
        return to_attribute(value)
    return attribute_of(msgspec.to_builtins(value))


def instant_text(value: datetime) -> str:
    """Return an instant in UTC with a fixed width, so that texts sort as instants do. A naive one has no `Z`."""
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def map_key(key: Any) -> str:
    """Return the text of a key of a map, as JSON has it."""
    if type(key) is str:
        return key
    if isinstance(key, datetime):
        key = key.astimezone(UTC)  # one text for each instant
    (text,) = msgspec.to_builtins({key: None}, str_keys=True)
    return str(text)


def _set_of(value: Set[Any]) -> Attribute:
    plain = [attribute_of(each) for each in value]
    (tag, *others) = {tag for each in plain for tag in each}
    if others or tag not in ("S", "N", "B"):
        raise InvalidInput("a set must have only text, only numbers or only bytes in DynamoDB: use a list")
    return {f"{tag}S": sorted(each[tag] for each in plain)}
