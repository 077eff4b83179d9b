"""What a measurement of a table on DynamoDB may read, and what it says then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tickler.clock import ManualClock
from tickler.dynamo.client import Client
from tickler.table.engines.dynamodb import DynamodbEngine
from tickler.table.engines.dynamodb.measure import SEGMENTS
from tickler.table.measurement import Fill, Measurement, Partition, largest_of
from tickler.table.open_table import OpenTable
from tickler.testing.table_fixtures import NOW, TABLE, Customer, order


@pytest.fixture
async def large(dynamodb_client: Client, dynamodb_table: str) -> DynamodbEngine:
    """900 items: 600 customers, each alone in its partition, and 300 orders of one customer, of which 30 are pending."""
    engine = DynamodbEngine(TABLE, dynamodb_client, dynamodb_table, owned=False)
    await engine.open(create=True)
    db = OpenTable(TABLE, engine, ManualClock(NOW), create=True)
    await db.put_many([Customer(id=f"x{n:04}", name="Ada") for n in range(600)])
    await db.put_many([order(n, status="shipped" if n >= 30 else "pending") for n in range(300)])
    return engine


@pytest.fixture
def read(large: DynamodbEngine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A function that returns how many items scans have read so far."""
    connection, scanned = large._connection, [0]
    call = connection.call

    async def counting(operation: str, request: dict[str, object], decode: Any, **options: Any) -> Any:
        answer = await call(operation, request, decode, **options)
        if operation == "Scan":
            scanned[0] += int(answer["ScannedCount"])
        return answer

    monkeypatch.setattr(connection, "call", counting)
    return lambda: scanned[0]


async def test_on_dynamodb_a_sample_bounds_what_is_read(large: DynamodbEngine, read: Callable[[], int]) -> None:
    found = await large.measure(now_ms=0, sample=80)
    assert read() <= (80 + SEGMENTS) * (1 + len(TABLE.gsis))
    assert not found.exact
    assert not found.table.exact
    assert found.table.total == pytest.approx(900, rel=0.05), "scaled up to what DescribeTable says"
    assert set(found.table.items) <= {"Customer", "Order"}
    assert found.indexes["gsi1"] == Fill({"Order": 30}, Partition("PENDING", 30)), "a sparse index is read to its end"


async def test_on_dynamodb_everything_is_read_only_when_asked(large: DynamodbEngine, read: Callable[[], int]) -> None:
    found = await large.measure(now_ms=0, sample=None)
    assert read() >= 930
    assert found.exact
    assert found.table == Fill({"Customer": 600, "Order": 300}, Partition("CUSTOMER#c1", 300))


async def test_a_table_that_is_smaller_than_the_sample_is_counted_exactly(large: DynamodbEngine) -> None:
    found = await large.measure(now_ms=0, sample=100_000)
    assert found.exact
    assert found.table.items == {"Customer": 600, "Order": 300}


def test_of_equally_large_partitions_the_first_is_named() -> None:
    assert largest_of([("b", 2), ("a", 2), ("c", 1)]) == Partition("a", 2)
    assert largest_of([]) is None


def test_one_estimate_makes_a_measurement_inexact() -> None:
    assert Measurement(Fill({}), {"gsi1": Fill({})}, {}).exact
    assert not Measurement(Fill({}), {"gsi1": Fill({}, exact=False)}, {}).exact
