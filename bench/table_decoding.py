"""Compares decoding a page of DynamoDB's items into entities with boto3's deserializer. Prints the ratio of processor time."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from boto3.dynamodb.types import TypeDeserializer

from tickler.table import Attr, Entity, Key, Table, attr
from tickler.table.engines.dynamodb.items import item_of
from tickler.table.engines.dynamodb.wire import EntityWire

ITEMS = 100
ROUNDS = 200

table = Table("bench")


class Order(Entity, table=table):
    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    status: Attr[str] = attr()
    placed_at: Attr[datetime] = attr()
    total: Attr[Decimal]
    count: Attr[int] = attr(default=0)
    paid: Attr[bool] = attr(default=False)
    note: Attr[str | None] = attr(default=None)
    tags: Attr[list[str]] = attr(default=[])
    weight: Attr[float] = attr(default=0.0)
    key = Key("CUSTOMER" / customer, "ORDER" / id)


def seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of several runs."""
    times = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(ROUNDS):
            work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    now = datetime(2024, 3, 15, tzinfo=UTC)
    made = [
        Order(
            customer="c1", id=f"o{n}", status="new", placed_at=now, total=Decimal("19.99"), count=n, tags=["a", "b"], weight=1.5
        )
        for n in range(ITEMS)
    ]
    definition = table.entities["Order"]
    page = json.dumps({"Items": [item_of(definition, each) for each in made], "Count": ITEMS}).encode()
    wire, deserialize = EntityWire(definition), TypeDeserializer().deserialize

    def ours() -> list[Any]:
        return [wire.build(each) for each in wire.decode_page(page).Items]

    def theirs() -> list[Any]:
        return [{name: deserialize(value) for name, value in item.items()} for item in json.loads(page)["Items"]]

    assert ours() == made
    one, other = seconds(ours), seconds(theirs)
    each = 1e6 / (ITEMS * ROUNDS)
    sys.stdout.write(f"Python {platform.python_version()}, {platform.processor() or platform.machine()}\n")
    sys.stdout.write(f"tickler.table {one * each:.2f} µs an item, boto3 {other * each:.2f} µs an item: {other / one:.1f}x\n")


if __name__ == "__main__":
    main()
