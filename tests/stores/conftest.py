"""Shared by the tests of what only one store does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import pytest

from dynamodb_proxy import FaultProxy
from dynamodb_tables import Tables


@pytest.fixture
async def tables(dynamodb_endpoint: str) -> AsyncIterator[Tables]:
    tables = Tables(dynamodb_endpoint)
    yield tables
    await tables.close()


@pytest.fixture
async def proxy(dynamodb_endpoint: str, seed: int) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(dynamodb_endpoint, Random(seed)) as proxy:
        yield proxy
