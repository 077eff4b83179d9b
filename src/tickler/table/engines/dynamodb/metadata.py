"""Metadata of a table on DynamoDB: items in a partition of their own. A value that is too large for one is cut into several."""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tickler.dynamo.batches import run_concurrently
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed, TransactionCancelled, is_retryable
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.table.definition import METADATA_PARTITION
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.metadata import Entry, EntryWrite

MAX_PART_BYTES = 256 * 1024
TRIES = 10

_PART = "\x01"  # stands between a key and the number of a further part, which is therefore right behind its entry
_FIRST, _LAST = "\x01", "\x7f"  # around all that stands in keys
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Found(NamedTuple):
    """An entry as far as its parts were found. Another write may have replaced the missing ones in between."""

    entry: Entry
    missing_parts: int


class DynamodbMetadata:
    """The item of an entry has its version, the first part of its value, and how many there are.

    Each item has the token of the write that it is from. A further part with another token is not of this value: an interrupted
    write left it behind, or another one has just replaced it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        low = max(prefix, after + _PART + _LAST) if after else prefix or _FIRST
        found = await self._find(low, prefix + _LAST, limit=limit, keys_only=keys_only)
        if keys_only:
            return [each.entry for each in found]
        entries = [await self._whole(each) for each in found]
        return [entry for entry in entries if entry is not None]

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        results: list[bool] = []
        for each in await run_concurrently(writes, self._write):
            if isinstance(each, Exception):
                raise each
            results.append(each)
        return results

    async def _find(self, low: str, high: str, *, limit: int | None, keys_only: bool) -> list[_Found]:
        if low > high:
            return []
        request: dict[str, object] = {
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": {":pk": {"S": METADATA_PARTITION}, ":low": {"S": low}, ":high": {"S": high}},
            "ConsistentRead": True,
            **({"ProjectionExpression": "sk, version"} if keys_only else {}),
            **({} if limit is None else {"Limit": limit + 1}),
        }
        items: list[Item] = []
        while True:
            page = await self._connection.call("Query", request, _decode)
            items += page["Items"]
            found = _put_together(items)
            if "LastEvaluatedKey" not in page or (limit is not None and len(found) > limit):
                return found[:limit]
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def _whole(self, found: _Found) -> Entry | None:
        """Return an entry with all of its value. If it was written while its parts were read, they are read again."""
        key = found.entry.key
        for attempt in range(TRIES):
            if not found.missing_parts:
                return found.entry
            await pause(attempt + 1)
            again = await self._find(key, key + _PART + _LAST, limit=None, keys_only=False)
            if not again:
                return None
            (found,) = again
        raise self._too_busy(key)

    async def _write(self, write: EntryWrite) -> bool:
        if write.value is None:
            return await self._delete(write)
        parts = [write.value[at : at + MAX_PART_BYTES] for at in range(0, len(write.value), MAX_PART_BYTES)] or [b""]
        if len(parts) > 1:
            return await self._write_parts(write, parts)
        token = secrets.token_hex(16)
        request = {**_update(write, parts[0], 1, token), "ReturnValues": "ALL_OLD"}
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            old = (await self._connection.call("UpdateItem", request, _decode)).get("Attributes")
        except ConditionFailed as failure:
            return _token(failure.item) == token  # it had happened: its first response was lost, and it was sent again
        await self._drop_parts(write.key, old, kept=1)
        return True

    async def _write_parts(self, write: EntryWrite, parts: Sequence[bytes]) -> bool:
        """Write several items in one transaction. Its size is bounded by what a value may have."""
        for attempt in range(TRIES):
            if attempt:
                await pause(attempt)
            answer = await self._connection.call("GetItem", {"Key": _key(write.key), "ConsistentRead": True}, _decode)
            current = answer.get("Item")
            version = 0 if current is None else _version(current)
            if write.expected not in (None, version):
                return False
            lost = await self._transact(write._replace(expected=version), parts)
            if not lost:
                await self._drop_parts(write.key, current, kept=len(parts))
                return True
            if "ConditionalCheckFailed" in lost and write.expected is not None:
                return False
        raise self._too_busy(write.key)

    async def _transact(self, write: EntryWrite, parts: Sequence[bytes]) -> set[str]:
        """Send a transaction. Returns the codes of failures after which it can be tried again, none if it was done."""
        name, token = self._connection.name, secrets.token_hex(16)
        update: dict[str, object] = {"Update": {"TableName": name, **_update(write, parts[0], len(parts), token)}}
        puts = [{"Put": {"TableName": name, "Item": _part(write.key, number, part, token)}} for number, part in enumerate(parts)]
        try:
            with self._connection.translated():
                await self._connection.client.call(
                    "TransactWriteItems", {"TransactItems": [update, *puts[1:]], "ClientRequestToken": token}
                )
        except TransactionCancelled as cancelled:
            codes = {code for code, _ in cancelled.reasons if code is not None}
            if not all(code == "ConditionalCheckFailed" or is_retryable(code) for code in codes):
                raise InvalidInput(f"{self._connection.label}: {cancelled}: change what it names") from cancelled
            return codes or {"TransactionConflict"}
        return set()

    async def _delete(self, write: EntryWrite) -> bool:
        """Delete an entry. A lost response is an error if the caller has to know who deleted it."""
        request: dict[str, object] = {"Key": _key(write.key), "ReturnValues": "ALL_OLD", **_condition(write)}
        try:
            answer = await self._connection.call("DeleteItem", request, _decode, once=bool(write.expected))
        except ConditionFailed:
            return False
        await self._drop_parts(write.key, answer.get("Attributes"), kept=1)
        return True

    async def _drop_parts(self, key: str, old: Item | None, *, kept: int) -> None:
        """Delete the further parts that an entry had before and has no more, unless somebody has just written them anew."""
        for number in range(kept, 1 if old is None else int(old["parts"]["N"])):
            request: dict[str, object] = {
                "Key": _key(key, number),
                "ConditionExpression": "written_by = :old",
                "ExpressionAttributeValues": {":old": {"S": _token(old)}},
            }
            try:
                await self._connection.call("DeleteItem", request, _decode)
            except ConditionFailed:
                continue

    def _too_busy(self, key: str) -> StoreUnavailable:
        return StoreUnavailable(f"{self._connection.label}: others wrote the metadata {key!r} {TRIES} times in a row: try again")


def _put_together(items: Sequence[Item]) -> list[_Found]:
    """Return the entries among items, each with the parts that are of the same write."""
    found: list[_Found] = []
    token = None
    for item in items:
        key, _, part = item["sk"]["S"].partition(_PART)
        value = b64decode(item["value"]["B"]) if "value" in item else b""
        if not part:
            token = _token(item)
            found.append(_Found(Entry(key, _version(item), value), int(item["parts"]["N"]) - 1 if "parts" in item else 0))
        elif found and found[-1].entry.key == key and _token(item) == token and found[-1].missing_parts:
            entry, missing = found[-1]
            found[-1] = _Found(entry._replace(value=entry.value + value), missing - 1)
    return found


def _update(write: EntryWrite, value: bytes, parts: int, token: str) -> dict[str, object]:
    condition = _condition(write)
    given: Any = condition.get("ExpressionAttributeValues", {})
    values = {":value": _binary(value), ":parts": _number(parts), ":token": {"S": token}, ":one": _number(1)}
    return {
        **condition,
        "Key": _key(write.key),
        "UpdateExpression": "SET #value = :value, parts = :parts, written_by = :token ADD version :one",
        "ExpressionAttributeNames": {"#value": "value"},
        "ExpressionAttributeValues": {**values, **given},
    }


def _part(key: str, number: int, value: bytes, token: str) -> Item:
    return {**_key(key, number), "value": _binary(value), "written_by": {"S": token}}


def _condition(write: EntryWrite) -> dict[str, object]:
    if write.expected is None:
        return {}
    if write.expected == 0:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {"ConditionExpression": "version = :seen", "ExpressionAttributeValues": {":seen": _number(write.expected)}}


def _token(item: Item | None) -> str | None:
    return None if item is None else item.get("written_by", {}).get("S")


def _version(item: Item) -> int:
    return int(item["version"]["N"])


def _key(key: str, part: int = 0) -> Item:
    return {"pk": {"S": METADATA_PARTITION}, "sk": {"S": f"{key}{_PART}{part:02}" if part else key}}


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _binary(value: bytes) -> dict[str, str]:
    return {"B": b64encode(value).decode()}
