"""Finds items that an index silently leaves out: a key attribute has the wrong type, or only half of the key exists.

DynamoDB refuses to write them, but leaves out those that are older than the index, without an error. Only a scan of the whole
table finds them. It also finds an index that should be sparse and is not.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item, from_item
from tickler.dynamo.tables import describe
from tickler.errors import SchemaMissing
from tickler.stores.dynamodb.index.user_table import ERROR
from tickler.stores.dynamodb.maintenance.sparsity import SparsityCount
from tickler.stores.dynamodb.schema import INDEX_KEYS
from tickler.stores.dynamodb.table import Table
from tickler.stores.optional import Fault, MalformedItem

_TYPES = {"S": "text", "N": "a number", "B": "bytes", "BOOL": "true or false", "NULL": "a null", "M": "a map", "L": "a list"}


class _Index(NamedTuple):
    name: str
    partition: list[str]
    sort: list[str]


class _FaultOf(NamedTuple):
    attribute: str
    reason: str
    remedy: str
    removed: str | None = None  # the attribute to remove to keep the item out of the index on purpose


async def find_malformed(client: Client, table: str, label: str) -> AsyncIterator[MalformedItem]:
    """Scan a table, Tickler's own or a user's, and yield the items that its GSIs leave out."""
    description = await describe(client, table)
    if description is None:
        raise SchemaMissing(label)
    types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
    keys = [each["AttributeName"] for each in description["KeySchema"]]
    indexes = [
        _Index(index["IndexName"], _attributes(index, "HASH"), _attributes(index, "RANGE"))
        for index in description.get("GlobalSecondaryIndexes", [])
    ]
    counts = _sparsity_counts(indexes, types)
    items = 0
    async for page in Table(client, table, label).pages({}):
        items += len(page["Items"])
        for item in page["Items"]:
            for count in counts:
                count.add(item)
            for fault in _faults(item, indexes, types, keys):
                by = f": `{_removing(table, _key_json(item, keys), fault.removed)}`" if fault.removed else ""
                kind: Fault = "set-aside" if fault.attribute == ERROR else "unfound"
                yield MalformedItem(_named(item, keys), fault.attribute, fault.reason, fault.remedy + by, kind)
    for count in counts:
        not_sparse = count.reason(items)
        if not_sparse is not None:
            remedy = f"remove {count.status} from items that are not active (a value such as 'inactive' is indexed, too): "
            remedy += f"`{_removing(table, 'KEY', count.status)}`"
            example = _named(count.example, [*keys, count.status])
            yield MalformedItem(example, count.status, not_sparse, remedy, "not-sparse", count.indexed)


def _sparsity_counts(indexes: Sequence[_Index], types: dict[str, str]) -> list[SparsityCount]:
    """Return counters for indexes that may hold due items. None for Tickler's own tables, where most items may be active."""
    if set(INDEX_KEYS) <= {index.name for index in indexes}:
        return []
    return [
        SparsityCount(index.name, index.partition[0], index.sort[0])
        for index in indexes
        if [types[each] for each in index.partition] == ["S"] and [types[each] for each in index.sort] == ["N"]
    ]


def _named(item: Item, attributes: Sequence[str]) -> str:
    return ", ".join(f"{name}={from_item({name: item[name]})[name]!r}" for name in attributes)


def _key_json(item: Item, keys: Sequence[str]) -> str:
    return json.dumps({key: item[key] for key in keys})


def _removing(table: str, key: str, attribute: str) -> str:
    """Return a command that removes an attribute, by a placeholder because its name may be a reserved word."""
    names = json.dumps({"#a": attribute})
    parts = ["--table-name", table, "--key", key, "--update-expression", "REMOVE #a", "--expression-attribute-names", names]
    return f"aws dynamodb update-item {shlex.join(parts)}"


def _faults(item: Item, indexes: Sequence[_Index], types: dict[str, str], keys: list[str]) -> Iterator[_FaultOf]:
    for index in indexes:
        yield from _reasons(item, index, types, keys)
    if ERROR in item:
        error = from_item({ERROR: item[ERROR]})[ERROR]
        yield _FaultOf(ERROR, f"has the reason why the item left the index: {error}", "fix that, and upsert the item")


def _attributes(index: dict[str, Any], role: str) -> list[str]:
    return [each["AttributeName"] for each in index["KeySchema"] if each["KeyType"] == role]


def _reasons(item: Item, index: _Index, types: dict[str, str], table_keys: list[str]) -> Iterator[_FaultOf]:
    """Yield the attributes that keep an item out of an index, and why. Without a partition key it is out on purpose."""
    for attribute in [*index.partition, *index.sort]:
        if attribute not in item:
            continue
        ((kind, raw),) = item[attribute].items()
        wanted = types[attribute]
        if kind != wanted:
            reason = f"is {_TYPES.get(kind, kind)}, but the key of {index.name} is {_TYPES[wanted]}"
            yield _FaultOf(attribute, reason, f"write it again as {_TYPES[wanted]}, or remove it", attribute)
        elif raw == "":
            yield _FaultOf(attribute, f"is empty, so {index.name} leaves the item out", "set it, or remove it", attribute)
    if all(attribute in item for attribute in index.partition) and not set(index.partition) <= set(table_keys):
        present = " and ".join(index.partition)
        for attribute in index.sort:
            if attribute not in item:
                reason = f"is missing, but {present} is set, so {index.name} leaves the item out"
                yield _FaultOf(attribute, reason, "write both, or neither", index.partition[0])
