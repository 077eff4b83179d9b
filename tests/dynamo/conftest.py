"""A table on a real engine behind a proxy that injects faults, a scripted service, and pauses without waiting."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from random import Random

import pytest

from dynamo.pauses import Pauses
from dynamo.scripted_service import ScriptedService
from dynamodb_proxy import FaultProxy
from tickler.aws.address import Address
from tickler.dynamo.client import Client

_numbers = itertools.count()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    pauses = Pauses()
    monkeypatch.setattr("tickler.dynamo.client.pause", pauses.pause)
    monkeypatch.setattr("tickler.dynamo.batches.pause", pauses.pause)
    return pauses


@pytest.fixture
async def proxy(dynamodb_endpoint: str, seed: int) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(dynamodb_endpoint, Random(seed)) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: FaultProxy, pauses: Pauses) -> AsyncIterator[Client]:
    """A client that goes through the proxy, and retries without waiting."""
    client = Client(Address(region="eu-west-1", endpoint=proxy.endpoint, attempts=4))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
async def direct(dynamodb_endpoint: str) -> AsyncIterator[Client]:
    """A client that goes to the engine directly, whatever the proxy does."""
    client = Client(Address(region="eu-west-1", endpoint=dynamodb_endpoint))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
async def table(direct: Client) -> AsyncIterator[str]:
    """An empty table, keyed on the text `pk`."""
    name = f"wire_{os.getpid()}_{next(_numbers)}"
    await direct.call(
        "CreateTable",
        {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    yield name
    await direct.call("DeleteTable", {"TableName": name})


@pytest.fixture
async def service(aws: pytest.MonkeyPatch) -> AsyncIterator[ScriptedService]:
    async with ScriptedService() as service:
        yield service
