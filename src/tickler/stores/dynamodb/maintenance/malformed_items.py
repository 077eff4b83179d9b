"""Items that no index can find: those with a key attribute of the wrong type, or with only one half of the key.

DynamoDB refuses to write them, but items that were there before the index was are just left out of it, without a word. Only
reading the whole table finds them. It also tells an index that should be sparse and is not.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from tickler.dynamo import Client, Item, from_item
from tickler.errors import SchemaMissing
from tickler.stores.dynamodb.index.user_table import ERROR
from tickler.stores.dynamodb.maintenance.sparsity import SparsityCount
from tickler.stores.dynamodb.schema import INDEX_KEYS, describe
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
    removed: str | None = None  # the attribute without which it would be out of the index on purpose


async def find_misfits(client: Client, table: str, label: str) -> AsyncIterator[MalformedItem]:
    """Go through any table, ours or one that is attached, and name what its GSIs miss."""
    description = await describe(client, table)
    if description is None:
        raise SchemaMissing(label)
    types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
    keys = [each["AttributeName"] for each in description["KeySchema"]]
    indexes = [
        _Index(index["IndexName"], _attributes(index, "HASH"), _attributes(index, "RANGE"))
        for index in description.get("GlobalSecondaryIndexes", [])
    ]
    tallies = _tallies(indexes, types)
    items = 0
    async for item in _all_items(client, table):
        items += 1
        for tally in tallies:
            tally.add(item)
        for fault in _faults(item, indexes, types, keys):
            by = f": `{_removing(table, _key_json(item, keys), fault.removed)}`" if fault.removed else ""
            kind: Fault = "set-aside" if fault.attribute == ERROR else "unfound"
            yield MalformedItem(_named(item, keys), fault.attribute, fault.reason, fault.remedy + by, kind)
    for tally in tallies:
        not_sparse = tally.reason(items)
        if not_sparse is not None:
            remedy = f"remove {tally.status} from what is not active ('inactive' is presence, too): "
            remedy += f"`{_removing(table, 'KEY', tally.status)}`"
            example = _named(tally.example, [*keys, tally.status])
            yield MalformedItem(example, tally.status, not_sparse, remedy, "not-sparse", tally.indexed)


async def _all_items(client: Client, table: str) -> AsyncIterator[Item]:
    request: dict[str, Any] = {"TableName": table}
    while True:
        page = await client.call("Scan", request)
        for item in page["Items"]:
            yield item
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _tallies(indexes: Sequence[_Index], types: dict[str, str]) -> list[SparsityCount]:
    """Of indexes that may be those of what is due. In a table of Tickler's own most of what there is may well be active."""
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
    """A command, with a name in the place of the attribute, which may be a word of DynamoDB's."""
    names = json.dumps({"#a": attribute})
    parts = ["--table-name", table, "--key", key, "--update-expression", "REMOVE #a", "--expression-attribute-names", names]
    return f"aws dynamodb update-item {shlex.join(parts)}"


def _faults(item: Item, indexes: Sequence[_Index], types: dict[str, str], keys: list[str]) -> Iterator[_FaultOf]:
    for index in indexes:
        yield from _reasons(item, index, types, keys)
    if ERROR in item:
        said = from_item({ERROR: item[ERROR]})[ERROR]
        yield _FaultOf(ERROR, f"says why it was taken out of the index: {said}", "mend that, and upsert it")


def _attributes(index: dict[str, Any], role: str) -> list[str]:
    return [each["AttributeName"] for each in index["KeySchema"] if each["KeyType"] == role]


def _reasons(item: Item, index: _Index, types: dict[str, str], table_keys: list[str]) -> Iterator[_FaultOf]:
    """The attributes that keep an item out of an index, and why. Without its partition it is out of it on purpose."""
    for attribute in [*index.partition, *index.sort]:
        if attribute not in item:
            continue
        ((kind, raw),) = item[attribute].items()
        wanted = types[attribute]
        if kind != wanted:
            reason = f"is {_TYPES.get(kind, kind)}, and {index.name} is keyed on {_TYPES[wanted]}"
            yield _FaultOf(attribute, reason, f"write it anew as {_TYPES[wanted]}, or remove it", attribute)
        elif raw == "":
            yield _FaultOf(attribute, f"is empty, so {index.name} leaves it out", "give it a value, or remove it", attribute)
    if all(attribute in item for attribute in index.partition) and not set(index.partition) <= set(table_keys):
        there = " and ".join(index.partition)
        for attribute in index.sort:
            if attribute not in item:
                reason = f"is missing, and {there} is there: {index.name} leaves it out"
                yield _FaultOf(attribute, reason, "write both, or neither", index.partition[0])
