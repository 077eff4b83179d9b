"""Events with which Lambda calls a function that has a DynamoDB stream as its event source, in their documented shape."""

from __future__ import annotations

from typing import Any

import pytest

from tickler.aws.address import Address
from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.dynamo.client import Client
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.table import Attr, Consumer, Entity, Index, ItemChange, Key, Table, attr, changed, created
from tickler.table.definition import METADATA_PARTITION
from tickler.table.engines.dynamodb.change_log import DynamodbChangeLog
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.engines.metadata import Metadata
from tickler.table.streams.context import StreamContext
from tickler.table.streams.options import ConsumerOptions

shop = Table("shop", stream=True)
LABEL = "2026-11-18T16:25:32.428"
ARN = f"arn:aws:dynamodb:eu-west-1:123456789012:table/shop-live/stream/{LABEL}"


class Product(Entity, table=shop):
    id: Attr[str] = attr()
    n: Attr[int] = attr(default=0)
    tags: Attr[frozenset[str]] = attr(default=frozenset())
    key = Key("PRODUCT" / id, "PRODUCT")
    numbered = Index("gsi1", "NUMBERED", n / id, when=n > 0)


@pytest.fixture
def changes() -> DynamodbChangeLog:
    return DynamodbChangeLog(Connection(shop, Client(Address(region="eu-west-1")), "shop-live"))


def image(n: int, **more: Any) -> dict[str, Any]:
    keys = {"pk": {"S": "PRODUCT#a"}, "sk": {"S": "PRODUCT"}}
    return {**keys, "entity": {"S": "Product"}, "id": {"S": "a"}, "n": {"N": str(n)}, **more}


def record(number: int, old: dict[str, Any] | None, new: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    shown = new or old or {}
    return {
        "eventID": "c4ca4238a0b923820dcc509a6f75849b",
        "eventName": "REMOVE" if new is None else "INSERT" if old is None else "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-west-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1795019132,
            "Keys": {"pk": shown["pk"], "sk": shown["sk"]},
            **({} if old is None else {"OldImage": old}),
            **({} if new is None else {"NewImage": new}),
            "SequenceNumber": f"{number:021}",
            "SizeBytes": 59,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": ARN,
        **more,
    }


def test_its_records_are_changes(changes: DynamodbChangeLog) -> None:
    by_ttl = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}
    event = {"Records": [record(1, None, image(1)), record(2, image(1), image(2)), record(3, image(2), None, **by_ttl)]}
    found = changes.records_of(event)
    assert [
        (each.position, *(image and changes.decode(each.entity, image).n for image in (each.old, each.new))) for each in found
    ] == [(f"{1:021}", None, 1), (f"{2:021}", 1, 2), (f"{3:021}", 2, None)]
    assert {(each.shard, each.at_ms, each.entity, each.pk, each.sk) for each in found} == {
        (LABEL, 1_795_019_132_000, "Product", "PRODUCT#a", "PRODUCT")
    }


def test_a_time_may_have_a_fraction_or_an_exponent(changes: DynamodbChangeLog) -> None:
    timed = record(1, None, image(1))
    for text, at_ms in ((1795019132.5, 1_795_019_132_500), (1.795019132e9, 1_795_019_132_000)):
        timed["dynamodb"]["ApproximateCreationDateTime"] = text
        assert [each.at_ms for each in changes.records_of({"Records": [timed]})] == [at_ms]


def test_fields_that_lambda_adds_are_passed_over(changes: DynamodbChangeLog) -> None:
    event = {
        "Records": [record(1, None, image(1))],
        "window": {"start": "2026-11-18T16:00:00Z", "end": "2026-11-18T16:05:00Z"},
        "state": {},
        "shardId": "shardId-00000001795019132462-06b09f4c",
        "eventSourceARN": ARN,
        "isFinalInvokeForWindow": False,
    }
    assert len(changes.records_of(event)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(image(1), image(1, gsi1pk={"S": "NUMBERED"}, gsi1sk={"S": "A1#a"}), id="keys of an index"),
        pytest.param(image(1, gsi7pk={"S": "x"}, gsi7sk={"S": "y"}), image(1), id="keys of an index of another program"),
        pytest.param(image(1, ttl={"N": "1"}), image(1, ttl={"N": "2"}), id="the expiry"),
        pytest.param(image(1, tags={"SS": ["x", "y"]}), image(1, tags={"SS": ["y", "x"]}), id="the order of a set"),
        pytest.param(
            image(1, by={"M": {"a": {"L": [{"NS": ["1", "2"]}]}}}),
            image(1, by={"M": {"a": {"L": [{"NS": ["2", "1"]}]}}}),
            id="the order of a set within",
        ),
    ],
)
def test_a_record_of_nothing_but_this_is_no_change(changes: DynamodbChangeLog, old: Any, new: Any) -> None:
    assert changes.records_of({"Records": [record(1, old, new)]}) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(image(1), image(2), id="an attribute"),
        pytest.param(image(1), image(1, later={"S": "x"}), id="an attribute that this program does not know"),
        pytest.param(image(1, desk={"S": "x"}), image(1, desk={"S": "y"}), id="an attribute with the name of half a key"),
        pytest.param(image(1, tags={"SS": ["x"]}), image(1), id="an attribute that is gone"),
        pytest.param(image(1, tags={"SS": ["x"]}), image(1, tags={"L": [{"S": "x"}]}), id="a type"),
        pytest.param(image(1, by={"L": [{"S": "x"}, {"S": "y"}]}), image(1, by={"L": [{"S": "y"}, {"S": "x"}]}), id="a list"),
    ],
)
def test_a_record_of_this_is_a_change(changes: DynamodbChangeLog, old: Any, new: Any) -> None:
    assert len(changes.records_of({"Records": [record(1, old, new)]})) == 1


def test_metadata_and_items_of_others_are_no_changes(changes: DynamodbChangeLog) -> None:
    metadata = {"pk": {"S": METADATA_PARTITION}, "sk": {"S": "a"}, "version": {"N": "1"}}
    foreign = {"pk": {"S": "x"}, "sk": {"S": "y"}, "z": {"S": "1"}}
    assert changes.records_of({"Records": [record(1, None, metadata), record(2, None, foreign)]}) == []


def test_an_event_without_records_has_no_changes(changes: DynamodbChangeLog) -> None:
    assert changes.records_of({"Records": []}) == []


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({}, "Object missing required field `Records`"),
        ([], "Expected `object`, got `array`"),
        (None, "Expected `object`, got `null`"),
        ({1, 2}, "Expected `object`, got `array`"),
        (object(), "Encoding objects of type object is unsupported"),
        ({"Records": "none"}, "Expected `array`, got `str`"),
        ({"Records": [{"eventSource": "aws:sqs", "body": "{}"}]}, "a record is from aws:sqs"),
        ({"Records": [{"EventSource": "aws:sns"}]}, "a record is from an unknown source"),
        ({"source": "aws.events", "detail-type": "Scheduled Event"}, "Object missing required field `Records`"),
        ({"requestContext": {}, "DDBStreamBatchInfo": {"shardId": "s"}}, "Object missing required field `Records`"),
        ({"Records": [{"eventSource": "aws:dynamodb", "eventSourceARN": ARN}]}, "Object missing required field `dynamodb`"),
    ],
)
def test_an_event_of_another_kind_is_refused_with_the_remedy(changes: DynamodbChangeLog, event: Any, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        changes.records_of(event)
    assert str(refused.value).startswith(f"event: it is not one of a DynamoDB stream: {reason}")
    assert str(refused.value).endswith(
        ": pass the event that Lambda calls the function with, and make the table's stream its event source"
    )


def test_another_table_is_refused(changes: DynamodbChangeLog) -> None:
    other = record(1, None, image(1)) | {"eventSourceARN": ARN.replace("shop-live", "shop-test")}
    with pytest.raises(InvalidInput, match="a record is of the table 'shop-test', and this one is 'shop-live': give each table"):
        changes.records_of({"Records": [record(1, None, image(1)), other]})


@pytest.mark.parametrize("kind", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"])
def test_other_images_are_refused(changes: DynamodbChangeLog, kind: str) -> None:
    other = record(1, None, image(1))
    other["dynamodb"]["StreamViewType"] = kind
    with pytest.raises(
        InvalidInput, match=f"the stream of 'shop-live' has {kind}, and must have NEW_AND_OLD_IMAGES: turn it off"
    ):
        changes.records_of({"Records": [other]})


class TestConsumer:
    """A function that is called with events. What is parked is kept in memory here."""

    @pytest.fixture
    async def metadata(self) -> Metadata:
        engine = MemoryEngine(shop, MemoryDatabase())
        await engine.open(create=True)
        return engine.metadata

    @pytest.fixture
    def consumer(self, changes: DynamodbChangeLog, metadata: Metadata) -> Consumer:
        options = ConsumerOptions(name="it", attempts=1)
        return Consumer(StreamContext(shop, changes, metadata, ManualClock(1_795_019_132_000), options), set())

    async def test_a_change_that_fails_is_parked_so_that_the_batch_is_done(self, consumer: Consumer) -> None:
        seen = numbers(consumer, failing={1})
        event = {"Records": [record(1, None, image(1)), record(2, image(1), image(2))]}
        assert await consumer.consume_event(event) == {"batchItemFailures": []}
        assert seen == [1], "the second waits behind the first"
        assert [each.id for each in await consumer.parked()] == [f"{1:021}", f"{2:021}"]

    async def test_what_was_parked_and_asked_for_is_delivered_with_the_next_event(self, consumer: Consumer) -> None:
        seen = numbers(consumer, failing=(failing := {1}))
        await consumer.consume_event({"Records": [record(1, None, image(1)), record(2, image(1), image(2))]})
        failing.clear()
        await consumer.retry(f"{1:021}")
        for _ in range(2):
            await consumer.consume_event({"Records": []})
        assert seen == [1, 1, 2]
        assert await consumer.parked() == []

    async def test_what_cannot_be_parked_is_reported_so_that_lambda_repeats_it(
        self, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def away(*args: Any, **kwargs: Any) -> bool:
            raise StoreUnavailable("throttled")

        monkeypatch.setattr(consumer._parking, "park", away)
        seen = numbers(consumer, failing=(failing := {2}))
        event = {"Records": [record(1, None, image(1)), record(2, image(1), image(2)), record(3, image(2), image(3))]}
        assert await consumer.consume_event(event) == {"batchItemFailures": [{"itemIdentifier": f"{2:021}"}]}
        assert seen == [1, 2]
        failing.clear()
        again = {"Records": event["Records"][1:]}
        assert await consumer.consume_event(again) == {"batchItemFailures": []}
        assert seen == [1, 2, 2, 3]


def numbers(consumer: Consumer, failing: set[int]) -> list[int]:
    """Return a list to which the numbers of products will be added, also of those whose handler fails."""
    seen: list[int] = []

    @consumer.on(created(Product), changed(Product))
    async def handle(change: ItemChange[Product | None, Product]) -> None:
        seen.append(change.new.n)
        if change.new.n in failing:
            raise ValueError("no")

    return seen
