"""`DynamoIndex` on a user's table, like SlothPost's, which boto3 reads and writes as well."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from random import Random
from typing import Any

import boto3
import pytest

from dynamodb_proxy import FaultProxy
from dynamodb_server import DynamodbServer
from tickler import At, Cron, InvalidInput, NeverFires, ScheduleNotFound, StoreUnavailable, TicklerError, Weekly, When, parse_when
from tickler.dynamodb import DueItem, DynamoIndex
from tickler.errors import InvalidWhen, SchemaError, SchemaMismatch
from tickler.stores.dynamodb.index.user_table_units import is_misread
from tickler.stores.dynamodb.maintenance.sparsity import Sparsity

REGION = "eu-west-1"
INDEX = "scheduleStatus-nextRunAt-index"
HOUR = 3_600_000
DAY = 24 * HOUR
NOW_MS = 1_921_406_400_000  # 20 November 2030, a Wednesday, 12:00 UTC
NINE_TOMORROW = NOW_MS + 21 * HOUR

Raw = dict[str, Any]  # an item as boto3's low-level client has it, or one of its attributes

HOURLY: Raw = {"S": "0 * * * *"}
DAILY: Raw = {"S": "0 9 * * *"}

# As SlothPost keeps it: a day is on because its time is text, and off because that is null.
PLAN: Raw = {"M": {"mon": {"M": {"time": {"NULL": True}}}, "thu": {"M": {"time": {"S": "09:00"}}}}}

# Everything else an item may have. Numbers come back as DynamoDB writes them, so these are written so.
EVERY_TYPE: dict[str, Raw] = {
    "title": {"S": "naïve 🦥 \u0000 \u2028"},
    "empty": {"S": ""},
    "digits": {"N": "12345678901234567890123456789012345678"},
    "decimal": {"N": "-3.1415926535897932384626433832795028841"},
    "smallest": {"N": "0." + "0" * 129 + "1"},
    "largest": {"N": "9" * 38 + "0" * 88},
    "bytes": {"B": bytes(range(256))},
    "no bytes": {"B": b""},
    "on": {"BOOL": True},
    "off": {"BOOL": False},
    "null": {"NULL": True},
    "map": {"M": {"a.b c": {"L": [{"N": "1.5"}, {"NULL": True}, {"M": {}}, {"L": []}, {"SS": ["x"]}]}, "d": {"B": b"\x00"}}},
    "list": {"L": [{"S": ""}, {"BOOL": False}, {"L": [{"M": {"deep": {"NS": ["0"]}}}]}]},
    "texts": {"SS": ["a", "b", "ü"]},
    "numbers": {"NS": ["-1", "0.5", "12345678901234567890123456789012345678"]},
    "blobs": {"BS": [b"\x00", b"\xff"]},
    "vercelProjectId": {"S": "prj_1"},
}

_numbers = itertools.count()


class Products:
    """The table, as its owner uses it."""

    def __init__(self, boto: Any, endpoint: str) -> None:
        self.name = f"slothpost-products-{os.getpid()}-{next(_numbers)}"
        self.endpoint = endpoint
        self._boto = boto

    def create(self, *, projection: str = "ALL", next_type: str = "N", sort_key: str | None = None, index: str = INDEX) -> None:
        types = {"productId": "S", "scheduleStatus": "S", "nextRunAt": next_type, "vercelProjectId": "S"}
        keys = ["productId"]
        if sort_key is not None:
            types[sort_key] = "N"
            keys.append(sort_key)
        self._boto.create_table(
            TableName=self.name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()],
            KeySchema=key_schema(*keys),
            GlobalSecondaryIndexes=[
                {
                    "IndexName": index,
                    "KeySchema": key_schema("scheduleStatus", "nextRunAt"),
                    "Projection": {"ProjectionType": projection},
                },
                {
                    "IndexName": "vercelProjectId-index",
                    "KeySchema": key_schema("vercelProjectId"),
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                },
            ],
        )

    def delete(self) -> None:
        self._boto.delete_table(TableName=self.name)

    def index(self, **options: Any) -> DynamoIndex:
        fitting = {"key": "productId", "when": "schedule", "region": REGION, "endpoint": self.endpoint}
        return DynamoIndex(self.name, **{**fitting, **options})

    def put(self, product: str, **attributes: Raw) -> None:
        self._boto.put_item(TableName=self.name, Item={"productId": {"S": product}, **attributes})

    def put_due(self, product: str, schedule: Raw = HOURLY, *, at: int = NOW_MS - 1) -> None:
        self.put(product, schedule=schedule, scheduleStatus={"S": "active"}, nextRunAt=number(at))

    def put_many_due(self, number: int) -> None:
        """Put a backlog of items, due one second apart, and all overdue by now."""
        for start in range(0, number, 25):
            writes = [
                {
                    "PutRequest": {
                        "Item": {
                            "productId": {"S": f"p{n:03}"},
                            "schedule": HOURLY,
                            "scheduleStatus": {"S": "active"},
                            "nextRunAt": {"N": str(NOW_MS - 1000 * (number - n))},
                        }
                    }
                }
                for n in range(start, min(start + 25, number))
            ]
            self._boto.batch_write_item(RequestItems={self.name: writes})

    def change(self, product: str, **attributes: Raw) -> None:
        self._boto.update_item(
            TableName=self.name,
            Key={"productId": {"S": product}},
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
            ExpressionAttributeNames={f"#{name}": name for name in attributes},
            ExpressionAttributeValues={f":{name}": value for name, value in attributes.items()},
        )

    def unset(self, product: str, attribute: str) -> None:
        self._boto.update_item(
            TableName=self.name,
            Key={"productId": {"S": product}},
            UpdateExpression="REMOVE #name",
            ExpressionAttributeNames={"#name": attribute},
        )

    def item(self, product: str, **rest_of_key: Raw) -> Raw:
        key = {"productId": {"S": product}, **rest_of_key}
        found: Raw = self._boto.get_item(TableName=self.name, Key=key, ConsistentRead=True)["Item"]
        return {name: in_order(value) for name, value in found.items()}

    def items(self) -> dict[str, Raw]:
        return {item["productId"]["S"]: item for item in self._boto.scan(TableName=self.name, ConsistentRead=True)["Items"]}

    def due(self, now: int) -> list[str]:
        """Run exactly the query that the application uses."""
        found = self._boto.query(
            TableName=self.name,
            IndexName=INDEX,
            KeyConditionExpression="scheduleStatus = :active AND nextRunAt <= :now",
            ExpressionAttributeValues={":active": {"S": "active"}, ":now": {"N": str(now)}},
        )
        return [item["productId"]["S"] for item in found["Items"]]

    def of_project(self, project: str) -> list[str]:
        found = self._boto.query(
            TableName=self.name,
            IndexName="vercelProjectId-index",
            KeyConditionExpression="vercelProjectId = :project",
            ExpressionAttributeValues={":project": {"S": project}},
        )
        return [item["productId"]["S"] for item in found["Items"]]


def key_schema(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    schema = [{"AttributeName": partition, "KeyType": "HASH"}]
    return schema if sort is None else [*schema, {"AttributeName": sort, "KeyType": "RANGE"}]


def in_order(value: Raw) -> Raw:
    """Sort all sets, which DynamoDB returns in any order."""
    ((kind, raw),) = value.items()
    if kind == "M":
        return {kind: {name: in_order(each) for name, each in raw.items()}}
    if kind == "L":
        return {kind: [in_order(each) for each in raw]}
    return {kind: sorted(raw)} if kind in ("SS", "NS", "BS") else value


def changes(before: Raw, after: Raw) -> Raw:
    """Return the changed attributes with their new values; None for removed ones."""
    return {name: after.get(name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def number(at: int) -> Raw:
    return {"N": str(at)}


def keys(due: Sequence[DueItem]) -> list[str]:
    return [each.item["productId"] for each in due]


@pytest.fixture(scope="module")
def boto(dynamodb_server: DynamodbServer) -> Any:
    return boto3.client("dynamodb", region_name=REGION, endpoint_url=dynamodb_server.endpoint)


@pytest.fixture
def unmade(boto: Any, dynamodb_server: DynamodbServer) -> Iterator[Products]:
    """A table name. The test creates the table, which is removed afterwards."""
    products = Products(boto, dynamodb_server.endpoint)
    yield products
    products.delete()


@pytest.fixture
def products(unmade: Products) -> Products:
    unmade.create()
    return unmade


@pytest.fixture
async def index(products: Products) -> AsyncIterator[DynamoIndex]:
    async with products.index() as index:
        yield index


@pytest.fixture
async def proxy(dynamodb_server: DynamodbServer, seed: int) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(dynamodb_server.endpoint, Random(seed)) as proxy:
        yield proxy


# What is theirs stays theirs.


async def test_nothing_but_the_named_attributes_ever_changes(products: Products, index: DynamoIndex) -> None:
    products.put("p1", schedule=HOURLY, **EVERY_TYPE)
    as_put = products.item("p1")
    assert changes(as_put, {"productId": {"S": "p1"}, "schedule": HOURLY, **EVERY_TYPE}) == {}

    await index.upsert("p1", NOW_MS)
    active = {"scheduleStatus": {"S": "active"}, "nextRunAt": number(NOW_MS + HOUR)}
    assert changes(as_put, products.item("p1")) == active

    await index.claim_due(NOW_MS + HOUR)
    assert changes(as_put, products.item("p1")) == {**active, "nextRunAt": number(NOW_MS + 2 * HOUR)}

    products.change("p1", schedule={"S": "nonsense"})
    await index.claim_due(NOW_MS + 2 * HOUR)
    set_aside = changes(as_put, products.item("p1"))
    assert set(set_aside) == {"schedule", "nextRunAt", "ticklerError"}
    assert set_aside["nextRunAt"] == number(NOW_MS + 2 * HOUR)

    products.change("p1", schedule=HOURLY)
    await index.upsert("p1", NOW_MS)
    assert changes(as_put, products.item("p1")) == active

    await index.remove("p1")
    assert products.item("p1") == as_put
    assert products.of_project("prj_1") == ["p1"]


async def test_an_item_that_is_finished_keeps_everything_else(products: Products, index: DynamoIndex) -> None:
    products.put("p1", schedule={"S": "at(2030-11-20T12:30:00Z)"}, **EVERY_TYPE)
    as_put = products.item("p1")
    await index.upsert("p1", NOW_MS)
    assert len(await index.claim_due(NOW_MS + HOUR)) == 1
    assert products.item("p1") == as_put


async def test_a_claimed_item_has_every_type_in_python(products: Products, index: DynamoIndex) -> None:
    products.put("p1", schedule=HOURLY, scheduleStatus={"S": "active"}, nextRunAt=number(NOW_MS - 1), **EVERY_TYPE)
    (due,) = await index.claim_due(NOW_MS)
    assert due.item == {
        "productId": "p1",
        "schedule": "0 * * * *",
        "scheduleStatus": "active",
        "nextRunAt": NOW_MS - 1,
        "title": "naïve 🦥 \u0000 \u2028",
        "empty": "",
        "digits": 12345678901234567890123456789012345678,
        "decimal": Decimal("-3.1415926535897932384626433832795028841"),
        "smallest": Decimal("1E-130"),
        "largest": int("9" * 38 + "0" * 88),
        "bytes": bytes(range(256)),
        "no bytes": b"",
        "on": True,
        "off": False,
        "null": None,
        "map": {"a.b c": [Decimal("1.5"), None, {}, [], {"x"}], "d": b"\x00"},
        "list": ["", False, [{"deep": {0}}]],
        "texts": {"a", "b", "ü"},
        "numbers": {-1, Decimal("0.5"), 12345678901234567890123456789012345678},
        "blobs": {b"\x00", b"\xff"},
        "vercelProjectId": "prj_1",
    }


# Into the index and out of it.


async def test_an_upserted_item_is_found_by_the_query_of_the_story_once_it_is_due(products: Products, index: DynamoIndex) -> None:
    products.put("p1", schedule=PLAN)
    assert await index.upsert("p1", NOW_MS) == NINE_TOMORROW
    assert products.due(NINE_TOMORROW - 1) == []
    assert products.due(NINE_TOMORROW) == ["p1"]


async def test_an_upsert_takes_the_schedule_that_is_there_now(products: Products, index: DynamoIndex) -> None:
    products.put("p1", schedule=PLAN)
    await index.upsert("p1", NOW_MS)
    products.change("p1", schedule=HOURLY)
    assert await index.upsert("p1", NOW_MS) == NOW_MS + HOUR
    assert products.due(NOW_MS + HOUR) == ["p1"]


async def test_an_upsert_of_what_is_not_there_says_so_and_makes_nothing(products: Products, index: DynamoIndex) -> None:
    with pytest.raises(ScheduleNotFound, match="nothing-like-it"):
        await index.upsert("nothing-like-it", NOW_MS)
    assert products.items() == {}


@pytest.mark.parametrize("schedule", [None, {"NULL": True}])
async def test_an_upsert_without_a_schedule_takes_the_item_out(
    products: Products, index: DynamoIndex, schedule: Raw | None
) -> None:
    products.put_due("p1")
    if schedule is None:
        products.unset("p1", "schedule")
    else:
        products.change("p1", schedule=schedule)
    assert await index.upsert("p1", NOW_MS) is None
    assert products.item("p1").keys() == {"productId", "schedule"} - ({"schedule"} if schedule is None else set())


@pytest.mark.parametrize("schedule", [{"S": "at(2020-01-01T00:00:00Z)"}, {"M": {"mon": {"M": {"time": {"NULL": True}}}}}])
async def test_a_schedule_that_never_fires_is_refused_and_does_not_fire_by_what_it_was_before(
    products: Products, index: DynamoIndex, schedule: Raw
) -> None:
    products.put_due("p1", schedule, at=NOW_MS + 1)
    with pytest.raises(NeverFires):
        await index.upsert("p1", NOW_MS)
    assert products.item("p1").keys() == {"productId", "schedule"}


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ({"S": "every now and then"}, InvalidWhen),
        ({"S": ""}, InvalidWhen),
        ({"N": "9"}, InvalidWhen),
        ({"L": [{"S": "09:00"}]}, InvalidWhen),
    ],
)
async def test_a_schedule_that_cannot_be_put_into_the_index_leaves_the_item_as_it_was(
    products: Products, index: DynamoIndex, schedule: Raw, error: type[Exception]
) -> None:
    products.put_due("p1", schedule, at=NOW_MS + 1)
    before = products.item("p1")
    with pytest.raises(error):
        await index.upsert("p1", NOW_MS)
    assert products.item("p1") == before


@pytest.mark.parametrize("field", ["enabled", "on"])
async def test_a_plan_with_a_field_that_does_not_exist_is_refused_and_not_taken_for_a_day_off(
    products: Products, index: DynamoIndex, field: str
) -> None:
    """A real bug: `daySchedule.enabled` never existed, so no day was ever on, and nothing reported it."""
    products.put("p1", schedule={"M": {"mon": {"M": {field: {"BOOL": True}}}}})
    with pytest.raises(InvalidWhen, match=rf"mon\.{field}.*a day is on when it has a 'time'"):
        await index.upsert("p1", NOW_MS)


async def test_a_removed_item_is_out_of_the_index_and_in_the_table(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1")
    await index.remove("p1")
    assert products.due(NOW_MS) == []
    assert products.item("p1") == {"productId": {"S": "p1"}, "schedule": HOURLY}


async def test_removing_what_is_not_there_does_nothing_and_makes_nothing(products: Products, index: DynamoIndex) -> None:
    await index.remove("nothing-like-it")
    assert products.items() == {}


async def test_an_upsert_does_not_take_out_what_another_put_in_meanwhile(products: Products) -> None:
    """It reads an item without a schedule, and another writer adds one before it writes."""
    products.put("p1")

    def when(item: Any) -> When | None:
        if "schedule" not in item:
            products.put_due("p1", at=NOW_MS + HOUR)
        return parse_when(item["schedule"]) if "schedule" in item else None

    async with products.index(when=when) as index:
        assert await index.upsert("p1", NOW_MS) == NOW_MS + HOUR
    assert products.due(NOW_MS + HOUR) == ["p1"]


async def test_an_upsert_goes_by_the_schedule_that_was_written_while_it_ran(products: Products) -> None:
    """Its condition holds, because the other write left the same next fire: only the old item shows the change."""
    products.put_due("p1", DAILY, at=NOW_MS + HOUR)

    def when(item: Any) -> When:
        if item["schedule"] == DAILY["S"]:
            products.change("p1", schedule=HOURLY, nextRunAt=number(NOW_MS + HOUR))
        return parse_when(item["schedule"])

    async with products.index(when=when) as index:
        assert await index.upsert("p1", NOW_MS) == NOW_MS + HOUR
    assert products.item("p1")["nextRunAt"] == number(NOW_MS + HOUR)


async def test_an_upsert_gives_up_on_an_item_that_others_change_all_the_time(
    products: Products, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.stores.dynamodb.index.user_table.TRIES", 3)
    products.put_due("p1")
    calls = itertools.count(1)

    def when(item: Any) -> When:
        products.change("p1", nextRunAt=number(NOW_MS + next(calls)))
        return Cron("0 * * * *")

    async with products.index(when=when) as index:
        with pytest.raises(StoreUnavailable, match="p1 was changed by others 3 times in a row"):
            await index.upsert("p1", NOW_MS)


# Claims.


async def test_a_claim_returns_the_item_as_it_was_and_advances_it(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1", at=NOW_MS - 5)
    (due,) = await index.claim_due(NOW_MS)
    assert (due.when, due.next_fire_at) == (Cron("0 * * * *"), NOW_MS - 5)
    assert due.item == {"productId": "p1", "schedule": "0 * * * *", "scheduleStatus": "active", "nextRunAt": NOW_MS - 5}
    assert products.item("p1") == {
        "productId": {"S": "p1"},
        "schedule": HOURLY,
        "scheduleStatus": {"S": "active"},
        "nextRunAt": number(NOW_MS + HOUR),
    }


async def test_what_was_claimed_is_not_claimed_again_before_it_is_due_again(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1")
    assert keys(await index.claim_due(NOW_MS)) == ["p1"]
    assert await index.claim_due(NOW_MS) == []
    assert await index.claim_due(NOW_MS + HOUR - 1) == []
    assert keys(await index.claim_due(NOW_MS + HOUR)) == ["p1"]


async def test_an_item_is_due_at_its_instant_and_not_a_millisecond_earlier(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1", at=NOW_MS)
    assert await index.claim_due(NOW_MS - 1) == []
    assert keys(await index.claim_due(NOW_MS)) == ["p1"]


async def test_an_item_that_was_missed_for_days_is_due_once(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1", at=NOW_MS - 3 * DAY)
    assert len(await index.claim_due(NOW_MS)) == 1
    assert await index.claim_due(NOW_MS) == []
    assert products.item("p1")["nextRunAt"] == number(NOW_MS + HOUR)


async def test_a_claim_takes_the_earliest_up_to_its_limit_and_earliest_first(products: Products, index: DynamoIndex) -> None:
    for product, at in [("c", 30), ("a", 10), ("e", 50), ("d", 40), ("b", 20)]:
        products.put_due(product, at=NOW_MS - 100 + at)
    assert keys(await index.claim_due(NOW_MS, 2)) == ["a", "b"]
    assert keys(await index.claim_due(NOW_MS, 2)) == ["c", "d"]
    assert keys(await index.claim_due(NOW_MS, 2)) == ["e"]
    assert await index.claim_due(NOW_MS, 2) == []


async def test_what_has_no_status_is_never_claimed(products: Products, index: DynamoIndex) -> None:
    products.put("paused", schedule=HOURLY, nextRunAt=number(NOW_MS - 1))
    products.put("other", schedule=HOURLY, scheduleStatus={"S": "draft"}, nextRunAt=number(NOW_MS - 1))
    products.put("no next", schedule=HOURLY, scheduleStatus={"S": "active"})
    assert await index.claim_due(NOW_MS) == []
    assert await index.next_due() is None


async def test_one_instant_leaves_the_index_once_it_is_claimed(products: Products, index: DynamoIndex) -> None:
    products.put("p1", schedule={"S": "at(2030-11-20T12:30:00Z)"})
    await index.upsert("p1", NOW_MS)
    (due,) = await index.claim_due(NOW_MS + HOUR)
    assert (due.when, due.next_fire_at) == (At("2030-11-20T12:30:00Z"), NOW_MS + HOUR // 2)
    assert products.item("p1").keys() == {"productId", "schedule"}
    assert await index.claim_due(NOW_MS + 9 * DAY) == []


async def test_next_due_is_the_earliest_in_the_index(products: Products, index: DynamoIndex) -> None:
    assert await index.next_due() is None
    products.put_due("p1", at=NOW_MS + 2)
    products.put_due("p2", at=NOW_MS + 1)
    assert await index.next_due() == NOW_MS + 1


async def test_what_is_deleted_before_it_is_due_is_not_claimed(unmade: Products, boto: Any) -> None:
    unmade.create(projection="KEYS_ONLY")
    unmade.put_due("p1")

    def when(item: Any) -> When:
        boto.delete_item(TableName=unmade.name, Key={"productId": {"S": "p1"}})
        return Cron("0 * * * *")

    async with unmade.index(when=when) as index:
        assert await index.claim_due(NOW_MS) == []
    assert unmade.items() == {}


# What a schedule is, and where it is.


async def test_a_cron_expression_is_read_in_the_zone_of_the_item(products: Products) -> None:
    products.put("paris", schedule=DAILY, zone={"S": "Europe/Paris"})
    products.put("none", schedule=DAILY)
    async with products.index(tz="zone") as index:
        assert await index.upsert("paris", NOW_MS) == NINE_TOMORROW - HOUR
        assert await index.upsert("none", NOW_MS) == NINE_TOMORROW
        (due,) = await index.claim_due(NINE_TOMORROW - HOUR)
    assert due.when == Cron("0 9 * * *", tz="Europe/Paris")


@pytest.mark.parametrize("plan", [PLAN, {"M": {"weekly": PLAN}}, {"S": "weekly(thu 09:00)"}])
async def test_a_weekly_plan_is_read_in_the_zone_of_the_item(products: Products, plan: Raw) -> None:
    products.put("p1", plan=plan, zone={"S": "Asia/Tokyo"})
    async with products.index(when="plan", tz="zone") as index:
        assert await index.upsert("p1", NOW_MS) == NINE_TOMORROW - 9 * HOUR
        (due,) = await index.claim_due(NINE_TOMORROW)
    assert due.when == Weekly({"thu": "09:00"}, tz="Asia/Tokyo")
    assert products.item("p1")["nextRunAt"] == number(NINE_TOMORROW - 9 * HOUR + 7 * DAY)


async def test_a_zone_that_is_none_is_refused(products: Products) -> None:
    zones: list[Raw] = [{"S": "Europe/Atlantis"}, {"NULL": True}, {"N": "1"}]
    async with products.index(tz="zone") as index:
        for zone, schedule in itertools.product(zones, [DAILY, PLAN]):
            products.put("p1", schedule=schedule, zone=zone)
            with pytest.raises(InvalidWhen):
                await index.upsert("p1", NOW_MS)


async def test_a_function_may_say_when(products: Products) -> None:
    products.put("p1", postsAt=number(9), postsOn={"SS": ["thu", "sat"]})
    products.put("p2")

    def when(item: Any) -> When | None:
        return Weekly(dict.fromkeys(item["postsOn"], f"{item['postsAt']:02}:00")) if "postsAt" in item else None

    async with products.index(when=when) as index:
        assert await index.upsert("p1", NOW_MS) == NINE_TOMORROW
        assert await index.upsert("p2", NOW_MS) is None
        (due,) = await index.claim_due(NINE_TOMORROW)
    assert due.when == Weekly({"thu": "09:00", "sat": "09:00"})
    assert products.item("p1")["nextRunAt"] == number(NINE_TOMORROW + 2 * DAY)


async def test_in_seconds_the_table_has_seconds_and_callers_have_milliseconds(products: Products) -> None:
    products.put("p1", schedule=HOURLY)
    async with products.index(unit="s") as index:
        assert await index.upsert("p1", NOW_MS) == NOW_MS + HOUR
        assert products.item("p1")["nextRunAt"] == number((NOW_MS + HOUR) // 1000)
        assert await index.next_due() == NOW_MS + HOUR
        assert await index.claim_due(NOW_MS + HOUR - 1) == []
        (due,) = await index.claim_due(NOW_MS + HOUR)
    assert due.next_fire_at == NOW_MS + HOUR
    assert products.item("p1")["nextRunAt"] == number((NOW_MS + 2 * HOUR) // 1000)


async def test_in_seconds_an_instant_between_two_of_them_is_due_at_the_later(products: Products) -> None:
    products.put("p1", schedule={"S": "at(2030-11-20T12:30:00.250Z)"})
    async with products.index(unit="s") as index:
        await index.upsert("p1", NOW_MS)
        assert products.item("p1")["nextRunAt"] == number(NOW_MS // 1000 + 1801)


@pytest.mark.parametrize(("unit", "next_run"), [("s", "1921406400.123"), ("ms", "1921406400122.5")])
async def test_a_fraction_that_others_wrote_is_due_when_next_due_says(products: Products, unit: str, next_run: str) -> None:
    """A worker that sleeps until then must get it then; otherwise it would claim again and again."""
    products.put("p1", schedule=HOURLY, scheduleStatus={"S": "active"}, nextRunAt={"N": next_run})
    async with products.index(unit=unit) as index:
        at = await index.next_due()
        assert at == NOW_MS + 123
        assert await index.claim_due(at - 1) == []
        (due,) = await index.claim_due(at)
    assert due.next_fire_at == at


# The wrong unit.


IN_A_MONTH = NOW_MS + 30 * DAY


@pytest.mark.parametrize(("unit", "right"), [("ms", "s"), ("s", "ms")])
async def test_the_wrong_unit_is_refused_before_anything_is_written(products: Products, unit: str, right: str) -> None:
    for n in range(30):
        products.put_due(f"p{n}", at=(IN_A_MONTH + n * HOUR) // (1000 if right == "s" else 1))
    products.put("new", schedule=HOURLY)
    before = products.items()
    async with products.index(unit=unit) as index:
        with pytest.raises(SchemaMismatch, match=f"nothing was written: pass unit='{right}'") as refused:
            await index.claim_due(NOW_MS)
        assert refused.value.attribute == "nextRunAt"
        with pytest.raises(SchemaMismatch, match=f"pass unit='{right}'"):
            await index.upsert("new", NOW_MS)
    assert products.items() == before
    async with products.index(unit=right) as index:
        assert await index.claim_due(NOW_MS) == []
        assert await index.upsert("new", NOW_MS) == NOW_MS + HOUR


@pytest.mark.parametrize("unit", ["ms", "s"])
async def test_the_first_item_of_an_index_tells_the_unit_too(products: Products, unit: str) -> None:
    """It is not in the index yet, and its owner has written its next instant."""
    products.put("p1", schedule=HOURLY, nextRunAt=number(NOW_MS // (1000 if unit == "ms" else 1)))
    async with products.index(unit=unit) as index:
        assert await index.claim_due(NOW_MS) == []
        with pytest.raises(SchemaMismatch, match="pass unit="):
            await index.upsert("p1", NOW_MS)
        products.unset("p1", "nextRunAt")
        assert await index.upsert("p1", NOW_MS) == NOW_MS + HOUR


async def test_one_item_in_the_wrong_unit_is_set_aside_and_holds_up_nobody(
    products: Products, index: DynamoIndex, caplog: pytest.LogCaptureFixture
) -> None:
    products.put_due("seconds", at=IN_A_MONTH // 1000)
    for n in range(3):
        products.put_due(f"p{n}")
    assert sorted(keys(await index.claim_due(NOW_MS))) == ["p0", "p1", "p2"]
    assert "scheduleStatus" not in products.item("seconds")
    assert products.item("seconds")["nextRunAt"] == number(IN_A_MONTH // 1000)
    assert "close to now in seconds" in products.item("seconds")["ticklerError"]["S"]
    assert "an item is in another unit than the others" in caplog.text
    assert await index.upsert("seconds", NOW_MS) == NOW_MS + HOUR


@pytest.mark.parametrize("at", [0, 1, NOW_MS - 19 * 365 * DAY, NOW_MS - 40 * 365 * DAY])
async def test_an_item_that_is_overdue_by_decades_is_claimed_and_not_taken_for_another_unit(
    products: Products, index: DynamoIndex, at: int
) -> None:
    products.put_due("p1", at=at)
    assert keys(await index.claim_due(NOW_MS)) == ["p1"]


def test_near_1970_milliseconds_are_milliseconds() -> None:
    assert not is_misread("5000", "ms", 6_000)
    assert not is_misread("5", "s", 6_000)


async def test_a_table_with_a_sort_key_is_told_both(unmade: Products) -> None:
    unmade.create(sort_key="revision")
    unmade.put("p1", revision=number(1), schedule=HOURLY)
    unmade.put("p1", revision=number(2), schedule=DAILY)
    async with unmade.index(key=("productId", "revision")) as index:
        assert await index.upsert({"productId": "p1", "revision": 1}, NOW_MS) == NOW_MS + HOUR
        assert await index.upsert({"revision": 2, "productId": "p1"}, NOW_MS) == NINE_TOMORROW
        due = await index.claim_due(NINE_TOMORROW)
        assert [each.item["revision"] for each in due] == [1, 2]
        await index.remove({"productId": "p1", "revision": 1})
        assert await index.next_due() == NINE_TOMORROW + DAY
        for half in ("p1", {"productId": "p1"}, ("p1", 1)):
            with pytest.raises(InvalidInput, match="pass productId, revision, as a dict"):
                await index.upsert(half, NOW_MS)
    assert "scheduleStatus" not in unmade.item("p1", revision=number(1))
    assert unmade.item("p1", revision=number(2))["scheduleStatus"] == {"S": "active"}


async def test_an_index_that_has_only_keys_is_enough(unmade: Products) -> None:
    unmade.create(projection="KEYS_ONLY")
    unmade.put("p1", schedule=HOURLY, title={"S": "Sloth"})
    async with unmade.index() as index:
        await index.upsert("p1", NOW_MS)
        (due,) = await index.claim_due(NOW_MS + HOUR)
    assert (due.item["title"], due.when, due.next_fire_at) == ("Sloth", Cron("0 * * * *"), NOW_MS + HOUR)
    assert unmade.item("p1")["nextRunAt"] == number(NOW_MS + 2 * HOUR)


async def test_active_may_be_called_something_else(products: Products) -> None:
    products.put("p1", schedule=HOURLY)
    async with products.index(active="running") as index:
        await index.upsert("p1", NOW_MS)
        assert products.item("p1")["scheduleStatus"] == {"S": "running"}
        assert keys(await index.claim_due(NOW_MS + HOUR)) == ["p1"]


# Items that do not read.


async def test_an_item_that_does_not_read_is_set_aside_and_holds_up_nobody(
    products: Products, index: DynamoIndex, caplog: pytest.LogCaptureFixture
) -> None:
    products.put_due("bad", {"S": "nonsense"}, at=NOW_MS - 10)
    products.put_due("good", at=NOW_MS - 5)
    before = products.item("bad")
    assert keys(await index.claim_due(NOW_MS, 1)) == ["good"]
    changed = changes(before, products.item("bad"))
    assert set(changed) == {"scheduleStatus", "ticklerError"}
    assert changed["scheduleStatus"] is None
    assert "'nonsense'" in changed["ticklerError"]["S"]
    assert products.due(NOW_MS) == []
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tickler.index"]
    assert "set aside 1 unreadable due items, first {'productId': 'bad'}" in line


async def test_an_item_that_was_set_aside_is_back_when_it_is_mended_and_upserted(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1", {"S": "nonsense"})
    assert await index.claim_due(NOW_MS) == []
    products.change("p1", schedule=HOURLY)
    assert await index.claim_due(NOW_MS) == []
    assert await index.upsert("p1", NOW_MS) == NOW_MS + HOUR
    assert products.item("p1").keys() == {"productId", "schedule", "scheduleStatus", "nextRunAt"}
    assert keys(await index.claim_due(NOW_MS + HOUR)) == ["p1"]


async def test_an_item_that_was_set_aside_and_is_removed_forgets_why(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1", {"S": "nonsense"})
    await index.claim_due(NOW_MS)
    await index.remove("p1")
    assert products.item("p1").keys() == {"productId", "schedule"}


async def test_an_item_that_is_active_and_has_no_schedule_is_set_aside(products: Products, index: DynamoIndex) -> None:
    products.put("p1", scheduleStatus={"S": "active"}, nextRunAt=number(NOW_MS))
    assert await index.claim_due(NOW_MS) == []
    assert "the item is active, but has no schedule" in products.item("p1")["ticklerError"]["S"]


@pytest.mark.parametrize("outcome", [KeyError("postsAt"), RecursionError("too deep"), "0 9 * * *", 5])
async def test_a_function_that_fails_or_returns_something_else_sets_the_item_aside(products: Products, outcome: object) -> None:
    products.put_due("bad")
    products.put_due("good")

    def when(item: Any) -> Any:
        if item["productId"] == "good":
            return Cron("0 * * * *")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async with products.index(when=when) as index:
        assert keys(await index.claim_due(NOW_MS)) == ["good"]
        with pytest.raises(InvalidWhen):
            await index.upsert("bad", NOW_MS)
    said = products.item("bad")["ticklerError"]["S"]
    assert type(outcome).__name__ in said


# Several claimers.


async def claim_all(index: DynamoIndex, limit: int) -> list[str]:
    """Claim until nothing is due twice in a row, because a lagging index may be empty once too early."""
    found: list[str] = []
    empty = 0
    while empty < 2:
        claimed = keys(await index.claim_due(NOW_MS, limit))
        found += claimed
        empty = 0 if claimed else empty + 1
    return found


def check_each_once(found: Sequence[str], products: Products, shards: int | None) -> None:
    assert {product: times for product, times in Counter(found).items() if times > 1} == {}
    items = products.items()
    assert set(found) == set(items)
    assert {item["nextRunAt"]["N"] for item in items.values()} == {str(NOW_MS + HOUR)}
    statuses = {item["scheduleStatus"]["S"] for item in items.values()}
    assert statuses == ({"active"} if shards is None else {f"active#{shard}" for shard in range(shards)})


@pytest.mark.parametrize(("stale", "shards"), [(False, None), (True, None), (True, 4)])
async def test_four_claimers_get_each_item_once(products: Products, proxy: FaultProxy, stale: bool, shards: int | None) -> None:
    """With shards, items from before there were any are still found, and move into a shard as they advance."""
    products.put_many_due(150)
    proxy.stale, proxy.log_bodies = stale, True
    async with AsyncExitStack() as stack:
        claimers = [await stack.enter_async_context(products.index(shards=shards, endpoint=proxy.endpoint)) for _ in range(4)]
        shares = await asyncio.gather(*(claim_all(claimer, 20) for claimer in claimers))
    check_each_once(list(itertools.chain(*shares)), products, shards)
    tries = sum(len(body["Statements"]) for operation, body in proxy.bodies if operation == "BatchExecuteStatement")
    assert tries > 150, "they never raced for the same item"
    assert bool(proxy.served["stale"]) == stale


CLAIMER = """if True:
    import asyncio, json, sys
    from tickler.dynamodb import DynamoIndex

    async def main(table, region, endpoint, now_ms):
        async with DynamoIndex(table, key="productId", when="schedule", shards=4, region=region, endpoint=endpoint) as index:
            print("ready", flush=True)
            sys.stdin.readline()
            found, empty = [], 0
            while empty < 2:
                claimed = [each.item["productId"] for each in await index.claim_due(int(now_ms), 20)]
                found += claimed
                empty = 0 if claimed else empty + 1
            print(json.dumps(found))

    asyncio.run(main(*sys.argv[1:]))
"""


async def test_three_processes_behind_an_index_that_lags_get_each_item_once(products: Products, proxy: FaultProxy) -> None:
    products.put_many_due(150)
    proxy.stale = True
    arguments = [sys.executable, "-c", CLAIMER, products.name, REGION, proxy.endpoint, str(NOW_MS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    processes = [await asyncio.create_subprocess_exec(*arguments, stdin=PIPE, stdout=PIPE, env=environment) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        shares = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
    found = [json.loads(output) for output, _ in shares]
    check_each_once(list(itertools.chain(*found)), products, shards=4)
    assert proxy.served["stale"] > 0


async def test_an_item_stays_in_its_shard_and_is_upserted_into_it(products: Products) -> None:
    products.put("p1", schedule=HOURLY)
    async with products.index(shards=4) as index:
        await index.upsert("p1", NOW_MS)
        shard = products.item("p1")["scheduleStatus"]["S"]
        assert shard in {f"active#{number}" for number in range(4)}
        assert await index.next_due() == NOW_MS + HOUR
        assert keys(await index.claim_due(NOW_MS + HOUR)) == ["p1"]
    assert products.item("p1")["scheduleStatus"]["S"] == shard


async def test_earliest_is_first_over_all_shards(products: Products) -> None:
    products.put_many_due(40)
    async with products.index(shards=4) as index:
        await claim_all(index, 100)
        for n in range(40):
            products.change(f"p{n:03}", nextRunAt=number(NOW_MS + 1000 - n))
        assert keys(await index.claim_due(NOW_MS + HOUR)) == [f"p{n:03}" for n in reversed(range(40))]


async def test_throttled_writes_and_resets_before_lose_nothing(products: Products, proxy: FaultProxy) -> None:
    products.put_many_due(600)  # so many requests that some are reset
    async with products.index(endpoint=proxy.endpoint) as index:
        proxy.throttle_statements, proxy.reset_before = 0.3, 0.2
        found = await claim_all(index, 50)
    check_each_once(found, products, shards=None)
    assert proxy.served["throttle_statements"] > 0
    assert proxy.served["reset_before"] > 0


async def test_an_answer_that_is_lost_on_the_way_is_lost_and_nobody_gets_it_twice(products: Products, proxy: FaultProxy) -> None:
    products.put_due("p1")
    async with products.index(endpoint=proxy.endpoint) as index:
        proxy.only, proxy.reset_after = {"BatchExecuteStatement"}, 0.5
        found = [await index.claim_due(NOW_MS + hours * HOUR) for hours in range(20)]
    assert proxy.served["reset_after"] > 0
    assert 0 < sum(map(len, found)) < 20
    assert products.item("p1")["nextRunAt"] == number(NOW_MS + 20 * HOUR)


async def test_an_upsert_whose_answer_is_lost_is_done_all_the_same(products: Products, proxy: FaultProxy) -> None:
    products.put("p1", schedule=HOURLY)
    async with products.index(endpoint=proxy.endpoint) as index:
        proxy.only, proxy.reset_after = {"BatchExecuteStatement"}, 0.5
        for hours in range(10):
            assert await index.upsert("p1", NOW_MS + hours * HOUR) == NOW_MS + (hours + 1) * HOUR
    assert proxy.served["reset_after"] > 0
    assert products.due(NOW_MS + 10 * HOUR) == ["p1"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make failures permanent at once."""
    monkeypatch.setattr("tickler.dynamo.client.MAX_PAUSE_S", 0.001)


@pytest.mark.usefixtures("impatient")
async def test_what_was_claimed_before_a_failure_is_not_lost(
    products: Products, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    for n, product in enumerate(["first", "bad", "last"]):
        products.put_due(product, at=NOW_MS - 10 + n)

    def when(item: Any) -> When | None:
        if item["productId"] != "bad":
            return Cron("0 * * * *")
        proxy.only, proxy.error_500 = {"Query"}, 1.0
        return None

    async with products.index(when=when, endpoint=proxy.endpoint) as index:
        assert keys(await index.claim_due(NOW_MS, 2)) == ["first"]
        assert "claimed 1 of 2 items, then failed" in caplog.text
        with pytest.raises(StoreUnavailable):
            await index.claim_due(NOW_MS, 2)
        proxy.error_500 = 0.0
        assert keys(await index.claim_due(NOW_MS, 2)) == ["last"]


# Schedules that change under a claim.


class _Looked(BaseException):
    """Ends a claim that has read the index and written nothing."""


async def claim_with_a_late_index(products: Products, proxy: FaultProxy, **changed: Raw) -> list[DueItem]:
    """Return a claim that reads the item from a stale index, as it was before the change."""
    looking = True

    def when(item: Any) -> When | None:
        if looking:
            raise _Looked
        return parse_when(item["schedule"]) if item["schedule"] is not None else None

    async with products.index(when=when, endpoint=proxy.endpoint) as index:
        with pytest.raises(_Looked):
            await index.claim_due(NOW_MS)
        looking = False
        products.change("p1", **changed)
        proxy.stale = True
        claimed = await index.claim_due(NOW_MS)
    assert proxy.served["stale"] == 1
    return claimed


async def test_an_item_whose_schedule_changed_is_advanced_by_the_new_one(products: Products, proxy: FaultProxy) -> None:
    products.put_due("p1")
    (due,) = await claim_with_a_late_index(products, proxy, schedule=DAILY, title={"S": "new"})
    assert (due.when, due.item["title"]) == (Cron("0 9 * * *"), "new")
    assert products.item("p1")["nextRunAt"] == number(NINE_TOMORROW)


async def test_an_item_whose_new_schedule_is_over_leaves_the_index(products: Products, proxy: FaultProxy) -> None:
    products.put_due("p1")
    (due,) = await claim_with_a_late_index(products, proxy, schedule={"S": "at(2030-11-20T11:00:00Z)"})
    assert due.next_fire_at == NOW_MS - 1
    assert products.item("p1").keys() == {"productId", "schedule"}


async def test_an_item_whose_old_schedule_was_over_comes_back_by_the_new_one(products: Products, proxy: FaultProxy) -> None:
    products.put_due("p1", {"S": "at(2030-11-20T11:00:00Z)"})
    assert len(await claim_with_a_late_index(products, proxy, schedule=HOURLY)) == 1
    assert products.due(NOW_MS + HOUR) == ["p1"]


async def test_an_item_whose_schedule_was_taken_away_is_not_due(products: Products, proxy: FaultProxy) -> None:
    products.put_due("p1")
    assert await claim_with_a_late_index(products, proxy, schedule={"NULL": True}) == []


async def test_an_item_that_was_taken_out_of_the_index_is_not_claimed(products: Products, proxy: FaultProxy) -> None:
    products.put_due("p1")
    assert await claim_with_a_late_index(products, proxy, scheduleStatus={"S": "paused"}) == []
    assert products.item("p1")["nextRunAt"] == number(NOW_MS - 1)


@pytest.mark.usefixtures("impatient")
async def test_an_item_that_cannot_be_advanced_by_its_new_schedule_is_returned_and_said_aloud(
    products: Products, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    products.put_due("p1")

    def when(item: Any) -> When:
        if item["schedule"] == HOURLY["S"]:
            products.change("p1", schedule=DAILY)
        else:
            proxy.only, proxy.error_500 = {"BatchExecuteStatement"}, 1.0
        return parse_when(item["schedule"])

    async with products.index(when=when, endpoint=proxy.endpoint) as index:
        assert keys(await index.claim_due(NOW_MS)) == ["p1"]
    assert "cannot apply the new schedule of {'productId': 'p1'}, upsert it" in caplog.text
    assert products.item("p1")["nextRunAt"] == number(NOW_MS + HOUR)


async def test_an_item_whose_schedule_changes_while_it_is_read_is_advanced_by_the_new_one(unmade: Products) -> None:
    unmade.create(projection="KEYS_ONLY")
    unmade.put_due("p1")

    def when(item: Any) -> When:
        unmade.change("p1", schedule=DAILY)
        return parse_when(item["schedule"])

    async with unmade.index(when=when) as index:
        (due,) = await index.claim_due(NOW_MS)
    assert due.when == Cron("0 9 * * *")
    assert unmade.item("p1")["nextRunAt"] == number(NINE_TOMORROW)


# What does not fit.


async def test_a_table_that_is_not_there_is_named_and_nobody_is_sent_to_migrate_it(products: Products) -> None:
    with pytest.raises(SchemaError, match="no-such-products") as refused:
        await DynamoIndex("no-such-products", key="id", when="schedule", region=REGION, endpoint=products.endpoint).open()
    assert products.endpoint in str(refused.value)
    assert "migrate" not in str(refused.value)


async def test_an_index_that_is_not_there_is_named_with_those_that_are(products: Products) -> None:
    with pytest.raises(
        SchemaMismatch, match=rf"there is no index 'due': pass index= with an existing one \(.*{INDEX}"
    ) as refused:
        await products.index(index="due").open()
    assert "vercelProjectId-index" in str(refused.value)


async def test_an_index_with_another_name_can_be_named(unmade: Products) -> None:
    unmade.create(index="due")
    unmade.put_due("p1")
    with pytest.raises(SchemaMismatch, match=f"there is no index '{INDEX}'"):
        await unmade.index().open()
    async with unmade.index(index="due") as index:
        assert keys(await index.claim_due(NOW_MS)) == ["p1"]


@pytest.mark.parametrize(
    ("options", "attribute"),
    [
        ({"status": "state"}, "state"),
        ({"next": "dueAt"}, "dueAt"),
        ({"index": "vercelProjectId-index"}, "scheduleStatus"),
        ({"index": "vercelProjectId-index", "status": "vercelProjectId"}, "nextRunAt"),
        ({"key": "id"}, "id"),
        ({"key": ("productId", "revision")}, "revision"),
        ({"key": ()}, "productId"),
    ],
)
async def test_an_attribute_that_keys_nothing_is_named(products: Products, options: dict[str, Any], attribute: str) -> None:
    with pytest.raises(SchemaMismatch, match=attribute) as refused:
        await products.index(**{"index": INDEX, **options}).open()
    assert refused.value.attribute == attribute


async def test_a_sort_key_that_was_left_out_is_named(unmade: Products) -> None:
    unmade.create(sort_key="revision")
    with pytest.raises(
        SchemaMismatch, match="key= has 'productId', but the table is keyed on 'productId' and 'revision': pass that"
    ) as refused:
        await unmade.index().open()
    assert refused.value.attribute == "revision"


async def test_an_index_on_text_that_should_be_a_number_is_named(unmade: Products) -> None:
    unmade.create(next_type="S")
    with pytest.raises(
        SchemaMismatch, match=f"the key 'nextRunAt' of the index '{INDEX}' has type S, and must have N"
    ) as refused:
        await unmade.index().open()
    assert refused.value.attribute == "nextRunAt"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unit": "minutes"}, "unit"),
        ({"shards": 0}, "shards"),
        ({"shards": True}, "shards"),
        ({"shards": 1025}, "shards"),
        ({"shards": "4"}, "shards"),
        ({"when": Cron("0 * * * *")}, "when"),
        ({"when": None}, "when"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_asked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{said}: "):
        DynamoIndex("products", **{"key": "productId", "when": "schedule", "region": REGION, **options})


async def test_a_limit_or_a_time_that_cannot_be_is_refused(products: Products, index: DynamoIndex) -> None:
    products.put_due("p1")
    before = products.item("p1")
    for limit in (0, -1, True, 1.5, "10", 10**6):
        with pytest.raises(InvalidInput, match=r"^limit: "):
            await index.claim_due(NOW_MS, limit)  # type: ignore[arg-type]  # what callers without types may pass
    with pytest.raises(InvalidInput, match="looks like seconds"):
        await index.claim_due(NOW_MS // 1000)
    with pytest.raises(InvalidInput, match="looks like seconds"):
        await index.upsert("p1", NOW_MS // 1000)
    assert products.item("p1") == before


async def test_a_key_that_cannot_be_one_of_this_table_is_refused(index: DynamoIndex) -> None:
    for key in (5, b"p1", "", None, {"id": "p1"}, {}):
        with pytest.raises(InvalidInput, match="key"):
            await index.upsert(key, NOW_MS)
        with pytest.raises(InvalidInput, match="key"):
            await index.remove(key)


async def test_how_much_of_the_table_is_in_the_index_is_told_as_dynamodb_counts_it(
    products: Products, index: DynamoIndex, dynamodb_server: DynamodbServer
) -> None:
    assert await index.sparsity() == Sparsity(INDEX, 0, 0)
    products.put_many_due(3)
    products.put("idle")
    found = await index.sparsity()
    assert (found.items, found.indexed) == (4, 3 if dynamodb_server.is_judge else 0), "ministack counts no indexes"
    assert found.is_sparse, "of so few, nobody saves anything"


@pytest.mark.parametrize(
    ("items", "indexed", "is_sparse"), [(999, 999, True), (1000, 300, True), (1000, 301, False), (0, 0, True)]
)
def test_an_index_that_holds_more_than_a_third_or_so_is_not_sparse(items: int, indexed: int, is_sparse: bool) -> None:
    assert Sparsity(INDEX, items, indexed).is_sparse is is_sparse


async def test_an_index_that_is_not_open_says_so(products: Products) -> None:
    products.put_due("p1")
    with pytest.raises(StoreUnavailable, match="async with"):
        await products.index().claim_due(NOW_MS)


async def test_a_table_that_vanishes_is_an_error_of_ticklers(boto: Any, dynamodb_server: DynamodbServer) -> None:
    products = Products(boto, dynamodb_server.endpoint)
    products.create()
    async with products.index() as index:
        products.delete()
        with pytest.raises(TicklerError):
            await index.claim_due(NOW_MS)
