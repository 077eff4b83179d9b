"""A table on DynamoDB Local for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tickler.aws.address import Address
from tickler.dynamo.client import Client
from tickler.dynamo.failures import RequestRefused

_numbers = itertools.count()


@pytest.fixture
async def dynamodb_client(dynamodb_endpoint: str) -> AsyncIterator[Client]:
    client = Client(Address(region="eu-west-1", endpoint=dynamodb_endpoint))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
async def dynamodb_table(dynamodb_client: Client) -> AsyncIterator[str]:
    """The name of a table that is removed after the test."""
    name = f"table_{os.getpid()}_{next(_numbers)}"
    yield name
    with suppress(RequestRefused):
        await dynamodb_client.call("DeleteTable", {"TableName": name})
