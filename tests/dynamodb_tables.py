"""Stores on tables of their own, for tests that look at what is in them."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from contextlib import suppress

from tickler.aws.address import Address
from tickler.dynamo.batches import Outcome
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed, RequestRefused
from tickler.dynamo.statements import Statement
from tickler.model.schedule import Id
from tickler.stores.dynamodb import DynamodbStore, layout

_numbers = itertools.count()


class Tables:
    """Stores on tables of their own, closed and dropped after the test."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._open: list[DynamodbStore] = []

    def new_name(self) -> str:
        return f"dynamo_{os.getpid()}_{next(_numbers)}"

    async def open(
        self,
        name: str | None = None,
        *,
        endpoint: str | None = None,
        region: str = "eu-west-1",
        shards: int | None = None,
        refresh_ms: int = 10_000,
        attempts: int = 10,
        create: bool = True,
    ) -> DynamodbStore:
        table = name or self.new_name()
        address = Address(region=region, endpoint=endpoint or self.endpoint, attempts=attempts)
        store = DynamodbStore(table, address, label=f"dynamodb://{table}", shards=shards, refresh_ms=refresh_ms)
        await store.open(create=create)
        self._open.append(store)
        return store

    async def close(self) -> None:
        client = Client(Address(region="eu-west-1", endpoint=self.endpoint))
        await client.open()
        for name in {store.table_name for store in self._open}:
            with suppress(RequestRefused):
                await client.call("DeleteTable", {"TableName": name})
        await client.close()
        for store in self._open:
            await store.close()


async def items(store: DynamodbStore) -> list[Item]:
    found: list[Item] = (await store.client.call("Scan", {"TableName": store.table_name, "ConsistentRead": True}))["Items"]
    return found


async def head(store: DynamodbStore, owner: str, key: str) -> Item:
    key_ = layout.head_key(Id(owner, key))
    found: Item = (await store.client.call("GetItem", {"TableName": store.table_name, "Key": key_, "ConsistentRead": True}))[
        "Item"
    ]
    return found


async def execute_one_by_one(client: Client, statements: Sequence[Statement]) -> list[Outcome | Exception]:
    """What `execute_many` does, in the form for which DynamoDB Local reports what it costs."""
    outcomes: list[Outcome | Exception] = []
    for statement in statements:
        operation, request = as_item_request(statement)
        old = {"ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            answer = await client.call(operation, {**request, **old})
        except ConditionFailed as failed:
            outcomes.append(Outcome(failed.code, failed.item))
        else:
            outcomes.append(Outcome(None, answer.get("Attributes")))
    return outcomes


def as_item_request(statement: Statement) -> tuple[str, dict[str, object]]:
    """The operation on one item, and the request, that a statement stands for."""
    parameters = iter(statement.parameters)
    text, _, where = statement.text.partition(" WHERE ")
    table = text.split('"')[1]
    if text.startswith("INSERT"):
        item = {name: next(parameters) for name in re.findall(r"'(\w+)': \?", text)}
        return "PutItem", {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
    values = {f":set_{name}": next(parameters) for name in re.findall(r'SET "(\w+)" = \?', text)}
    conditions = {name: next(parameters) for name in re.findall(r'"(\w+)" = \?', where)}
    key = {name: conditions.pop(name) for name in ("pk", "sk")}
    holds = [f"{name} = :if_{name}" for name in conditions]
    holds += [f"attribute_not_exists({name})" for name in re.findall(r'"(\w+)" IS MISSING', where)]
    values |= {f":if_{name}": value for name, value in conditions.items()}
    request: dict[str, object] = {"TableName": table, "Key": key, "ExpressionAttributeValues": values}
    request["ConditionExpression"] = " AND ".join(holds)
    if text.startswith("DELETE"):
        return "DeleteItem", request
    removes = re.findall(r'REMOVE "(\w+)"', text)
    sets = ", ".join(f"{name[5:]} = {name}" for name in values if name.startswith(":set_"))
    expression = " ".join([*([f"SET {sets}"] if sets else []), *([f"REMOVE {', '.join(removes)}"] if removes else [])])
    return "UpdateItem", {**request, "UpdateExpression": expression}
