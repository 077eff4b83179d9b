"""Stands before a real DynamoDB engine and does what only the service does: lag, throttle, fail, and lose answers."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections import Counter
from decimal import Decimal
from random import Random
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
from aiohttp import web
from multidict import CIMultiDict

Body = dict[str, Any]  # JSON of many shapes; the engine is who checks it
BatchOfTable = list[object] | dict[str, Any]

ERROR_TYPES = "com.amazonaws.dynamodb.v20120810#"
THROTTLED_STATEMENT = {"Error": {"Code": "ThrottlingError", "Message": "the proxy throttled this statement"}}
OF_ONE_CONNECTION = ("Connection", "Keep-Alive", "Transfer-Encoding", "Content-Length")
MAX_REQUEST_BYTES = 32 * 1024 * 1024
UPPER_BOUND = re.compile(r"(?:<=?|BETWEEN\s+:\w+\s+AND)\s*(:\w+)", re.IGNORECASE)


class _Request(msgspec.Struct, frozen=True):
    operation: str
    path: str
    headers: CIMultiDict[str]
    body: bytes

    def decoded(self) -> Body:
        decoded: Body = json.loads(self.body or b"{}")
        return decoded


class _Answer(msgspec.Struct, frozen=True):
    status: int
    headers: CIMultiDict[str]
    body: bytes

    def decoded(self) -> Body:
        decoded: Body = json.loads(self.body)
        return decoded


class _AnswerLost(Exception):
    """The connection ends here, without an answer."""


class FaultProxy:
    """Forwards every request. A fault is off until its attribute is set, and counted in `served`, by that name, as it happens.

    A probability is of a request; of `throttle_statements` and `unprocessed`, of one statement or item, and so they count.
    """

    def __init__(self, engine_endpoint: str, chance: Random) -> None:
        self.only: set[str] | None = None  # the operations that faults happen to; None for all
        self.stale = False  # a Query of an index gets the answer before the newest
        self.throttle = 0.0  # refused, not forwarded
        self.throttle_statements = 0.0  # of a BatchExecuteStatement
        self.unprocessed = 0.0  # of a BatchWriteItem or BatchGetItem: not forwarded, said to be left
        self.error_500 = 0.0  # refused, not forwarded
        self.reset_before = 0.0  # no answer, not forwarded
        self.reset_after = 0.0  # no answer, though it was forwarded and done
        self.delay_s = 0.0  # before the answer, after it was done
        self.log_bodies = False
        self.bodies: list[tuple[str, Body]] = []  # operation and request, as asked
        self.requests: Counter[str] = Counter()  # forwarded ones, by operation
        self.served: Counter[str] = Counter()
        self._engine_endpoint = engine_endpoint
        self._chance = chance
        self._older: dict[str, tuple[Decimal, _Answer]] = {}

    async def __aenter__(self) -> Self:
        # The engine closes a connection that was idle for 30 seconds; one that is shorter never meets that.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=10)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        application = web.Application(client_max_size=MAX_REQUEST_BYTES)
        application.router.add_post("/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._runner.cleanup()
        await self._session.close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _handle(self, http: web.Request) -> web.Response:
        operation = http.headers.get("X-Amz-Target", "").rpartition(".")[2]
        request = _Request(operation, http.path_qs, http.headers.copy(), await http.read())
        if self.log_bodies:
            self.bodies.append((operation, request.decoded()))
        if self.only is not None and operation not in self.only:
            return _to_http(await self._forward(request))
        try:
            answer = await self._answer(request)
        except _AnswerLost:
            if http.transport is not None:
                http.transport.abort()
            return web.Response()
        if self.delay_s:
            self.served["delay_s"] += 1
            await asyncio.sleep(self.delay_s)
        return _to_http(answer)

    async def _answer(self, request: _Request) -> _Answer:
        if self._happens("reset_before", self.reset_before):
            raise _AnswerLost
        if self._happens("error_500", self.error_500):
            return _error(500, "InternalServerError", "the proxy failed this request")
        if self._happens("throttle", self.throttle):
            return _error(400, "ProvisionedThroughputExceededException", "the proxy throttled this request")
        match request.operation:
            case "BatchExecuteStatement":
                answer = await self._execute_statements(request)
            case "BatchWriteItem" | "BatchGetItem":
                answer = await self._process_batch(request)
            case "Query":
                answer = await self._query(request)
            case _:
                answer = await self._forward(request)
        if self._happens("reset_after", self.reset_after):
            raise _AnswerLost
        return answer

    def _happens(self, name: str, probability: float) -> bool:
        happens = self._chance.random() < probability
        if happens:
            self.served[name] += 1
        return happens

    async def _forward(self, request: _Request) -> _Answer:
        self.requests[request.operation] += 1
        headers = CIMultiDict(request.headers)
        for name in OF_ONE_CONNECTION:
            headers.popall(name, None)
        headers["Accept-Encoding"] = "identity"
        url = self._engine_endpoint + request.path
        async with self._session.post(
            url, data=request.body, headers=headers, skip_auto_headers=("Accept", "Content-Type", "User-Agent")
        ) as answer:
            return _Answer(answer.status, answer.headers.copy(), await answer.read())

    async def _execute_statements(self, request: _Request) -> _Answer:
        body = request.decoded()
        statements = body.get("Statements", [])
        withheld = [self._chance.random() < self.throttle_statements for _ in statements]
        if not any(withheld):
            return await self._forward(request)
        rest = [statement for statement, is_withheld in zip(statements, withheld, strict=True) if not is_withheld]
        answer = await self._forward_rest(request, {**body, "Statements": rest}, bool(rest), {"Responses": []})
        if answer.status != 200:
            return answer
        self.served["throttle_statements"] += sum(withheld)
        told = answer.decoded()
        responses = iter(told["Responses"])
        told["Responses"] = [THROTTLED_STATEMENT if is_withheld else next(responses) for is_withheld in withheld]
        return _with_body(answer, told)

    async def _process_batch(self, request: _Request) -> _Answer:
        body = request.decoded()
        tables = body.get("RequestItems", {})
        rest, withheld = self._split({name: _entries(table) for name, table in tables.items()})
        if not withheld:
            return await self._forward(request)
        rest_tables = {name: _with_entries(tables[name], entries) for name, entries in rest.items()}
        nothing: Body = {} if request.operation == "BatchWriteItem" else {"Responses": {}}
        answer = await self._forward_rest(request, {**body, "RequestItems": rest_tables}, bool(rest), nothing)
        if answer.status != 200:
            return answer
        self.served["unprocessed"] += sum(map(len, withheld.values()))
        told = answer.decoded()
        left = told.setdefault("UnprocessedItems" if request.operation == "BatchWriteItem" else "UnprocessedKeys", {})
        for name, entries in withheld.items():
            left[name] = _with_entries(tables[name], [*_entries(left.get(name, [])), *entries])
        return _with_body(answer, told)

    def _split(self, tables: dict[str, list[object]]) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
        """What to forward and what to withhold, without tables that have nothing of it."""
        rest: dict[str, list[object]] = {}
        withheld: dict[str, list[object]] = {}
        for name, entries in tables.items():
            for entry in entries:
                (withheld if self._chance.random() < self.unprocessed else rest).setdefault(name, []).append(entry)
        return rest, withheld

    async def _forward_rest(self, request: _Request, body: Body, is_any: bool, nothing: Body) -> _Answer:
        """An engine refuses a batch of nothing, so `nothing` is answered for it."""
        if not is_any:
            return _to_answer(200, nothing)
        return await self._forward(msgspec.structs.replace(request, body=json.dumps(body).encode()))

    async def _query(self, request: _Request) -> _Answer:
        """Of all queries that differ at most in a numeric upper bound, such as now, each gets what the one before should have.

        Unless that one looked further: no index, however late, tells what it was not asked.
        """
        newest = await self._forward(request)
        body = request.decoded()
        if "IndexName" not in body or newest.status != 200:
            return newest
        bound = _take_upper_bound(body)
        kind = json.dumps(body, sort_keys=True)
        older_bound, older = self._older.get(kind, (bound, newest))
        self._older[kind] = bound, newest
        if not self.stale or older_bound > bound or _page(older) == _page(newest):
            return newest
        self.served["stale"] += 1
        return older


def _take_upper_bound(query: Body) -> Decimal:
    """Removes it from the query. Infinite if there is none."""
    for name in UPPER_BOUND.findall(query.get("KeyConditionExpression", "")):
        value = query["ExpressionAttributeValues"][name]
        if "N" in value:
            del query["ExpressionAttributeValues"][name]
            return Decimal(value["N"])
    return Decimal("Infinity")


def _page(answer: _Answer) -> tuple[object, ...]:
    told = answer.decoded()
    return told.get("Items"), told.get("Count"), told.get("LastEvaluatedKey")


def _entries(table: BatchOfTable) -> list[object]:
    """The requests of a BatchWriteItem, or the keys of a BatchGetItem."""
    return table["Keys"] if isinstance(table, dict) else table


def _with_entries(table: BatchOfTable, entries: list[object]) -> BatchOfTable:
    return {**table, "Keys": entries} if isinstance(table, dict) else entries


def _error(status: int, name: str, message: str) -> _Answer:
    return _to_answer(status, {"__type": ERROR_TYPES + name, "message": message})


def _to_answer(status: int, body: Body) -> _Answer:
    headers = CIMultiDict({"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": "PROXY"})
    return _with_body(_Answer(status, headers, b""), body)


def _with_body(answer: _Answer, body: Body) -> _Answer:
    """With a checksum that fits: clients compare."""
    encoded = json.dumps(body).encode()
    headers = CIMultiDict(answer.headers)
    headers["x-amz-crc32"] = str(zlib.crc32(encoded))
    return _Answer(answer.status, headers, encoded)


def _to_http(answer: _Answer) -> web.Response:
    headers = CIMultiDict(answer.headers)
    for name in OF_ONE_CONNECTION:
        headers.popall(name, None)
    return web.Response(status=answer.status, headers=headers, body=answer.body)
