"""The change log on DynamoDB Local: what is a change, its order, positions, and turning a stream on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml
from table.goods import NOW

from tickler.clock import ManualClock
from tickler.dynamo.client import Client
from tickler.dynamo.tables import describe
from tickler.errors import InvalidItem, SchemaMismatch
from tickler.table import MISSING, Attr, Entity, Index, ItemChange, Key, Missing, Table, attr, changed, created
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.engines.dynamodb import schema
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.engine import THE_STREAM, THE_TABLE
from tickler.table.engines.metadata import EntryWrite
from tickler.table.open_table import OpenTable

shop = Table("shop", stream=True)


class Product(Entity, table=shop):
    id: Attr[str] = attr()
    n: Attr[int] = attr(default=0)
    sold: Attr[int] = attr(default=0)
    tags: Attr[frozenset[str]] = attr(default=frozenset())
    blob: Attr[bytes | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)
    key = Key("PRODUCT" / id, "PRODUCT")
    numbered = Index("gsi1", "NUMBERED", n / id, when=n > 0)


later_shop = Table("shop", stream=True)


class LaterProduct(Entity, table=later_shop, stored_as="Product"):
    """The same with other indexes."""

    id: Attr[str] = attr()
    n: Attr[int] = attr(default=0)
    sold: Attr[int] = attr(default=0)
    tags: Attr[frozenset[str]] = attr(default=frozenset())
    blob: Attr[bytes | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING)
    key = Key("PRODUCT" / id, "PRODUCT")
    even = Index("gsi1", "EVEN", id, when=n == 2)
    all = Index("gsi2", "ALL", n / id)


@pytest.fixture
async def engine(dynamodb_client: Client, dynamodb_table: str) -> DynamodbEngine:
    return DynamodbEngine(shop, dynamodb_client, dynamodb_table, owned=False)


@pytest.fixture
async def db(engine: DynamodbEngine) -> AsyncIterator[OpenTable]:
    async with OpenTable(shop, engine, ManualClock(NOW), create=True) as opened:
        yield opened


async def all_changes(engine: DynamodbEngine, positions: dict[str, str | None] | None = None) -> list[ChangeRecord]:
    if positions is None:
        positions = {shard.id: None for shard in await engine.changes.shards()}
    return [record for read in await engine.changes.read(positions, limit=1_000) for record in read.records]


def images(engine: DynamodbEngine, records: list[ChangeRecord]) -> list[tuple[Any, Any]]:
    def decoded(record: ChangeRecord, image: bytes | None) -> Any:
        return None if image is None else engine.changes.decode(record.entity, image)

    return [(decoded(record, record.old), decoded(record, record.new)) for record in records]


class TestChanges:
    async def test_they_come_in_order_with_both_images(self, db: OpenTable, engine: DynamodbEngine) -> None:
        first = await db.put(Product(id="a", tags=frozenset("xy"), blob=b"\0\xff"))
        second = await db.update(first.key, Product.n.add(1))
        third = await db.put(Product(id="a", n=2))
        await db.delete(third.key)
        found = await all_changes(engine)
        assert images(engine, found) == [(None, first), (first, second), (second, third), (third, None)]
        assert {(each.entity, each.pk, each.sk) for each in found} == {("Product", "PRODUCT#a", "PRODUCT")}
        assert [each.position for each in found] == sorted({each.position for each in found})
        # DynamoDB Local rounds it down to the minute.
        server_now_ms = engine.database.server_now_ms
        assert server_now_ms is not None
        assert all(0 <= server_now_ms - each.at_ms < 120_000 for each in found)

    async def test_concurrent_changes_of_an_item_follow_each_other(self, db: OpenTable, engine: DynamodbEngine) -> None:
        await db.put_many([Product(id=id) for id in "abc"])
        await asyncio.gather(*(db.update(Product.key.id(id), Product.sold.add(1)) for id in "abc" for _ in range(10)))
        by_item: dict[str, list[Any]] = {}
        for record, (old, new) in zip(found := await all_changes(engine), images(engine, found), strict=True):
            by_item.setdefault(record.pk, []).append((None if old is None else old.sold, new.sold))
        assert by_item == {f"PRODUCT#{id}": [(None, 0), *((n, n + 1) for n in range(10))] for id in "abc"}

    async def test_a_put_of_identical_content_is_none(self, db: OpenTable, engine: DynamodbEngine) -> None:
        product = Product(id="a", n=3, tags=frozenset("abc"))
        await db.put(product)
        await db.put(product)
        await db.put_many([product])
        await db.update(product.key, Product.n.set(3))
        assert images(engine, await all_changes(engine)) == [(None, product)]

    async def test_metadata_is_none(self, db: OpenTable, engine: DynamodbEngine) -> None:
        await engine.metadata.write([EntryWrite("a", b"1"), EntryWrite("b", b"large" * 100_000)])
        await engine.metadata.write([EntryWrite("a", None)])
        (shard,) = await engine.changes.shards()
        (read,) = await engine.changes.read({shard.id: None}, limit=10)
        assert (list(read.records), read.position is not None) == ([], True)
        product = await db.put(Product(id="a"))
        assert images(engine, await all_changes(engine, {read.shard: read.position})) == [(None, product)]

    @pytest.mark.adds_index
    async def test_a_reindex_makes_none(
        self, db: OpenTable, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        await db.put_many([Product(id=str(n), n=n, tags=frozenset("xyz"), expires_at=NOW + timedelta(1)) for n in range(5)])
        before = await all_changes(engine)
        later = DynamodbEngine(later_shop, dynamodb_client, dynamodb_table, owned=False)
        async with OpenTable(later_shop, later, ManualClock(NOW), create=True) as reopened:
            assert await reopened.reindex() >= 0
        key = {"pk": {"S": "PRODUCT#2"}, "sk": {"S": "PRODUCT"}}
        answer = await dynamodb_client.call("GetItem", {"TableName": dynamodb_table, "Key": key})
        assert answer["Item"]["gsi1pk"] == {"S": "EVEN"}, "the reindex has written"
        assert "ttl" not in answer["Item"]
        assert len(before) == 5
        assert await all_changes(engine) == before
        assert await all_changes(later) == before

    async def test_one_of_an_expiry_is_one(self, db: OpenTable, engine: DynamodbEngine) -> None:
        product = await db.put(Product(id="a"))
        changed = await db.update(product.key, Product.expires_at.set(NOW + timedelta(hours=1)))
        assert images(engine, await all_changes(engine)) == [(None, product), (product, changed)]

    async def test_an_image_that_does_not_fit_its_class_is_named(self, db: OpenTable, engine: DynamodbEngine) -> None:
        with pytest.raises(InvalidItem, match="Product: is stored with other attributes than the class has"):
            engine.changes.decode("Product", b'{"pk": {"S": "a"}}')
        with pytest.raises(SchemaMismatch, match="unknown entity 'Gone': import the module that defines it"):
            engine.changes.decode("Gone", b"{}")


class TestPositions:
    async def test_reading_goes_on_behind_each_of_them(self, db: OpenTable, engine: DynamodbEngine) -> None:
        products = [await db.put(Product(id=str(n))) for n in range(10)]
        found = await all_changes(engine)
        for n, record in enumerate(found):
            assert images(engine, await all_changes(engine, {record.shard: record.position})) == [
                (None, each) for each in products[n + 1 :]
            ]

    async def test_another_process_goes_on_where_one_has_stopped(
        self, db: OpenTable, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        for n in range(7):
            await db.put(Product(id=str(n)))
        (shard,) = await engine.changes.shards()
        positions: dict[str, str | None] = {shard.id: None}
        found: list[str] = []
        while len(found) < 7:
            other = DynamodbEngine(shop, dynamodb_client, dynamodb_table, owned=False)
            (read,) = await other.changes.read(positions, limit=2)
            assert len(read.records) <= 2
            found += [record.pk for record in read.records]
            positions = {read.shard: read.position}
        assert found == [f"PRODUCT#{n}" for n in range(7)]

    async def test_behind_the_end_are_only_changes_from_now_on(self, db: OpenTable, engine: DynamodbEngine) -> None:
        await db.put(Product(id="a"))
        end: dict[str, str | None] = {**await engine.changes.end()}
        assert await all_changes(engine, end) == []
        after = await db.put(Product(id="b"))
        assert images(engine, await all_changes(engine, end)) == [(None, after)]


class TestTurningItOn:
    async def test_a_new_table_has_a_stream(self, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str) -> None:
        assert await engine.open(create=True) == [THE_TABLE, "gsi1", THE_STREAM]
        description = await describe(dynamodb_client, dynamodb_table)
        assert description is not None
        assert description["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        assert await engine.open(create=True) == []

    async def test_a_table_without_one_gets_it_when_it_is_created(
        self, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        await schema.make(dynamodb_client, dynamodb_table, "test", ["gsi1"])
        with pytest.raises(
            SchemaMismatch, match="stream is off: run `tickler table create`, or open it with create=True"
        ) as error:
            await engine.open(create=False)
        assert error.value.attribute == THE_STREAM
        with pytest.raises(SchemaMismatch, match="stream is off"):
            await engine.changes.shards()
        assert await engine.open(create=True) == [THE_STREAM]
        async with OpenTable(shop, engine, ManualClock(NOW), create=False) as db:
            product = await db.put(Product(id="a"))
            assert images(engine, await all_changes(engine)) == [(None, product)]

    async def test_several_processes_may_turn_it_on(self, dynamodb_client: Client, dynamodb_table: str) -> None:
        await schema.make(dynamodb_client, dynamodb_table, "test", ["gsi1"])
        engines = [DynamodbEngine(shop, dynamodb_client, dynamodb_table, owned=False) for _ in range(3)]
        await asyncio.gather(*(engine.open(create=True) for engine in engines))
        assert len(await engines[0].changes.shards()) == 1

    async def test_one_with_other_images_is_refused(
        self, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        await schema.make(dynamodb_client, dynamodb_table, "test", ["gsi1"])
        specification = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        await dynamodb_client.call("UpdateTable", {"TableName": dynamodb_table, "StreamSpecification": specification})
        for create in (False, True):
            with pytest.raises(SchemaMismatch, match="has NEW_IMAGE, and must have NEW_AND_OLD_IMAGES: turn it off, then run"):
                await engine.open(create=create)

    async def test_a_table_that_is_not_streamed_may_have_any(
        self, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        await engine.open(create=True)
        plain = DynamodbEngine(Table("shop"), dynamodb_client, dynamodb_table, owned=False)
        assert await plain.open(create=True) == []

    async def test_turned_off_and_on_again_it_goes_on_with_what_was_not_read(
        self, db: OpenTable, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        await db.put(Product(id="a"))
        read = await db.put(Product(id="b"))
        found = await all_changes(engine)
        off = {"TableName": dynamodb_table, "StreamSpecification": {"StreamEnabled": False}}
        await dynamodb_client.call("UpdateTable", off)
        assert await DynamodbEngine(shop, dynamodb_client, dynamodb_table, owned=False).open(create=True) == [THE_STREAM]
        new = await db.put(Product(id="c"))
        again = DynamodbEngine(shop, dynamodb_client, dynamodb_table, owned=False)
        older, newer = await again.changes.shards()
        assert newer.parents == (older.id,)
        (rest,) = await again.changes.read({older.id: found[0].position}, limit=10)
        assert (images(again, list(rest.records)), rest.ended, rest.lost) == ([(None, read)], True, False)
        assert images(again, await all_changes(again, {newer.id: None})) == [(None, new)]

    def test_cloudformation_has_it(self) -> None:
        properties = yaml.safe_load(schema.cloudformation("shop", shop.gsis, stream=True))["Resources"]["Table"]["Properties"]
        assert properties["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
        assert "StreamSpecification" not in schema.cloudformation("shop", shop.gsis)


async def test_the_records_of_the_stream_are_an_event_for_a_consumer(
    db: OpenTable, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
) -> None:
    """Lambda hands over what GetRecords returns, with the ARN of the stream."""
    for n in range(3):
        await db.put(Product(id="a", n=n))
    description = await describe(dynamodb_client, dynamodb_table)
    assert description is not None
    arn, (shard,) = description["LatestStreamArn"], await engine.changes.shards()
    request = {"StreamArn": arn, "ShardId": shard.id.partition("~")[2], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = (await dynamodb_client.call("GetShardIterator", request))["ShardIterator"]
    records = (await dynamodb_client.call("GetRecords", {"ShardIterator": iterator}))["Records"]
    event = {"Records": [{**record, "eventSourceARN": arn} for record in records]}
    consumer, seen = db.consumer("it", attempts=1), list[int]()

    @consumer.on(created(Product), changed(Product))
    async def handle(change: ItemChange[Product | None, Product]) -> None:
        seen.append(change.new.n)

    assert await consumer.consume_event(event) == {"batchItemFailures": []}
    assert seen == [0, 1, 2]
    consumer.stop()
    assert await consumer.consume_event(event) == {"batchItemFailures": []}  # the next event is another run
    assert seen == [0, 1, 2, 0, 1, 2]
    found = [(each.position, each.old, each.new) for each in engine.changes.records_of(event)]
    assert found == [(each.position, each.old, each.new) for each in await all_changes(engine)]
