"""The proxy does each fault that it says it does, and nothing else."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import aiohttp
import pytest

from dynamodb_proxy import FaultProxy
from dynamodb_server import DynamodbServer

HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=any/20300101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
}
Json = dict[str, Any]

_numbers = itertools.count()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        yield session


@pytest.fixture
async def proxy(dynamodb_server: DynamodbServer, seed: int) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(dynamodb_server.endpoint, Random(seed)) as proxy:
        yield proxy


class Client:
    """Asks the engine directly, or the proxy, about a table of its own."""

    def __init__(self, session: aiohttp.ClientSession, engine: str, proxy: str) -> None:
        self.table = f"proxied_{os.getpid()}_{next(_numbers)}"
        self._session = session
        self._engine = engine
        self._proxy = proxy

    async def ask_at(self, endpoint: str, operation: str, body: Json) -> tuple[int, bytes, str | None]:
        """The status, the body and its checksum."""
        target = {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        async with self._session.post(endpoint, json=body, headers=target) as answer:
            return answer.status, await answer.read(), answer.headers.get("x-amz-crc32")

    async def ask(self, operation: str, body: Json) -> tuple[int, Json]:
        status, told, checksum = await self.ask_at(self._proxy, operation, body)
        assert checksum in (None, str(zlib.crc32(told)))
        return status, json.loads(told)

    async def ask_engine(self, operation: str, body: Json) -> Json:
        status, told, _ = await self.ask_at(self._engine, operation, body)
        assert status == 200, told
        decoded: Json = json.loads(told)
        return decoded

    def put(self, key: str, at: int = 0) -> Json:
        return {"TableName": self.table, "Item": item(key, at)}

    async def keys(self) -> set[str]:
        """Of what the engine really has."""
        told = await self.ask_engine("Scan", {"TableName": self.table, "ConsistentRead": True})
        return {found["pk"]["S"] for found in told["Items"]}

    async def query_due(self, now: int, **more: object) -> list[str]:
        query = {
            "TableName": self.table,
            "IndexName": "due",
            "KeyConditionExpression": "due = :due AND #at <= :now",
            "ExpressionAttributeNames": {"#at": "at"},
            "ExpressionAttributeValues": {":due": {"S": "yes"}, ":now": {"N": str(now)}},
        }
        status, told = await self.ask("Query", {**query, **more})
        assert status == 200, told
        return [found["pk"]["S"] for found in told["Items"]]


def item(key: str, at: int = 0) -> Json:
    return {"pk": {"S": key}, "due": {"S": "yes"}, "at": {"N": str(at)}}


@pytest.fixture
async def client(session: aiohttp.ClientSession, dynamodb_server: DynamodbServer, proxy: FaultProxy) -> AsyncIterator[Client]:
    client = Client(session, dynamodb_server.endpoint, proxy.endpoint)
    types = {"pk": "S", "due": "S", "at": "N"}
    due = [{"AttributeName": "due", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}]
    await client.ask_engine(
        "CreateTable",
        {
            "TableName": client.table,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "GlobalSecondaryIndexes": [{"IndexName": "due", "KeySchema": due, "Projection": {"ProjectionType": "ALL"}}],
        },
    )
    yield client
    await client.ask_engine("DeleteTable", {"TableName": client.table})


async def test_without_faults_answers_and_refusals_pass_through_byte_by_byte(
    client: Client, proxy: FaultProxy, dynamodb_server: DynamodbServer
) -> None:
    assert (await client.ask("PutItem", client.put("a")))[0] == 200
    for body in (
        {"TableName": client.table, "Key": {"pk": {"S": "a"}}},
        {"TableName": "no_such_table", "Key": {"pk": {"S": "a"}}},
    ):
        direct = await client.ask_at(dynamodb_server.endpoint, "GetItem", body)
        assert await client.ask_at(proxy.endpoint, "GetItem", body) == direct
    assert proxy.requests == {"PutItem": 1, "GetItem": 2}
    assert not proxy.served


async def test_a_throttled_request_is_refused_and_not_done(client: Client, proxy: FaultProxy) -> None:
    proxy.throttle = 1.0
    status, told = await client.ask("PutItem", client.put("a"))
    assert (status, told["__type"]) == (400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException")
    assert await client.keys() == set()
    assert proxy.served == {"throttle": 1}
    assert not proxy.requests


async def test_a_failed_request_is_not_done(client: Client, proxy: FaultProxy) -> None:
    proxy.error_500 = 1.0
    status, told = await client.ask("PutItem", client.put("a"))
    assert (status, told["__type"]) == (500, "com.amazonaws.dynamodb.v20120810#InternalServerError")
    assert await client.keys() == set()
    assert proxy.served == {"error_500": 1}


async def test_a_request_that_is_reset_before_is_not_done(client: Client, proxy: FaultProxy) -> None:
    proxy.reset_before = 1.0
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.ask("PutItem", client.put("a"))
    assert await client.keys() == set()
    assert proxy.served == {"reset_before": 1}
    assert not proxy.requests


async def test_a_request_that_is_reset_after_is_done_without_an_answer(client: Client, proxy: FaultProxy) -> None:
    proxy.reset_after = 1.0
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.ask("PutItem", client.put("a"))
    assert await client.keys() == {"a"}
    assert proxy.served == {"reset_after": 1}
    assert proxy.requests == {"PutItem": 1}


async def test_a_probability_hits_some_requests_and_not_others(client: Client, proxy: FaultProxy) -> None:
    proxy.throttle = 0.5
    statuses = Counter([(await client.ask("PutItem", client.put(f"k{n}")))[0] for n in range(40)])
    assert set(statuses) == {200, 400}
    assert statuses[400] == proxy.served["throttle"]
    assert len(await client.keys()) == statuses[200] == proxy.requests["PutItem"]


@pytest.mark.parametrize("fraction", [0.5, 1.0])
async def test_throttled_statements_are_told_at_their_places_and_not_done(
    client: Client, proxy: FaultProxy, fraction: float
) -> None:
    proxy.throttle_statements = fraction
    keys = [f"k{n}" for n in range(20)]
    statement = f"INSERT INTO \"{client.table}\" VALUE {{'pk': ?}}"
    statements = [{"Statement": statement, "Parameters": [{"S": key}]} for key in keys]
    status, told = await client.ask("BatchExecuteStatement", {"Statements": statements})
    assert status == 200
    throttled = {key for key, response in zip(keys, told["Responses"], strict=True) if "Error" in response}
    assert await client.keys() == set(keys) - throttled
    assert proxy.served == {"throttle_statements": len(throttled)}
    assert {response["Error"]["Code"] for response in told["Responses"] if "Error" in response} == {"ThrottlingError"}
    assert (0 < len(throttled) < 20) if fraction < 1 else len(throttled) == 20


async def test_errors_of_the_engine_stay_at_their_places_among_throttled_statements(client: Client, proxy: FaultProxy) -> None:
    await client.ask("PutItem", client.put("k1"))
    proxy.throttle_statements = 0.5
    statement = f"INSERT INTO \"{client.table}\" VALUE {{'pk': ?}}"
    statements = [{"Statement": statement, "Parameters": [{"S": f"k{n}"}]} for n in range(2)]
    seen = set()
    for _ in range(20):
        told = (await client.ask("BatchExecuteStatement", {"Statements": statements}))[1]
        seen.add(told["Responses"][1]["Error"]["Code"])
    assert seen == {"ThrottlingError", "DuplicateItem"}


@pytest.mark.parametrize("fraction", [0.5, 1.0])
async def test_unprocessed_writes_are_returned_and_not_done(client: Client, proxy: FaultProxy, fraction: float) -> None:
    proxy.unprocessed = fraction
    keys = {f"k{n}" for n in range(20)}
    writes = [{"PutRequest": {"Item": item(key)}} for key in sorted(keys)]
    status, told = await client.ask("BatchWriteItem", {"RequestItems": {client.table: writes}})
    assert status == 200
    left = {write["PutRequest"]["Item"]["pk"]["S"] for write in told["UnprocessedItems"][client.table]}
    assert await client.keys() == keys - left
    assert proxy.served == {"unprocessed": len(left)}
    assert (0 < len(left) < 20) if fraction < 1 else left == keys


@pytest.mark.parametrize("fraction", [0.5, 1.0])
async def test_unprocessed_keys_are_returned_with_how_they_were_asked_for(
    client: Client, proxy: FaultProxy, fraction: float
) -> None:
    keys = {f"k{n}" for n in range(20)}
    for key in keys:
        await client.ask("PutItem", client.put(key))
    proxy.unprocessed = fraction
    asked = {"Keys": [{"pk": {"S": key}} for key in sorted(keys)], "ConsistentRead": True, "ProjectionExpression": "pk"}
    status, told = await client.ask("BatchGetItem", {"RequestItems": {client.table: asked}})
    assert status == 200
    unprocessed = told["UnprocessedKeys"][client.table]
    left = {key["pk"]["S"] for key in unprocessed.pop("Keys")}
    assert unprocessed == {"ConsistentRead": True, "ProjectionExpression": "pk"}
    assert {found["pk"]["S"] for found in told["Responses"].get(client.table, [])} == keys - left
    assert proxy.served == {"unprocessed": len(left)}
    assert (0 < len(left) < 20) if fraction < 1 else left == keys


async def test_a_stale_index_tells_what_it_should_have_told_the_time_before(client: Client, proxy: FaultProxy) -> None:
    proxy.stale = True
    assert await client.query_due(now=10) == []
    await client.ask("PutItem", client.put("a", at=5))
    assert await client.query_due(now=11) == []
    assert proxy.served == {"stale": 1}
    assert await client.query_due(now=12) == ["a"]
    assert proxy.served == {"stale": 1}
    await client.ask("DeleteItem", {"TableName": client.table, "Key": {"pk": {"S": "a"}}})
    assert await client.query_due(now=13) == ["a"]
    assert proxy.served == {"stale": 2}
    assert await client.query_due(now=14) == []
    assert proxy.requests["Query"] == 5


async def test_a_stale_index_answers_no_other_question_than_it_was_asked(client: Client, proxy: FaultProxy) -> None:
    proxy.stale = True
    for number in range(4):
        await client.ask("PutItem", client.put(f"k{number}", at=number))
    assert await client.query_due(now=3) == ["k0", "k1", "k2", "k3"]
    assert await client.query_due(now=1) == ["k0", "k1"]
    assert await client.query_due(now=3, Limit=3) == ["k0", "k1", "k2"]
    assert await client.query_due(now=3, ScanIndexForward=False) == ["k3", "k2", "k1", "k0"]
    assert await client.query_due(now=3, ExclusiveStartKey=item("k1", 1)) == ["k2", "k3"]
    assert not proxy.served


async def test_reads_of_the_table_are_never_stale(client: Client, proxy: FaultProxy) -> None:
    proxy.stale = True
    query = {"TableName": client.table, "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "a"}}}
    assert (await client.ask("Query", query))[1]["Count"] == 0
    await client.ask("PutItem", client.put("a"))
    assert (await client.ask("Query", query))[1]["Count"] == 1
    assert not proxy.served


async def test_a_delayed_request_is_done_before_its_answer_comes(client: Client, proxy: FaultProxy) -> None:
    proxy.delay_s = 0.3
    began = time.monotonic()
    answer = asyncio.create_task(client.ask("PutItem", client.put("a")))
    while not await client.keys():
        assert not answer.done()
    assert (await answer)[0] == 200
    assert time.monotonic() - began >= 0.3
    assert proxy.served == {"delay_s": 1}


async def test_faults_happen_only_to_the_operations_named(client: Client, proxy: FaultProxy) -> None:
    proxy.throttle = 1.0
    proxy.only = {"DeleteItem"}
    assert (await client.ask("PutItem", client.put("a")))[0] == 200
    assert (await client.ask("DeleteItem", {"TableName": client.table, "Key": {"pk": {"S": "a"}}}))[0] == 400
    assert await client.keys() == {"a"}
    assert proxy.served == {"throttle": 1}


async def test_what_was_asked_can_be_looked_at(client: Client, proxy: FaultProxy) -> None:
    await client.ask("PutItem", client.put("before"))
    proxy.log_bodies = True
    await client.ask("PutItem", client.put("a", at=7))
    assert proxy.bodies == [("PutItem", {"TableName": client.table, "Item": item("a", 7)})]


async def test_several_processes_talk_through_it_at_once(client: Client, proxy: FaultProxy) -> None:
    proxy.reset_after = 0.1
    program = """if True:
        import http.client, json, sys
        port, table, me, headers = int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        lost = 0
        for number in range(50):
            body = {"TableName": table, "Item": {"pk": {"S": f"{me}-{number}"}}}
            try:
                connection.request("POST", "/", json.dumps(body), {**headers, "X-Amz-Target": "DynamoDB_20120810.PutItem"})
                answer = connection.getresponse()
                assert answer.status == 200, answer.read()
                answer.read()
            except (http.client.HTTPException, OSError):
                connection.close()
                lost += 1
        print(lost)
    """
    port = proxy.endpoint.rpartition(":")[2]
    headers = json.dumps(HEADERS)
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, port, client.table, str(me), headers, stdout=asyncio.subprocess.PIPE
        )
        for me in range(3)
    ]
    outputs = [(await process.communicate())[0] for process in processes]
    assert sum(map(int, outputs)) == proxy.served["reset_after"] > 0
    assert len(await client.keys()) == proxy.requests["PutItem"] == 150
