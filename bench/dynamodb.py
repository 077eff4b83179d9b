"""DynamoDB: processor time of a request, compared with boto3 and aiobotocore, and the capacity units of a claim."""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiobotocore.session
import boto3
from msgspec.structs import replace

from measure import PAIRS, Result, Stopwatch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from dynamodb_server import DynamodbServer
from tickler.aws.address import Address
from tickler.dynamo.batches import write_many
from tickler.dynamo.client import Client
from tickler.stores.dynamodb import DynamodbStore, layout
from workload import NOW_MS, due_rows

REGION = "eu-west-1"
ROUNDS = 40  # requests of each kind per measurement
DUE = 1000
ASLEEP = 5000
HOUR_MS = 3_600_000

ROWS = [replace(row, owner="bench", key=f"k{n}") for n, row in enumerate(due_rows(25))]


class Cost(NamedTuple):
    requests: int
    read_units: float
    seconds: float


Requests = Callable[[], Awaitable[None]]  # one of each kind

_numbers = itertools.count()


async def run(say: Callable[[str], None]) -> list[Result]:
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_EC2_METADATA_DISABLED": "true"}
    with DynamodbServer() as server:
        say(f"DynamoDB: a client's time on this machine, on {server.engine}")
        results = await client_time(server.endpoint)
        say(f"DynamoDB: {DUE:,} due rows beside {ASLEEP:,} that sleep")
        return [*results, *await claims(server.endpoint)]


async def client_time(endpoint: str) -> list[Result]:
    """Measure processor time per request: a query of 25 rows, a conditional update, and a batch of 25 statements."""
    store = await _store(endpoint)
    await store.index.upsert_many(ROWS)
    boto = boto3.client("dynamodb", region_name=REGION, endpoint_url=endpoint)
    async with aiobotocore.session.get_session().create_client("dynamodb", region_name=REGION, endpoint_url=endpoint) as aio:
        measured = {
            "ours": _ours(store.client, store.table_name),
            "boto3": _called(boto, store.table_name),
            "aiobotocore": _called(aio, store.table_name),
        }
        seconds: dict[str, list[float]] = {name: [] for name in measured}
        for requests in measured.values():
            await requests()  # warm up
        for _ in range(PAIRS):
            for name, requests in measured.items():
                began = time.process_time()
                for _ in range(ROUNDS):
                    await requests()
                seconds[name].append((time.process_time() - began) / ROUNDS / 3)
    await store.close()
    ours = statistics.median(seconds["ours"])
    results = []
    for peer, target in (("boto3", 3.0), ("aiobotocore", 0.0)):
        theirs = statistics.median(seconds[peer])
        shown = (f"{ours * 1e6:,.0f} µs", f"{theirs * 1e6:,.0f} µs")
        results.append(Result("DynamoDB: processor time a request", *shown, peer, theirs / ours, target))
    return results


async def claims(endpoint: str) -> list[Result]:
    few, unused = await _claim(endpoint, asleep=100)
    await unused.close()
    many, store = await _claim(endpoint, asleep=ASLEEP)
    with Stopwatch() as raw:
        await _one_by_one(store)
    await store.close()
    return [
        Result("DynamoDB: requests a claimed row", f"{many.requests:,}", f"{DUE:,}", "rows claimed",
               many.requests / DUE, 0.06, at_most=True),
        Result("DynamoDB: read units of a claim", f"{many.read_units:g}", f"{few.read_units:g}",
               f"with {ASLEEP:,} asleep to 100", many.read_units / few.read_units, 1.0, at_most=True),
        Result("DynamoDB: claims", f"{DUE / many.seconds:,.0f}/s", f"{DUE / raw.seconds:,.0f}/s",
               "one UpdateItem a row, one after the other", raw.seconds / many.seconds, 0.0),
    ]  # fmt: skip


async def _claim(endpoint: str, asleep: int) -> tuple[Cost, DynamodbStore]:
    """Measure one claim of all due rows among many sleeping ones."""
    store = await _store(endpoint)
    later = 1000 * HOUR_MS
    sleeping = [replace(row, owner=f"asleep-{row.owner}", next_fire_at=row.next_fire_at + later) for row in due_rows(asleep)]
    puts = [{"PutRequest": {"Item": layout.row_head(row, REGION, 16)}} for row in sleeping]
    await write_many(store.client, store.table_name, puts)
    await store.index.upsert_many(due_rows(DUE))
    usage = store.client.usage
    requests, read_units = usage.requests.total(), usage.read_units
    with Stopwatch() as watch:
        assert len(await store.index.claim_due(NOW_MS, DUE)) == DUE
    return Cost(usage.requests.total() - requests, usage.read_units - read_units, watch.seconds), store


async def _store(endpoint: str) -> DynamodbStore:
    table = f"bench_{next(_numbers)}"
    store = DynamodbStore(table, Address(region=REGION, endpoint=endpoint), label=f"dynamodb://{table}")
    await store.open(create=True)
    return store


async def _one_by_one(store: DynamodbStore) -> None:
    page = await store.client.call("Scan", {"TableName": store.table_name})
    for item in page["Items"][:DUE]:
        if "due_shard" in item:
            await store.client.call("UpdateItem", _update(store.table_name, item))


def _update(table: str, item: Any) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"pk": item["pk"], "sk": item["sk"]},
        "UpdateExpression": "SET next_fire_at = :next",
        "ConditionExpression": "next_fire_at = :seen",
        "ExpressionAttributeValues": {":next": item["next_fire_at"], ":seen": item["next_fire_at"]},
        "ReturnValues": "ALL_OLD",
    }


def _requests(table: str) -> list[tuple[str, dict[str, Any]]]:
    heads = [layout.row_head(row, REGION, 16) for row in ROWS]
    query = {
        "TableName": table,
        "KeyConditionExpression": "pk = :owner",
        "ExpressionAttributeValues": {":owner": heads[0]["pk"]},
        "Limit": 25,
    }
    update = f'UPDATE "{table}" SET "tz" = ? WHERE "pk" = ? AND "sk" = ? AND "tz" = ?'
    statements = [{"Statement": update, "Parameters": [head["tz"], head["pk"], head["sk"], head["tz"]]} for head in heads]
    return [("Query", query), ("UpdateItem", _update(table, heads[0])), ("BatchExecuteStatement", {"Statements": statements})]


def _ours(client: Client, table: str) -> Requests:
    asked = _requests(table)

    async def requests() -> None:
        for operation, body in asked:
            await client.call(operation, body)

    return requests


def _called(client: Any, table: str) -> Requests:
    """Call boto3 or aiobotocore, whose methods have snake-case names and, in the latter, are awaited."""
    names = {"Query": "query", "UpdateItem": "update_item", "BatchExecuteStatement": "batch_execute_statement"}
    asked = [(getattr(client, names[operation]), body) for operation, body in _requests(table)]

    async def requests() -> None:
        for method, body in asked:
            answer = method(**body)
            if hasattr(answer, "__await__"):
                await answer

    return requests
