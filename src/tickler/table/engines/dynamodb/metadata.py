"""Metadata of a table on DynamoDB: items in a partition of their own. A value that is too large for one is cut into several."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed, TransactionCancelled
from tickler.table.definition import METADATA_PARTITION
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.metadata import Entry, EntryWrite

MAX_PART_BYTES = 256 * 1024

_PART = "\x01"  # stands between a key and the number of a further part, which is therefore right behind its entry
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class DynamodbMetadata:
    """The item of an entry has its version and the first part of its value; a further part has the version that it belongs to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        low = max(prefix, after + _PART + "\x7f") if after else prefix or "\x01"
        request: dict[str, object] = {
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": {
                ":pk": {"S": METADATA_PARTITION},
                ":low": {"S": low},
                ":high": {"S": f"{prefix}\x7f"},
            },
            "ConsistentRead": True,
            **({"ProjectionExpression": "sk, version"} if keys_only else {}),
        }
        items: list[Item] = []
        while True:
            page = await self._connection.call("Query", request, _decode)
            items += page["Items"]
            entries = _entries(items)
            if "LastEvaluatedKey" not in page or (limit is not None and len(entries) > limit):
                return entries[:limit]
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        return [await self._write(each) for each in writes]

    async def _write(self, write: EntryWrite) -> bool:
        if write.value is None:
            return await self._delete(write)
        parts = [write.value[at : at + MAX_PART_BYTES] for at in range(0, len(write.value), MAX_PART_BYTES)] or [b""]
        if len(parts) > 1:
            return await self._write_parts(write, parts)
        request = {**_update(write, parts[0], 1), "ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            old = (await self._connection.call("UpdateItem", request, _decode)).get("Attributes")
        except ConditionFailed as failure:
            return _is_ours(write, failure.item)
        await self._drop_parts(write.key, old, kept=1)
        return True

    async def _write_parts(self, write: EntryWrite, parts: Sequence[bytes]) -> bool:
        """Write several items in one transaction. Its size is bounded by what a value may have."""
        current = (await self._connection.call("GetItem", {"Key": _key(write.key), "ConsistentRead": True}, _decode)).get("Item")
        version = _version(current)
        if write.expected not in (None, version):
            return False
        name = self._connection.name
        puts = [
            {"Put": {"TableName": name, "Item": {**_key(write.key, n), "version": _number(version + 1), "value": _binary(part)}}}
            for n, part in enumerate(parts)
            if n
        ]
        exact = write._replace(expected=version)
        update = {"Update": {"TableName": name, **_update(exact, parts[0], len(parts))}}
        try:
            with self._connection.translated():
                await self._connection.client.call("TransactWriteItems", {"TransactItems": [update, *puts]})
        except TransactionCancelled:
            return False
        await self._drop_parts(write.key, current, kept=len(parts))
        return True

    async def _delete(self, write: EntryWrite) -> bool:
        request: dict[str, object] = {"Key": _key(write.key), "ReturnValues": "ALL_OLD", **_condition(write)}
        try:
            old = (await self._connection.call("DeleteItem", request, _decode)).get("Attributes")
        except ConditionFailed:
            return False
        await self._drop_parts(write.key, old, kept=1)
        return True

    async def _drop_parts(self, key: str, old: Item | None, *, kept: int) -> None:
        """Delete the further parts that an entry had before and has no more."""
        for number in range(kept, 1 if old is None else int(old["parts"]["N"])):
            await self._connection.call("DeleteItem", {"Key": _key(key, number)}, _decode)


def _entries(items: Sequence[Item]) -> list[Entry]:
    """Return entries, each put together from its parts. A part of another version was left behind, or belongs to a newer one."""
    entries: list[Entry] = []
    for item in items:
        key, _, part = item["sk"]["S"].partition(_PART)
        version, value = _version(item), b64decode(item["value"]["B"]) if "value" in item else b""
        if not part:
            entries.append(Entry(key, version, value))
        elif entries and entries[-1][:2] == (key, version):
            entries[-1] = entries[-1]._replace(value=entries[-1].value + value)
    return entries


def _update(write: EntryWrite, value: bytes, parts: int) -> dict[str, object]:
    condition = _condition(write)
    values: dict[str, object] = {":value": _binary(value), ":parts": _number(parts), ":one": _number(1)}
    given: Any = condition.get("ExpressionAttributeValues", {})
    return {
        **condition,
        "Key": _key(write.key),
        "UpdateExpression": "SET #value = :value, parts = :parts ADD version :one",
        "ExpressionAttributeNames": {"#value": "value"},
        "ExpressionAttributeValues": {**values, **given},
    }


def _condition(write: EntryWrite) -> dict[str, object]:
    if write.expected is None:
        return {}
    if write.expected == 0:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {"ConditionExpression": "version = :seen", "ExpressionAttributeValues": {":seen": _number(write.expected)}}


def _is_ours(write: EntryWrite, stored: Item | None) -> bool:
    """Tell whether a write whose condition failed had happened already: its first response was lost, and it was sent again."""
    if stored is None or write.expected is None or write.value is None:
        return False
    return _version(stored) == write.expected + 1 and stored.get("value") == _binary(write.value)


def _version(item: Item | None) -> int:
    return 0 if item is None else int(item["version"]["N"])


def _key(key: str, part: int = 0) -> Item:
    return {"pk": {"S": METADATA_PARTITION}, "sk": {"S": f"{key}{_PART}{part:02}" if part else key}}


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _binary(value: bytes) -> dict[str, str]:
    return {"B": b64encode(value).decode()}
