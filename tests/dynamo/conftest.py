"""A table on a real engine behind a proxy that does the faults, a service that answers what it is told, and no waiting."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from dynamo.pauses import Pauses
from dynamo.scripted_service import ScriptedService
from dynamodb_proxy import FaultProxy
from tickler.dynamo import Address, Client

_numbers = itertools.count()


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment in which AWS's tools find nothing: no keys, no files, no metadata service."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


@pytest.fixture
def aws(no_aws: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing but a key."""
    no_aws.setenv("AWS_ACCESS_KEY_ID", "FIRSTKEY")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "first secret")
    return no_aws


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
    """Asks the engine through the proxy, and repeats without waiting."""
    client = Client(Address(region="eu-west-1", endpoint=proxy.endpoint, attempts=4))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
async def direct(dynamodb_endpoint: str) -> AsyncIterator[Client]:
    """Asks the engine itself: what is there, whatever the proxy does."""
    client = Client(Address(region="eu-west-1", endpoint=dynamodb_endpoint))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
async def table(direct: Client) -> AsyncIterator[str]:
    """An empty one, keyed by the text `pk`."""
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
