"""Writes: one item alone, several in a transaction, or many in batches."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec

from tickler.database.progress import OnProgress, no_progress
from tickler.dynamo.batches import MAX_CONCURRENT, MAX_WRITTEN_ITEMS, get_many, write_many
from tickler.dynamo.client import pause
from tickler.dynamo.failures import ConditionFailed, TransactionCancelled, is_retryable
from tickler.dynamo.transactions import MAX_TRANSACTION_ITEMS, TransactionPart
from tickler.errors import InvalidInput, StoreUnavailable, TransactionConflict
from tickler.table.engines.dynamodb.connection import Connection, misfit
from tickler.table.engines.dynamodb.items import item_of, key_of
from tickler.table.engines.dynamodb.requests import Request, Seen, Writing
from tickler.table.operation import Check, Delete, Operation, Put, Update, decide, with_next_version

TRIES = 10

_NAMES = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
_RETURNED = {"Put": "NONE", "Update": "ALL_NEW", "Delete": "ALL_OLD"}
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Writer:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def write(self, operations: Sequence[Operation], now_ms: int, parts: Sequence[TransactionPart] = ()) -> list[Any]:
        if len(operations) == 1 and not parts and not isinstance(operations[0], Check):
            return [await self._write_one(operations[0], now_ms)]
        return await self._write_all(operations, now_ms, parts)

    async def write_each(self, operations: Sequence[Operation]) -> None:
        """Put and delete without conditions. Of several operations on one item, the last counts."""
        requests: dict[tuple[str, str], dict[str, Any]] = {}
        for operation in operations:
            id = operation.id
            if isinstance(operation, Put):
                item = item_of(id.definition, with_next_version(id.definition, operation.entity))
                requests[id.pk, id.sk] = {"PutRequest": {"Item": item}}
            else:
                assert isinstance(operation, Delete)
                requests[id.pk, id.sk] = {"DeleteRequest": {"Key": key_of(id)}}
        with self._connection.translated():
            await write_many(self._connection.client, self._connection.name, list(requests.values()))

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress) -> int:
        left = iter(entities)
        done = 0
        while batch := list(islice(left, MAX_WRITTEN_ITEMS * MAX_CONCURRENT)):
            items = {
                (id.pk, id.sk): item_of(id.definition, with_next_version(id.definition, entity))
                for entity in batch
                for id in [self._id_of(entity)]
            }
            requests = [{"PutRequest": {"Item": item}} for item in items.values()]
            with self._connection.translated():
                await write_many(self._connection.client, self._connection.name, requests)
            done += len(batch)
            on_progress("loading", done, None)
        return done

    def _id_of(self, entity: Any) -> Any:
        return self._connection.table.definition_of(entity).id_of(entity)

    async def _write_one(self, operation: Operation, now_ms: int) -> Any:
        writing = Writing(operation, now_ms)
        for attempt in range(TRIES):
            if attempt > 1:
                await pause(attempt)
            if writing.must_read:
                writing.seen = (await self._read([writing], now_ms))[0]
            request = writing.request()
            try:
                return await self._send(operation, request, now_ms)
            except ConditionFailed as failure:
                writing.overtaken(self._connection.seen(writing.id, failure.item, now_ms))
            except InvalidInput as error:
                if not isinstance(operation, Update) or writing.seen is not None or "document path" not in str(error):
                    raise
                writing.seen = (await self._read([writing], now_ms))[0]
        raise self._too_busy(repr(operation.id))

    async def _send(self, operation: Operation, request: Request, now_ms: int) -> Any:
        wire = self._connection.wires[operation.id.definition.name]
        body = {**request.body, "ReturnValues": _RETURNED[request.kind]}
        once = request.kind != "Put" or "ConditionExpression" in body
        try:
            answer = await self._connection.call(_NAMES[request.kind], body, wire.decode_write, once=once)
        except msgspec.ValidationError as error:
            raise misfit(operation.id.definition.name, error) from None
        if request.kind == "Put":
            return request.entity
        if answer.Attributes is msgspec.UNSET:
            return None
        entity = wire.build(answer.Attributes)
        return entity if request.kind == "Update" or self._connection.is_alive(entity, now_ms) else None

    async def _write_all(self, operations: Sequence[Operation], now_ms: int, parts: Sequence[TransactionPart]) -> list[Any]:
        """Write in one transaction. The results are computed from what was read just before it."""
        if (size := len(operations) + len(parts)) > MAX_TRANSACTION_ITEMS:
            raise InvalidInput(f"a transaction has {size} operations, and DynamoDB takes {MAX_TRANSACTION_ITEMS}: use several")
        writings = [Writing(operation, now_ms) for operation in operations]
        to_read = [writing for writing in writings if not isinstance(writing.operation, Put)]
        for writing, seen in zip(to_read, await self._read(to_read, now_ms), strict=True):
            writing.seen = seen
            decide(writing.operation, seen.entity)  # here, so that the first one that cannot happen is the one that is named
        for attempt in range(TRIES):
            if attempt > 1:
                await pause(attempt)
            requests = [writing.request() for writing in writings]
            lost = await self._transact(requests, parts)
            if not lost:
                return [_left_behind(writing, request) for writing, request in zip(writings, requests, strict=True)]
            for number in sorted(lost):
                writings[number].overtaken(self._connection.seen(writings[number].id, lost[number], now_ms))
        raise self._too_busy(f"a transaction on {self._connection.label}")

    async def _transact(self, requests: Sequence[Request], parts: Sequence[TransactionPart]) -> dict[int, Any]:
        """Send a transaction. Returns the stored items of those whose condition failed; nothing if all was written.

        `TransactionConflict` if the condition of another's part failed.
        """
        name = self._connection.name
        items: list[dict[str, object]] = [{request.kind: {"TableName": name, **request.body}} for request in requests]
        items += [part.request for part in parts]
        body = {"TransactItems": items, "ClientRequestToken": secrets.token_urlsafe(16)}  # of each try: it is done once
        for attempt in range(TRIES):
            if attempt:
                await pause(attempt)
            try:
                with self._connection.translated():
                    await self._connection.client.call("TransactWriteItems", body)
            except TransactionCancelled as cancelled:
                lost = {n: item for n, (code, item) in enumerate(cancelled.reasons) if code == "ConditionalCheckFailed"}
                for number in lost:
                    if number >= len(requests):
                        raise TransactionConflict(parts[number - len(requests)].name) from cancelled
                if lost:
                    return lost
                if not all(code is None or is_retryable(code) for code, _ in cancelled.reasons):
                    raise InvalidInput(f"{self._connection.label}: {cancelled}: change what it names") from cancelled
            else:
                return {}
        raise self._too_busy(f"a transaction on {self._connection.label}")

    async def _read(self, writings: Sequence[Writing], now_ms: int) -> list[Seen]:
        keys = [key_of(writing.id) for writing in writings]
        if len(keys) == 1:
            answer = await self._connection.call("GetItem", {"Key": keys[0], "ConsistentRead": True}, _decode)
            return [self._connection.seen(writings[0].id, answer.get("Item"), now_ms)]
        with self._connection.translated():
            found = await get_many(self._connection.client, self._connection.name, keys)
        by_key = {(raw["pk"]["S"], raw["sk"]["S"]): raw for raw in found}
        ids = [writing.id for writing in writings]
        return [self._connection.seen(id, by_key.get((id.pk, id.sk)), now_ms) for id in ids]

    def _too_busy(self, what: str) -> StoreUnavailable:
        return StoreUnavailable(f"{what}: others wrote the same items {TRIES} times in a row: try again")


def _left_behind(writing: Writing, request: Request) -> Any:
    if isinstance(writing.operation, Put | Update):
        return request.entity
    return None if writing.seen is None else writing.seen.entity
