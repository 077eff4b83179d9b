"""An application edits items of its table while they are claimed: each is claimed once, and no edit is lost."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest

from dynamodb_server import DynamodbServer
from npm_packages import node_modules
from tickler.dynamodb import DynamoIndex

REGION = "eu-west-1"
NOW_MS = 1_921_406_400_000  # 20 November 2030, 12:00 UTC
AN_HOUR_ON = NOW_MS + 3_600_000
CLAIMERS = 4
PACKAGES = ("@aws-sdk/client-dynamodb@3.1162.0", "@aws-sdk/lib-dynamodb@3.1162.0")

Edits = dict[str, int]  # by item, how often it was edited


@pytest.fixture(scope="module")
def boto(dynamodb_server: DynamodbServer) -> Any:
    return boto3.client("dynamodb", region_name=REGION, endpoint_url=dynamodb_server.endpoint)


@pytest.fixture
def table(boto: Any) -> Iterator[str]:
    name = f"edited-{os.getpid()}"
    keys = [{"AttributeName": "scheduleStatus", "KeyType": "HASH"}, {"AttributeName": "nextRunAt", "KeyType": "RANGE"}]
    types = {"productId": "S", "scheduleStatus": "S", "nextRunAt": "N"}
    boto.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": kind} for each, kind in types.items()],
        KeySchema=[{"AttributeName": "productId", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {"IndexName": "scheduleStatus-nextRunAt-index", "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}
        ],
    )
    yield name
    boto.delete_table(TableName=name)


def put_due(boto: Any, table: str, number: int) -> list[str]:
    products = [f"p{n:03}" for n in range(number)]
    for start in range(0, number, 25):
        items = [
            {
                "productId": {"S": product},
                "schedule": {"S": "0 * * * *"},
                "scheduleStatus": {"S": "active"},
                "nextRunAt": {"N": str(NOW_MS - 1000 * (start + place))},
            }
            for place, product in enumerate(products[start : start + 25])
        ]
        boto.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}} for item in items]})
    return products


async def claim_all(table: str, endpoint: str, number: int) -> Counter[str]:
    """Return what several claimers got, which claim until nothing is due, and then once more."""
    claimed: Counter[str] = Counter()

    async def claimer() -> None:
        async with DynamoIndex(table, key="productId", when="schedule", region=REGION, endpoint=endpoint) as index:
            while claimed.total() < number:
                claimed.update([due.item["productId"] for due in await index.claim_due(NOW_MS, limit=20)])
            claimed.update([due.item["productId"] for due in await index.claim_due(NOW_MS)])

    async with asyncio.timeout(120):
        await asyncio.gather(*(claimer() for _ in range(CLAIMERS)))
    return claimed


def check(boto: Any, table: str, products: list[str], claimed: Counter[str], edits: Edits) -> None:
    assert claimed == Counter(products)
    items = [item for page in boto.get_paginator("scan").paginate(TableName=table, ConsistentRead=True) for item in page["Items"]]
    assert {item["nextRunAt"]["N"] for item in items} == {str(AN_HOUR_ON)}
    assert {item["productId"]["S"]: int(item["edits"]["N"]) for item in items if "edits" in item} == edits


@contextmanager
def editing_in_javascript(endpoint: str, table: str, number: int, folder: Path) -> Iterator[Edits]:
    """Edit items with AWS's own client until this ends. The edits are known after that."""
    (folder / "node_modules").symlink_to(node_modules(*PACKAGES))
    program = folder / "edit_items.mjs"
    program.write_text(Path(__file__).with_name("edit_items.mjs").read_text(encoding="utf-8"), encoding="utf-8")
    edits: Edits = {}
    with subprocess.Popen(
        ["node", program, endpoint, REGION, table, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as editor:
        assert editor.stdout is not None
        try:
            assert editor.stdout.readline() == "editing\n"
            yield edits
            said, _ = editor.communicate(timeout=60)
            edits.update(json.loads(said))
        finally:
            editor.kill()


@contextmanager
def editing_in_python(boto: Any, table: str, number: int, seed: int) -> Iterator[Edits]:
    edits: Counter[str] = Counter()
    ended, random = threading.Event(), Random(seed)

    def edit() -> None:
        while not ended.is_set():
            product = f"p{random.randrange(number):03}"
            boto.update_item(
                TableName=table,
                Key={"productId": {"S": product}},
                UpdateExpression="SET title = :title ADD edits :one",
                ExpressionAttributeValues={":title": {"S": str(random.random())}, ":one": {"N": "1"}},
            )
            edits[product] += 1

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        yield edits
    finally:
        ended.set()
        editor.join()


async def test_items_are_claimed_once_while_they_are_edited(
    boto: Any, table: str, dynamodb_server: DynamodbServer, seed: int
) -> None:
    products = put_due(boto, table, 100)
    with editing_in_python(boto, table, 100, seed) as edits:
        claimed = await claim_all(table, dynamodb_server.endpoint, 100)
    check(boto, table, products, claimed, edits)


async def test_items_are_claimed_once_while_a_javascript_client_edits_them(
    boto: Any, table: str, dynamodb_server: DynamodbServer, soak: bool, tmp_path: Path
) -> None:
    if not soak:
        pytest.skip("the packages of npm are fetched by `make soak`")
    products = put_due(boto, table, 1_200)
    with editing_in_javascript(dynamodb_server.endpoint, table, 1_200, tmp_path) as edits:
        claimed = await claim_all(table, dynamodb_server.endpoint, 1_200)
    check(boto, table, products, claimed, edits)
    assert sum(edits.values()) > 100, "it did edit meanwhile"
