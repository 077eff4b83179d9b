"""Metadata on DynamoDB where a connection is lost, or a process ends, in the middle of a write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from table.goods import goods

from dynamo.conftest import pauses
from dynamo.pauses import Pauses
from dynamodb_proxy import FaultProxy
from tickler.aws.address import Address
from tickler.dynamo.client import Client
from tickler.errors import StoreUnavailable
from tickler.table.definition import METADATA_PARTITION
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.dynamodb.metadata import DynamodbMetadata
from tickler.table.engines.metadata import Entry, EntryWrite

__all__ = ["pauses"]

LARGE = b"large" * 100_000  # in two parts


@pytest.fixture
async def proxy(dynamodb_endpoint: str, seed: int) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(dynamodb_endpoint, Random(seed)) as proxy:
        yield proxy


@pytest.fixture
async def metadata(proxy: FaultProxy, pauses: Pauses, dynamodb_table: str) -> AsyncIterator[DynamodbMetadata]:
    engine = DynamodbEngine(goods, Client(Address(region="eu-west-1", endpoint=proxy.endpoint)), dynamodb_table)
    await engine.open(create=True)
    yield engine.metadata
    await engine.close()


@pytest.fixture
def lose_one_response(proxy: FaultProxy, pauses: Pauses) -> Any:
    def lose(operation: str) -> None:
        proxy.only, proxy.reset_after = {operation}, 1.0
        pauses.during(len(pauses.attempts) + 1, lambda: setattr(proxy, "reset_after", 0.0))

    return lose


@pytest.mark.parametrize(("value", "operation"), [(b"small", "UpdateItem"), (LARGE, "TransactWriteItems")])
@pytest.mark.parametrize("expected", [0, 1])
async def test_a_write_whose_response_was_lost_has_happened_once(
    value: bytes, operation: str, expected: int, metadata: DynamodbMetadata, lose_one_response: Any, proxy: FaultProxy
) -> None:
    if expected:
        await metadata.write([EntryWrite("a", b"first")])
    lose_one_response(operation)
    assert await metadata.write([EntryWrite("a", value, expected=expected)]) == [True]
    assert proxy.served["reset_after"] == 1
    assert await metadata.read("a") == [Entry("a", expected + 1, value)]


async def test_a_delete_whose_response_was_lost_is_not_reported_as_somebody_elses(
    metadata: DynamodbMetadata, lose_one_response: Any
) -> None:
    await metadata.write([EntryWrite("a", b"first")])
    lose_one_response("DeleteItem")
    with pytest.raises(StoreUnavailable, match="it may have been done or not"):
        await metadata.write([EntryWrite("a", None, expected=1)])


async def test_a_delete_in_any_case_is_repeated_after_a_lost_response(metadata: DynamodbMetadata, lose_one_response: Any) -> None:
    await metadata.write([EntryWrite("a", b"first")])
    lose_one_response("DeleteItem")
    assert await metadata.write([EntryWrite("a", None)]) == [True]
    assert await metadata.read("a") == []


async def test_what_an_interrupted_delete_left_behind_is_not_part_of_a_new_value(
    metadata: DynamodbMetadata, dynamodb_client: Client, dynamodb_table: str
) -> None:
    await metadata.write([EntryWrite("a", LARGE)])
    head = {"pk": {"S": METADATA_PARTITION}, "sk": {"S": "a"}}
    await dynamodb_client.call("DeleteItem", {"TableName": dynamodb_table, "Key": head})
    assert await metadata.read("") == []
    await metadata.write([EntryWrite("a", b"small", expected=0)])
    assert await metadata.read("a") == [Entry("a", 1, b"small")]
    other = b"other" * 100_000
    await metadata.write([EntryWrite("a", other, expected=1)])
    assert await metadata.read("a") == [Entry("a", 2, other)]


async def test_a_value_of_which_a_part_is_missing_is_never_shown_as_whole(
    metadata: DynamodbMetadata, dynamodb_client: Client, dynamodb_table: str, monkeypatch: pytest.MonkeyPatch, pauses: Pauses
) -> None:
    monkeypatch.setattr("tickler.table.engines.dynamodb.metadata.pause", pauses.pause)
    await metadata.write([EntryWrite("a", LARGE)])
    part = {"pk": {"S": METADATA_PARTITION}, "sk": {"S": "a\x0101"}}
    await dynamodb_client.call("DeleteItem", {"TableName": dynamodb_table, "Key": part})
    with pytest.raises(StoreUnavailable, match="others wrote the metadata 'a' 10 times in a row"):
        await metadata.read("a")
    assert await metadata.read("a", keys_only=True) == [Entry("a", 1, b"")]
    assert await metadata.write([EntryWrite("a", b"small", expected=1)]) == [True]
    assert await metadata.read("a") == [Entry("a", 2, b"small")]
