"""Many items in few requests. Sends again what DynamoDB left unprocessed, and returns one outcome per statement."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from tickler.aws.error_codes import plain_code
from tickler.dynamo.client import Client, pause
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import RequestRefused, is_retryable
from tickler.dynamo.statements import Statement
from tickler.errors import StoreUnavailable

MAX_STATEMENTS = 25
MAX_READ_ITEMS = 100
MAX_WRITTEN_ITEMS = 25
MAX_CONCURRENT = 8
_REMEDY = "raise the table's capacity, or repeat the call"

T = TypeVar("T")
R = TypeVar("R")


class Outcome(NamedTuple):
    """Result of one statement: `code` is None on success.

    `item` is the item before the statement, if that was requested; after a failed condition, the item as stored.
    """

    code: str | None
    item: Item | None

    @property
    def done(self) -> bool:
        return self.code is None

    @property
    def lost(self) -> bool:
        """The condition did not hold: another writer was first."""
        return self.code == "ConditionalCheckFailed"


async def execute_many(client: Client, statements: Sequence[Statement]) -> list[Outcome | Exception]:
    """Run statements on different items, 25 per request, and return the outcome of each, in order.

    Statements are independent. Throttled ones are repeated. If a whole request fails for good, its statements get the
    exception as their outcome, because statements of other requests may have succeeded.
    """
    outcomes: list[Outcome | Exception] = []
    for batch, answered in await _in_parallel(statements, MAX_STATEMENTS, lambda batch: _execute(client, batch)):
        outcomes += [answered] * len(batch) if isinstance(answered, Exception) else answered
    return outcomes


async def get_many(client: Client, table: str, keys: Sequence[Item], *, consistent: bool = True) -> list[Item]:
    """Read items by key, consistently unless told otherwise, in no particular order. Missing items are left out."""
    found: list[Item] = []
    for _, answered in await _in_parallel(keys, MAX_READ_ITEMS, lambda batch: _get(client, table, batch, consistent)):
        if isinstance(answered, Exception):
            raise answered
        found += answered
    return found


async def write_many(client: Client, table: str, requests: Sequence[dict[str, Any]]) -> None:
    """Put and delete items, `{"PutRequest": …}` or `{"DeleteRequest": …}`, without conditions, 25 per request."""
    for _, answered in await _in_parallel(requests, MAX_WRITTEN_ITEMS, lambda batch: _write(client, table, batch)):
        if isinstance(answered, Exception):
            raise answered


async def run_concurrently(things: Sequence[T], work: Callable[[T], Awaitable[R]]) -> list[R | Exception]:
    """Run `work` on each thing, up to `MAX_CONCURRENT` at a time. Returns results in order, an exception in its place."""
    return [result for _, result in await _in_parallel(things, 1, lambda one: work(one[0]))]


async def _in_parallel(
    things: Sequence[T], size: int, work: Callable[[Sequence[T]], Awaitable[R]]
) -> list[tuple[Sequence[T], R | Exception]]:
    """Run `work` on batches of `size` things concurrently. Returns each batch with its result, in order."""
    gate = asyncio.Semaphore(MAX_CONCURRENT)

    async def guarded(batch: Sequence[T]) -> R:
        async with gate:
            return await work(batch)

    batches = [things[start : start + size] for start in range(0, len(things), size)]
    return list(zip(batches, await gathered(guarded(batch) for batch in batches), strict=True))


async def gathered(works: Iterable[Awaitable[R]]) -> list[R | Exception]:
    """Return all results in order, an exception in its place, so that one failure does not lose the others."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
    return results  # type: ignore[return-value]  # other BaseExceptions were raised above


async def _execute(client: Client, batch: Sequence[Statement]) -> list[Outcome | Exception]:
    outcomes: dict[int, Outcome | Exception] = {}
    left = list(range(len(batch)))
    retryable: dict[int, str] = {}  # error code by position in the batch
    for attempt in range(client.address.attempts):
        if attempt:
            client.usage.retries.update(retryable.values())
            await pause(attempt)
        try:
            answer = await client.call("BatchExecuteStatement", {"Statements": [_request(batch[n]) for n in left]})
        except (StoreUnavailable, RequestRefused) as failure:
            outcomes |= dict.fromkeys(left, failure)  # statements that are not left keep their outcomes
            break
        retryable = {}
        for n, response in zip(left, answer["Responses"], strict=True):
            error = response.get("Error")
            code = None if error is None else plain_code(error["Code"])
            if code is not None and is_retryable(code):
                retryable[n] = code
            outcomes[n] = Outcome(code, response.get("Item") if error is None else error.get("Item"))
        if not retryable:
            break
        left = list(retryable)
    return [outcomes[n] for n in range(len(batch))]


def _request(statement: Statement) -> dict[str, object]:
    request: dict[str, object] = {"Statement": statement.text, "Parameters": statement.parameters}
    if not statement.text.startswith("INSERT"):
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return request


async def _get(client: Client, table: str, keys: Sequence[Item], consistent: bool) -> list[Item]:
    found: list[Item] = []
    wanted: dict[str, object] = {"Keys": list(keys), "ConsistentRead": consistent}
    for attempt in range(client.address.attempts):
        if attempt:
            client.usage.retries["UnprocessedKeys"] += 1
            await pause(attempt)
        answer = await client.call("BatchGetItem", {"RequestItems": {table: wanted}})
        found += answer["Responses"].get(table, [])
        left = answer.get("UnprocessedKeys", {}).get(table)
        if not left:
            return found
        wanted = left
    times = client.address.attempts
    raise StoreUnavailable(f"{client.endpoint}: DynamoDB left reads of {table} unprocessed {times} times: {_REMEDY}")


async def _write(client: Client, table: str, requests: Sequence[dict[str, Any]]) -> None:
    left = list(requests)
    for attempt in range(client.address.attempts):
        if attempt:
            client.usage.retries["UnprocessedItems"] += 1
            await pause(attempt)
        answer = await client.call("BatchWriteItem", {"RequestItems": {table: left}})
        left = answer.get("UnprocessedItems", {}).get(table, [])
        if not left:
            return
    times = client.address.attempts
    raise StoreUnavailable(f"{client.endpoint}: DynamoDB left {len(left)} writes to {table} unprocessed {times} times: {_REMEDY}")
