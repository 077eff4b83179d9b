"""The engine on DynamoDB Local: sparse keys that toolkits get wrong, races, expiry, transactions, and the schema."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from table.goods import NOW, Address, Counter, Item, Note, goods, item

from tickler.clock import ManualClock
from tickler.dynamo.client import Client
from tickler.errors import (
    ConditionFailed,
    InvalidInput,
    InvalidItem,
    ItemNotFound,
    SchemaMismatch,
    SchemaMissing,
    StoreUnavailable,
    VersionConflict,
)
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.cursor import read_secret
from tickler.table.engines.dynamodb import schema
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.dynamodb.items import key_of
from tickler.table.engines.dynamodb.writes import Writer
from tickler.table.open_table import OpenTable

OPEN: dict[str, Any] = {"open": True, "count": 1, "due_at": NOW}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def db(dynamodb_client: Client, dynamodb_table: str, clock: ManualClock) -> AsyncIterator[OpenTable]:
    engine = DynamodbEngine(goods, dynamodb_client, dynamodb_table, owned=False)
    async with OpenTable(goods, engine, clock, create=True) as opened:
        yield opened


@pytest.fixture
def raw(dynamodb_client: Client, dynamodb_table: str) -> Any:
    async def read(id: Any) -> dict[str, Any]:
        key = {"pk": {"S": id.pk}, "sk": {"S": id.sk}}
        answer = await dynamodb_client.call("GetItem", {"TableName": dynamodb_table, "Key": key, "ConsistentRead": True})
        return {name: value.get("S", value) for name, value in answer.get("Item", {}).items()}

    return read


class TestWhatToolkitsGetWrong:
    async def test_a_predicate_on_an_attribute_that_is_not_in_the_key_is_evaluated_again(self, db: OpenTable, raw: Any) -> None:
        await db.put(item(**OPEN))
        await db.update(item().key, Item.open.set(False))
        assert (await raw(item().key)).keys().isdisjoint({"gsi2pk", "gsi2sk"})
        await db.update(item().key, Item.open.set(True))
        assert (await raw(item().key))["gsi2pk"] == "DUE"

    async def test_updating_the_members_of_a_key_without_the_predicate_keeps_the_item_indexed(
        self, db: OpenTable, raw: Any
    ) -> None:
        await db.put(item(**OPEN))
        await db.update(item().key, Item.due_at.set(NOW + timedelta(days=1)))
        assert (await raw(item().key))["gsi2sk"] == "2099-03-16T00:00:00#A1"

    async def test_add_on_a_member_of_a_key_writes_the_sum(self, db: OpenTable, raw: Any) -> None:
        await db.put(item(count=41))
        await db.update(item().key, Item.count.add(1))
        assert (await raw(item().key))["gsi1sk"] == "B42#A1"

    async def test_one_half_of_a_key_is_never_written_alone(self, db: OpenTable, raw: Any) -> None:
        await db.put(item(**OPEN))
        await db.update(item().key, Item.due_at.remove())
        found = await raw(item().key)
        assert found.keys().isdisjoint({"gsi2pk", "gsi2sk"})

    async def test_an_attribute_that_becomes_missing_takes_the_old_key_away(self, db: OpenTable, raw: Any) -> None:
        await db.put(item(address=Address(city="Bonn")))
        assert (await raw(item().key))["gsi3pk"] == "CITY#Bonn"
        await db.update(item().key, Item.address.remove())
        assert (await raw(item().key)).keys().isdisjoint({"gsi3pk", "gsi3sk"})

    async def test_numbers_sort_as_numbers(self, db: OpenTable) -> None:
        await db.put_many([item(n, count=n) for n in (10, 9, 100)])
        assert [each.id for each in (await db.query(Item.by_status("new"), first=9)).items] == [9, 10, 100]

    async def test_case_and_separators_in_values_are_kept_apart(self, db: OpenTable) -> None:
        for n, status in enumerate(["ABC", "abc", "a#b"]):
            await db.put(item(n, status=status))
        assert [each.id for each in (await db.query(Item.by_status("abc"), first=9)).items] == [1]
        assert [each.id for each in (await db.query(Item.by_status("a#b"), first=9)).items] == [2]
        assert not (await db.query(Item.by_status("a"), first=9)).items

    async def test_an_update_with_part_of_the_attributes_of_a_key_leaves_no_stale_key(self, db: OpenTable, raw: Any) -> None:
        await db.put(item(status="new", count=7))
        await db.update(item().key, Item.status.set("old"))
        found = await raw(item().key)
        assert (found["gsi1pk"], found["gsi1sk"]) == ("STATUS#old", "A7#A1")

    async def test_null_missing_and_falsy_are_told_apart(self, db: OpenTable) -> None:
        await db.put(item(note=None))
        for holds in (Item.note == None, Item.note.exists(), Item.price.missing(), Item.count == 0, Item.open == False):  # noqa: E711, E712
            await db.update(item().key, Item.level.add(1), when=holds)
        for fails in (Item.note == "", Item.note.missing(), Item.price.exists(), Item.count != 0):
            with pytest.raises(ConditionFailed):
                await db.update(item().key, Item.level.add(1), when=fails)


async def test_concurrent_updates_that_need_a_read_lose_nothing(db: OpenTable, raw: Any) -> None:
    await db.put(item())
    await asyncio.gather(*(db.update(item().key, Item.count.add(1)) for _ in range(6)))
    found = await raw(item().key)
    assert (found["count"], found["gsi1sk"]) == ({"N": "6"}, "A6#A1")


async def test_an_update_does_not_create_an_item(db: OpenTable, raw: Any) -> None:
    with pytest.raises(ItemNotFound):
        await db.update(item().key, Item.note.set("x"))
    assert not await raw(item().key)


async def test_a_put_of_another_version_is_a_conflict(db: OpenTable) -> None:
    first = await db.put(Counter(id="a", version=0))
    assert (first.version, (await db.put(first)).version) == (1, 2)
    with pytest.raises(VersionConflict):
        await db.put(first)
    assert (await db.update(first.key, Counter.n.add(5))).version == 3


async def test_expired_items_are_absent_before_dynamodb_deletes_them(db: OpenTable, clock: ManualClock) -> None:
    await db.put(item(expires_at=NOW + timedelta(seconds=1), note="old"))
    assert await db.get(item().key)
    clock.advance(timedelta(seconds=1))
    assert await db.get(item().key) is None
    assert await db.count(Item.key("s")) == 0
    assert not (await db.query(Item.key("s"), first=9)).items
    with pytest.raises(ItemNotFound):
        await db.update(item().key, Item.note.set("x"))
    assert (await db.upsert(item().key, Item.count.add(1))).note is None
    assert await db.get(item().key)


class TestTransactions:
    async def test_all_or_nothing_with_the_error_of_the_operation_at_fault(self, db: OpenTable) -> None:
        await db.put(item(1))
        operations = db.operations
        fails = [operations.put(item(2)), operations.put(item(1), None, "create")]
        with pytest.raises(ConditionFailed, match="A1"):
            await db.engine.write(fails, now_ms=0)
        assert await db.get(item(2).key) is None
        async with db.transaction() as tx:
            tx.put(item(2))
            tx.update(item(1).key, Item.count.add(2))
            tx.check(item(3).key, Item.note.missing())
        assert await db.count(Item.by_status("new").since(2)) == 1

    async def test_more_than_a_hundred_operations_are_refused(self, db: OpenTable) -> None:
        with pytest.raises(InvalidInput, match="100"):
            await db.engine.write([db.operations.put(item(n)) for n in range(101)], now_ms=0)


class TestReads:
    async def test_pages_in_both_directions_through_a_partition_of_several_entities(self, db: OpenTable) -> None:
        assert await db.load([*(item(n) for n in range(130)), Note(shop="s")]) == 131
        page: Any = await db.query(Item.key("s"), Note.key("s"), first=128)
        assert (len(page.items), page.has_next) == (128, True)
        page = await db.query(Item.key("s"), Note.key("s"), first=128, after=page.end)
        assert ([type(each) for each in page.items], page.has_next) == ([Item, Item, Note], False)
        page = await db.query(Item.key("s"), Note.key("s"), last=2, before=page.start)
        assert [getattr(each, "id", None) for each in page.items] == [126, 127]
        assert [each.text for each in (await db.query(Note.key("s"), first=5)).items] == [""]
        assert await db.count(Item.key("s").since(3).before(10)) == 7

    async def test_more_values_than_one_list_takes_can_be_compared_with(self, db: OpenTable) -> None:
        await db.put(item(count=149))
        assert (await db.update(item().key, Item.level.add(1), when=Item.count.one_of(range(150)))).level == 6
        with pytest.raises(ConditionFailed):
            await db.update(item().key, Item.level.add(1), when=Item.count.one_of(range(149)))

    async def test_a_consistent_read_of_an_index_is_refused(self, db: OpenTable) -> None:
        with pytest.raises(InvalidInput, match="consistent"):
            await db.query(Item.by_status("new"), first=1, consistent=True)

    async def test_a_consistent_count_costs_twice_as_much_because_it_is_one(self, db: OpenTable) -> None:
        await db.put(item())
        usage = db.engine.database.usage  # type: ignore[attr-defined]  # a client of DynamoDB
        units = []
        for consistent in (False, True):
            before = usage.read_units
            assert await db.count(Item.key("s"), consistent=consistent) == 1
            units.append(usage.read_units - before)
        assert units == [0.5, 1]

    async def test_get_many_keeps_the_order_and_repeats(self, db: OpenTable) -> None:
        await db.put_many([item(1), item(2)])
        found = await db.get_many([item(n).key for n in (2, 3, 1, 2)], consistent=False)
        assert [each and each.id for each in found] == [2, None, 1, 2]

    async def test_there_is_no_snapshot(self, db: OpenTable) -> None:
        with pytest.raises(InvalidInput, match="get_many"):
            async with db.snapshot():
                pass

    async def test_the_secret_is_made_once(self, db: OpenTable) -> None:
        assert len({await read_secret(db.engine.metadata) for _ in range(2)}) == 1


class TestSchema:
    async def test_a_missing_table_is_not_made_unless_asked_for(self, dynamodb_client: Client, dynamodb_table: str) -> None:
        with pytest.raises(SchemaMissing, match=r"no table .*`tickler table create`"):
            await DynamodbEngine(goods, dynamodb_client, dynamodb_table, owned=False).open(create=False)

    async def test_few_large_items_are_not_many(self, db: OpenTable) -> None:
        """A page of a scan ends at 1 MB, however few items it has."""
        for n in range(5):
            await db.put(item(n, note="x" * 300_000))
        assert [await db.engine.has_more_than(n) for n in (4, 5, 10)] == [True, False, False]

    async def test_reindex_leaves_items_of_others_alone(
        self, db: OpenTable, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        theirs = {"pk": {"S": "theirs"}, "sk": {"S": "theirs"}}
        await dynamodb_client.call("PutItem", {"TableName": dynamodb_table, "Item": theirs})
        await db.put(item())
        assert await db.reindex() == 0

    @pytest.mark.adds_index
    async def test_missing_indexes_are_added(self, dynamodb_client: Client, dynamodb_table: str) -> None:
        await schema.make(dynamodb_client, dynamodb_table, "test", ["gsi1"])
        engine = DynamodbEngine(goods, dynamodb_client, dynamodb_table, owned=False)
        with pytest.raises(SchemaMismatch, match="gsi2"):
            await engine.open(create=False)
        await engine.open(create=True)
        await engine.open(create=False)

    def test_cloudformation_has_the_keys_the_indexes_and_the_expiry(self) -> None:
        text = schema.cloudformation("goods", goods.gsis)
        assert "AttributeName: gsi3sk" in text
        assert text.endswith("      TimeToLiveSpecification:\n        AttributeName: ttl\n        Enabled: true\n")


async def test_a_nested_change_starts_from_the_default_of_a_part(dynamodb_client: Client, dynamodb_table: str) -> None:
    table = Table("t")

    class Place(Entity, table=table):
        id: Attr[str] = attr()
        name: Attr[str | Missing] = attr(default=MISSING)
        address: Attr[Address] = attr(default=Address(city="Bonn", zip="1"))
        key = Key("PLACE" / id, "PLACE")
        in_city = Index("gsi1", "CITY" / address[Address.city], id)

    engine = DynamodbEngine(table, dynamodb_client, dynamodb_table, owned=False)
    async with OpenTable(table, engine, ManualClock(NOW), create=True) as db:
        await db.put(Place(id="a"))
        key = {"pk": {"S": "PLACE#a"}, "sk": {"S": "PLACE"}}
        await dynamodb_client.call("UpdateItem", {"TableName": dynamodb_table, "Key": key, "UpdateExpression": "REMOVE address"})
        condition = Place.address[Address.zip] == "1"
        changed = await db.update(Place.key.id("a"), Place.address[Address.city].set("Köln"), when=condition)
        assert changed.address == Address(city="Köln", zip="1")
        assert [each.id for each in (await db.query(Place.in_city("Köln"), first=1)).items] == ["a"]


async def test_a_lost_guard_is_tried_again_with_the_item_that_the_failed_write_returned(
    db: OpenTable, dynamodb_client: Client, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.put(item())
    read = Writer._read
    reads: list[object] = []

    async def read_and_be_overtaken(self: Writer, writings: Any, now_ms: int) -> Any:
        seen = await read(self, writings, now_ms)
        reads.append(seen)
        if len(reads) == 1:
            await db.update(item().key, Item.count.add(10))
        return seen

    monkeypatch.setattr(Writer, "_read", read_and_be_overtaken)
    assert (await db.update(item().key, Item.count.add(1))).count == 11
    assert len(reads) == 2  # one for each update: the second try of the first read nothing
    assert (await raw(item().key))["gsi1sk"] == "B11#A1"


async def test_a_change_of_what_was_not_read_for_does_not_lose_the_guard(
    db: OpenTable, dynamodb_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.put(item())
    read = Writer._read

    async def read_while_another_writes(self: Writer, writings: Any, now_ms: int) -> Any:
        seen = await read(self, writings, now_ms)
        await db.update(item().key, Item.note.set("other"))
        return seen

    monkeypatch.setattr(Writer, "_read", read_while_another_writes)
    before = dynamodb_client.usage.requests["UpdateItem"]
    changed = await db.update(item().key, Item.count.add(1))
    assert (changed.count, changed.note) == (1, "other")
    assert dynamodb_client.usage.requests["UpdateItem"] - before == 2


async def test_a_write_whose_response_was_lost_is_not_done_twice(db: OpenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    await db.put(item(count=1))
    engine: Any = db.engine
    client, send = engine.database, engine.database._send

    async def losing(operation: str, *args: Any) -> Any:
        answer = await send(operation, *args)
        if operation == "UpdateItem":
            raise aiohttp.ServerDisconnectedError
        return answer

    monkeypatch.setattr(client, "_send", losing)
    with pytest.raises(StoreUnavailable, match="may have been done or not"):
        await db.update(item().key, Item.count.add(1))
    monkeypatch.undo()
    found = await db.get(item().key)
    assert found is not None
    assert found.count == 2


async def test_an_attribute_that_the_class_does_not_have_is_an_error(db: OpenTable) -> None:
    await db.put(item())
    engine: Any = db.engine
    request = {"Key": key_of(item().key), "UpdateExpression": "SET strange = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}
    await engine.database.call("UpdateItem", {"TableName": engine._connection.name, **request})
    with pytest.raises(InvalidItem, match="strange"):
        await db.get(item().key)
    with pytest.raises(InvalidItem, match="strange"):
        await db.update(item().key, Item.count.add(1))


async def test_an_attribute_from_before_it_was_declared_counts_as_its_default_in_conditions(db: OpenTable) -> None:
    await db.put(item())
    engine: Any = db.engine
    request = {"Key": key_of(item().key), "UpdateExpression": "REMOVE #level", "ExpressionAttributeNames": {"#level": "level"}}
    await engine.database.call("UpdateItem", {"TableName": engine._connection.name, **request})
    for fails in (Item.level != 5, Item.level == 4, Item.level > 5, Item.level.missing(), ~Item.level.one_of([5])):
        with pytest.raises(ConditionFailed):
            await db.update(item().key, Item.events.append("x"), when=fails)  # no index depends on events: nothing is read
    for holds in (Item.level == 5, Item.level != 4, Item.level >= 5, Item.level.exists(), Item.level.one_of([5])):
        await db.update(item().key, Item.events.append("x"), when=holds)
    assert await db.get(item().key) == item(events=["x"] * 5)


async def test_an_expired_item_is_replaced_in_one_request(db: OpenTable, clock: ManualClock) -> None:
    for n in (1, 2):
        await db.put(item(n, expires_at=NOW + timedelta(seconds=1)))
    clock.advance(timedelta(seconds=1))
    requests = db.engine.database.usage.requests  # type: ignore[attr-defined]  # of a client of DynamoDB
    before = requests.total()
    await db.create(item(1))
    await db.put(item(2), when=Item.note.missing())
    assert requests.total() - before == 2


async def test_an_item_of_another_entity_under_the_same_key_is_not_returned(db: OpenTable) -> None:
    await db.put(item())
    engine: Any = db.engine
    request = {
        "Key": key_of(item().key),
        "UpdateExpression": "SET entity = :v",
        "ExpressionAttributeValues": {":v": {"S": "Nobody"}},
    }
    await engine.database.call("UpdateItem", {"TableName": engine._connection.name, **request})
    with pytest.raises(SchemaMismatch, match="Nobody"):
        await db.get(item().key)


older, newer = Table("versions"), Table("versions")


class Part1(Entity, table=older, stored_as="Part"):
    id: Attr[str] = attr()
    size: Attr[int] = attr(default=0)
    blob: Attr[bytes] = attr(default=b"\0")
    key = Key("PART", id)
    sized = Index("gsi1", "SIZED", size / id)


class Part2(Entity, table=newer, stored_as="Part"):
    """The same, with an index that the older one does not know."""

    id: Attr[str] = attr()
    size: Attr[int] = attr(default=0)
    blob: Attr[bytes] = attr(default=b"\0")
    key = Key("PART", id)
    sized = Index("gsi1", "SIZED", size / id)
    large = Index("gsi2", "LARGE", id, when=size > 5)


async def test_an_older_version_reads_and_writes_items_with_keys_of_an_index_that_it_does_not_know(
    dynamodb_client: Client, dynamodb_table: str, clock: ManualClock, raw: Any
) -> None:
    engines = [DynamodbEngine(table, dynamodb_client, dynamodb_table, owned=False) for table in (newer, older)]
    async with OpenTable(newer, engines[0], clock, create=True) as new, OpenTable(older, engines[1], clock, create=True) as old:
        await new.put_many([Part2(id=id, size=9) for id in "abc"])
        parts = [Part1(id=id, size=9) for id in "abc"]
        a, b, c = (part.key for part in parts)
        assert await old.get(a) == parts[0]
        assert await old.get_many([a, b]) == parts[:2]
        assert list((await old.query(Part1.key(), first=9)).items) == parts
        assert list((await old.query(Part1.sized(), first=9)).items) == parts
        assert (await old.update(a, Part1.size.add(1))).size == 10
        assert await old.delete(b)
        async with old.transaction() as tx:
            assert await tx.get(c) == parts[2]
            tx.update(c, Part1.size.set(11), when=Part1.size == 9)
        assert (await raw(a))["gsi2pk"] == "LARGE"
        assert [part.size for part in (await new.query(Part2.large(), first=9)).items] == [10, 11]
