"""The change log over a service that does what DynamoDB Local does not: shards split, close, are trimmed and disappear."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from table.streams_service import NAME, FakeShard, FakeStream, StreamsService

from dynamo.conftest import pauses
from dynamo.pauses import Pauses
from tickler.aws.address import Address
from tickler.dynamo.client import Client
from tickler.errors import SchemaMismatch, StoreUnavailable
from tickler.table import Attr, Entity, Key, Table, attr
from tickler.table.definition import METADATA_PARTITION
from tickler.table.engines.change_log import Shard, ShardRead
from tickler.table.engines.dynamodb.change_log import DynamodbChangeLog
from tickler.table.engines.dynamodb.connection import Connection

__all__ = ["pauses"]

streamed = Table("streamed", stream=True)
HOUR_S = 3600.0


class Thing(Entity, table=streamed):
    id: Attr[str] = attr()
    n: Attr[int] = attr(default=0)
    key = Key("THING" / id, "A")


@pytest.fixture
async def service(aws: pytest.MonkeyPatch) -> AsyncIterator[StreamsService]:
    async with StreamsService() as service:
        yield service


@pytest.fixture
async def client(service: StreamsService, pauses: Pauses) -> AsyncIterator[Client]:
    client = Client(Address(region="eu-west-1", endpoint=service.endpoint, attempts=3))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
def changes(client: Client, service: StreamsService) -> DynamodbChangeLog:
    return another_log(client, service)


def another_log(client: Client, service: StreamsService) -> DynamodbChangeLog:
    """Return the log as another process has it."""
    return DynamodbChangeLog(Connection(streamed, client, NAME), lambda: service.now_s)


def change(service: StreamsService, shard: FakeShard, id: str, n: int) -> str:
    """Write `n` over `n - 1`; 0 creates the item."""
    old, new = ({"entity": {"S": "Thing"}, "id": {"S": id}, "n": {"N": str(each)}} for each in (n - 1, n))
    return service.put(shard, f"THING#{id}", old if n else None, new)


def metadata_record(service: StreamsService, shard: FakeShard) -> str:
    return service.put(shard, METADATA_PARTITION, None, {"version": {"N": "1"}})


def id_of(stream: FakeStream, shard: FakeShard) -> str:
    return f"{stream.label}~{shard.id}"


def seen(changes: DynamodbChangeLog, reads: list[ShardRead]) -> list[int]:
    """Return the numbers that things have after the changes."""
    return [changes.decode(each.entity, each.new).n for read in reads for each in read.records if each.new is not None]


async def read_one(changes: DynamodbChangeLog, shard: str, position: str | None = None, limit: int = 100) -> ShardRead:
    (read,) = await changes.read({shard: position}, limit=limit)
    assert read.shard == shard
    return read


class Consumer:
    """Reads what there is, each shard once its parents have ended."""

    def __init__(self, changes: DynamodbChangeLog) -> None:
        self.changes = changes
        self.positions: dict[str, str | None] = {}
        self.ended: set[str] = set()
        self.lost: set[str] = set()
        self.seen: list[tuple[str, int]] = []

    async def consume(self, limit: int = 100) -> None:
        for shard, parents in await self.changes.shards():
            if shard not in self.ended and self.ended.issuperset(parents):
                self.positions.setdefault(shard, None)
        for read in await self.changes.read(self.positions, limit=limit):
            self.seen += [(each.pk, self.changes.decode(each.entity, each.new or b"").n) for each in read.records]
            self.positions[read.shard] = read.position
            self.lost |= {read.shard} if read.lost else set()
            if read.ended:
                del self.positions[read.shard]
                self.ended.add(read.shard)


class TestShards:
    async def test_they_are_listed_over_several_pages_with_their_parents(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        service.shards_a_page = 2
        stream = service.turn_on(shards=3)
        first, second, third = stream.shards
        left, right = service.split(stream, second)
        ids = {each.id: id_of(stream, each) for each in stream.shards}
        assert await changes.shards() == [
            Shard(ids[first.id]),
            Shard(ids[second.id]),
            Shard(ids[third.id]),
            Shard(ids[left.id], (ids[second.id],)),
            Shard(ids[right.id], (ids[second.id],)),
        ]
        assert service.requests["DescribeStream"] == 3
        assert all(id.isascii() and id.isprintable() for id in ids.values())

    async def test_a_parent_that_is_not_listed_any_more_is_left_out(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        parent = stream.shards[0]
        left, right = service.split(stream, parent)
        stream.shards.remove(parent)
        assert await changes.shards() == [Shard(id_of(stream, left)), Shard(id_of(stream, right))]

    async def test_they_are_remembered_for_ten_seconds(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        before = await changes.shards()
        service.split(stream, stream.shards[0])
        service.now_s += 9
        assert await changes.shards() == before
        assert service.requests["DescribeStream"] == 1
        service.now_s += 1
        assert len(await changes.shards()) == 3

    async def test_new_ones_are_looked_for_as_soon_as_one_has_ended(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        await changes.shards()
        left, right = service.split(stream, stream.shards[0])
        assert (await read_one(changes, id_of(stream, stream.shards[0]))).ended
        service.now_s += 0.2
        assert {id_of(stream, left), id_of(stream, right)} <= {each.id for each in await changes.shards()}

    async def test_a_throttled_listing_is_repeated(
        self, service: StreamsService, changes: DynamodbChangeLog, client: Client
    ) -> None:
        service.turn_on()
        service.throttled["DescribeStream"] = 2
        assert len(await changes.shards()) == 1
        assert client.usage.retries == {"LimitExceeded": 2}

    async def test_one_of_another_kind_is_left_out_of_a_read(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        service.turn_on()
        assert await changes.read({"3": "12"}, limit=10) == []


class TestReading:
    async def test_changes_of_an_item_stay_in_order_while_shards_split(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        consumer = Consumer(changes)
        for n in range(60):
            change(service, shard, "a", n)
            if n % 20 == 19:
                shard = service.split(stream, shard)[1]
            if n % 7 == 0:
                await consumer.consume(limit=5)
        for _ in range(20):
            service.now_s += 1
            await consumer.consume(limit=5)
        assert consumer.seen == [("THING#a", n) for n in range(60)]
        assert len(consumer.ended) == 3
        assert not consumer.lost

    async def test_the_last_page_of_a_closed_shard_may_have_records(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        for n in range(3):
            change(service, shard, "a", n)
        service.split(stream, shard)
        read = await read_one(changes, id_of(stream, shard))
        assert (seen(changes, [read]), read.ended, read.lost) == ([0, 1, 2], True, False)

    async def test_one_that_was_read_to_its_end_stays_so_when_it_is_gone(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        service.split(stream, shard)
        read = await read_one(changes, id_of(stream, shard))
        stream.shards.remove(shard)
        asked = service.requests.total()
        assert await read_one(changes, read.shard, read.position) == ShardRead(read.shard, (), read.position, ended=True)
        assert service.requests.total() == asked

    async def test_a_page_that_the_service_cuts_short_is_followed_by_the_rest(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        service.records_a_page = 3
        stream = service.turn_on()
        for n in range(10):
            change(service, stream.shards[0], "a", n)
        consumer = Consumer(changes)
        for _ in range(4):
            await consumer.consume()
        assert consumer.seen == [("THING#a", n) for n in range(10)]
        assert service.requests["GetShardIterator"] == 1

    async def test_empty_pages_before_the_data_of_a_closed_shard_are_read_through(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        shard.empty_pages = 5
        change(service, shard, "a", 0)
        service.split(stream, shard)
        await changes.shards()
        read = await read_one(changes, id_of(stream, shard))
        assert (seen(changes, [read]), read.ended) == ([0], True)

    async def test_empty_pages_before_the_data_of_an_open_shard_take_a_poll_each(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        stream.shards[0].empty_pages = 3
        change(service, stream.shards[0], "a", 0)
        consumer = Consumer(changes)
        for _ in range(3):
            await consumer.consume()
            assert consumer.seen == []
        await consumer.consume()
        assert consumer.seen == [("THING#a", 0)]

    async def test_a_consumer_that_goes_back_reads_again(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        numbers = [change(service, stream.shards[0], "a", n) for n in range(5)]
        shard = id_of(stream, stream.shards[0])
        assert (await read_one(changes, shard)).position == numbers[-1]
        read = await read_one(changes, shard, numbers[1])
        assert seen(changes, [read]) == [2, 3, 4]
        assert [each.position for each in read.records] == numbers[2:]

    async def test_several_consumers_do_not_disturb_each_other(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        ahead, behind = Consumer(changes), Consumer(changes)
        for n in range(30):
            change(service, stream.shards[0], "a", n)
            await ahead.consume(limit=10)
            if n % 2:
                await behind.consume(limit=1)
        while len(behind.seen) < 30:
            await behind.consume(limit=1)
        assert ahead.seen == behind.seen == [("THING#a", n) for n in range(30)]
        assert service.requests["GetShardIterator"] <= 4

    async def test_the_limit_is_shared_and_who_has_more_gets_what_others_leave(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on(shards=4)
        for n in range(100):
            change(service, stream.shards[2], "a", n)
        positions = {id_of(stream, shard): None for shard in stream.shards}
        reads = await changes.read(positions, limit=40)
        assert seen(changes, reads) == list(range(40))
        assert service.limits == [10, 10, 10, 10, 30]

    async def test_with_many_shards_each_has_its_turn(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on(shards=20)
        for shard in stream.shards:
            for n in range(100):
                change(service, shard, shard.id, n)
        consumer = Consumer(changes)
        for _ in range(6):
            before = len(consumer.seen)
            await consumer.consume(limit=16)
            assert 16 <= len(consumer.seen) - before <= 24
        assert {pk for pk, _ in consumer.seen} == {f"THING#{shard.id}" for shard in stream.shards}

    async def test_a_throttled_read_is_repeated(
        self, service: StreamsService, changes: DynamodbChangeLog, client: Client
    ) -> None:
        stream = service.turn_on()
        change(service, stream.shards[0], "a", 0)
        service.throttled.update({"GetRecords": 2, "GetShardIterator": 1})
        assert seen(changes, [await read_one(changes, id_of(stream, stream.shards[0]))]) == [0]
        assert client.usage.retries == {"LimitExceeded": 3}

    async def test_a_shard_that_cannot_be_read_does_not_hold_up_the_others(
        self, service: StreamsService, changes: DynamodbChangeLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        stream = service.turn_on(shards=3)
        for shard in stream.shards:
            change(service, shard, shard.id, 0)
        broken, *others = (id_of(stream, shard) for shard in stream.shards)
        service.broken = {stream.shards[0].id}
        with caplog.at_level(logging.WARNING, "tickler.table"):
            reads = await changes.read(dict.fromkeys([broken, *others]), limit=10)
        assert sorted(read.shard for read in reads) == others
        assert f"cannot read the shard {broken}" in caplog.text
        with pytest.raises(StoreUnavailable, match="GetRecords failed after 3 attempts"):
            await changes.read({read.shard: read.position for read in reads} | {broken: None}, limit=10)
        service.broken = set()
        assert len((await read_one(changes, broken)).records) == 1


class TestWhatIsNoChange:
    async def test_metadata_is_left_out_and_the_position_goes_on(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        number = [metadata_record(service, stream.shards[0]) for _ in range(3)][-1]
        read = await read_one(changes, id_of(stream, stream.shards[0]))
        assert (list(read.records), read.position, read.lost) == ([], number, False)

    async def test_a_change_behind_many_others_is_found_at_once(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        for _ in range(25):
            metadata_record(service, stream.shards[0])
        change(service, stream.shards[0], "a", 0)
        assert seen(changes, [await read_one(changes, id_of(stream, stream.shards[0]), limit=10)]) == [0]

    async def test_a_long_row_of_others_is_passed_in_bounded_steps(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        numbers = [metadata_record(service, stream.shards[0]) for _ in range(25)]
        read = await read_one(changes, id_of(stream, stream.shards[0]), limit=1)
        assert (list(read.records), read.position) == ([], numbers[9])

    async def test_an_item_of_another_program_is_left_out(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        service.put(stream.shards[0], "OTHER", None, {"x": {"S": "y"}})
        assert not (await read_one(changes, id_of(stream, stream.shards[0]))).records


class TestTrimming:
    async def test_a_trimmed_position_goes_on_at_the_oldest_record_and_says_so(
        self, service: StreamsService, client: Client
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        numbers = [change(service, shard, "a", n) for n in range(10)]
        service.trim(shard, 6)
        changes = another_log(client, service)
        read = await read_one(changes, id_of(stream, shard), numbers[2])
        assert (seen(changes, [read]), read.lost, read.ended) == ([6, 7, 8, 9], True, False)
        assert not (await read_one(changes, id_of(stream, shard), read.position)).lost

    async def test_a_loss_is_reported_once_also_where_nothing_is_left(self, service: StreamsService, client: Client) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        numbers = [change(service, shard, "a", n) for n in range(3)]
        service.trim(shard, 3)
        changes = another_log(client, service)
        read = await read_one(changes, id_of(stream, shard), numbers[0])
        assert (list(read.records), read.position, read.lost) == ([], None, True)
        change(service, shard, "a", 3)
        for log in (changes, another_log(client, service)):
            again = await read_one(log, id_of(stream, shard), read.position)
            assert (seen(log, [again]), again.lost) == ([3], False)

    async def test_what_is_trimmed_between_two_reads_is_noticed(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        for n in range(10):
            change(service, shard, "a", n)
        read = await read_one(changes, id_of(stream, shard), limit=3)
        service.trim(shard, 6)
        read = await read_one(changes, id_of(stream, shard), read.position)
        assert (seen(changes, [read]), read.lost) == ([6, 7, 8, 9], True)

    async def test_who_has_read_nothing_yet_has_lost_nothing(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        for n in range(5):
            change(service, shard, "a", n)
        service.trim(shard, 2)
        read = await read_one(changes, id_of(stream, shard))
        assert (seen(changes, [read]), read.lost) == ([2, 3, 4], False)

    async def test_a_shard_that_is_gone_has_ended_and_is_lost(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        number = change(service, shard, "a", 0)
        child = service.split(stream, shard)[0]
        stream.shards.remove(shard)
        read = await read_one(changes, id_of(stream, shard), number)
        assert (list(read.records), read.ended, read.lost) == ([], True, True)
        again = await read_one(changes, id_of(stream, shard), read.position)
        assert (again.ended, again.lost) == (True, False)
        assert not (await read_one(changes, id_of(stream, child))).lost

    async def test_a_shard_that_is_listed_but_not_found_is_tried_again(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        await changes.shards()
        shard = stream.shards.pop()
        with pytest.raises(StoreUnavailable, match=r"lists the shard .*, but cannot find it: try again"):
            await read_one(changes, id_of(stream, shard))
        stream.shards.append(shard)
        assert not (await read_one(changes, id_of(stream, shard))).lost
        stream.shards.remove(shard)
        service.now_s += 1
        assert (await read_one(changes, id_of(stream, shard))).lost

    async def test_an_expired_iterator_is_made_anew(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        shard = id_of(stream, stream.shards[0])
        change(service, stream.shards[0], "a", 0)
        read = await read_one(changes, shard)
        service.now_s += 16 * 60
        change(service, stream.shards[0], "a", 1)
        again = await read_one(changes, shard, read.position)
        assert (seen(changes, [read, again]), again.lost) == ([0, 1], False)
        assert service.requests["GetShardIterator"] == 2


class TestTheEnd:
    async def test_behind_it_are_only_changes_from_now_on(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on(shards=2)
        for shard in stream.shards:
            change(service, shard, shard.id, 0)
        end = await changes.end()
        assert set(end) == {id_of(stream, shard) for shard in stream.shards}
        assert seen(changes, await changes.read(end, limit=10)) == []
        for shard in stream.shards:
            change(service, shard, shard.id, 1)
        assert seen(changes, await changes.read(end, limit=10)) == [1, 1]

    async def test_of_a_closed_shard_it_is_its_end_and_its_children_are_read_from_their_beginning(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        parent = stream.shards[0]
        change(service, parent, "a", 0)
        child = service.split(stream, parent, into=1)[0]
        consumer = Consumer(changes)
        consumer.positions = dict(await changes.end())
        (grandchild,) = service.split(stream, child, into=1)
        change(service, grandchild, "a", 1)
        for _ in range(4):
            await consumer.consume()
            service.now_s += 1
        assert consumer.seen == [("THING#a", 1)]

    async def test_another_process_loses_nothing_and_may_see_the_last_minute_again(
        self, service: StreamsService, client: Client, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        change(service, shard, "a", 0)
        service.now_s += 2 * 60
        change(service, shard, "a", 1)
        end = await changes.end()
        change(service, shard, "a", 2)
        other = another_log(client, service)
        assert seen(other, await other.read(end, limit=10)) == [1, 2]
        assert seen(changes, await changes.read(end, limit=10)) == [2]

    async def test_two_at_the_same_instant_are_told_apart(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        stream = service.turn_on()
        first = await changes.end()
        change(service, stream.shards[0], "a", 0)
        second = await changes.end()
        assert seen(changes, await changes.read(second, limit=10)) == []
        assert seen(changes, await changes.read(first, limit=10)) == [0]

    async def test_one_that_nobody_has_read_from_for_a_day_may_have_lost_changes(
        self, service: StreamsService, client: Client, changes: DynamodbChangeLog
    ) -> None:
        stream = service.turn_on()
        shard = stream.shards[0]
        end = await changes.end()
        service.now_s += HOUR_S
        for n in range(4):
            change(service, shard, "a", n)
        service.now_s += 23.5 * HOUR_S
        service.trim(shard, 2)
        other = another_log(client, service)
        (read,) = await other.read(end, limit=10)
        assert (seen(other, [read]), read.lost) == ([2, 3], True)


class TestAReplacedStream:
    async def test_its_changes_come_before_those_of_the_new_one(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        old = service.turn_on()
        first = old.shards[0]
        consumer = Consumer(changes)
        change(service, first, "a", 0)
        await consumer.consume()
        change(service, first, "a", 1)
        last = service.split(old, first, into=1)[0]
        change(service, last, "a", 2)
        old.close()
        service.now_s += HOUR_S
        new = service.turn_on(shards=2)
        change(service, new.shards[0], "a", 3)
        shards = {shard.id: shard.parents for shard in await changes.shards()}
        assert shards[id_of(new, new.shards[0])] == shards[id_of(new, new.shards[1])] == (id_of(old, last),)
        for _ in range(4):
            await consumer.consume()
            service.now_s += 1
        assert consumer.seen == [("THING#a", n) for n in range(4)]
        assert not consumer.lost

    async def test_when_it_is_gone_what_was_not_read_of_it_is_lost_and_the_new_one_goes_on(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        old = service.turn_on()
        consumer = Consumer(changes)
        change(service, old.shards[0], "a", 0)
        await consumer.consume()
        service.now_s += 25 * HOUR_S
        service.streams.remove(old)
        new = service.turn_on()
        change(service, new.shards[0], "a", 2)
        for _ in range(3):
            await consumer.consume()
            service.now_s += 1
        assert consumer.seen == [("THING#a", 0), ("THING#a", 2)]
        assert consumer.lost == {id_of(old, old.shards[0])}

    async def test_that_had_other_images_is_left_out(self, service: StreamsService, changes: DynamodbChangeLog) -> None:
        service.turn_on("KEYS_ONLY").close()
        service.now_s += 1
        new = service.turn_on()
        assert await changes.shards() == [Shard(id_of(new, new.shards[0]))]

    async def test_of_an_earlier_table_of_the_same_name_is_left_out(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        service.turn_on().close()
        service.now_s += HOUR_S
        service.table_created_at_s = service.now_s
        new = service.turn_on()
        assert await changes.shards() == [Shard(id_of(new, new.shards[0]))]

    async def test_that_was_not_turned_on_again_is_an_error_with_the_remedy(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        service.turn_on().close()
        for attempt in (changes.shards(), changes.end()):
            with pytest.raises(SchemaMismatch, match="stream is off: run `tickler table create`, or open it with create=True"):
                await attempt

    async def test_with_other_images_is_an_error_with_the_remedy(
        self, service: StreamsService, changes: DynamodbChangeLog
    ) -> None:
        service.turn_on("NEW_IMAGE")
        with pytest.raises(SchemaMismatch, match="has NEW_IMAGE, and must have NEW_AND_OLD_IMAGES: turn it off, then run"):
            await changes.shards()


async def test_dynamodb_neither_counts_nor_prunes(changes: DynamodbChangeLog) -> None:
    assert await changes.waiting({"a": None}, limit=10) is None
    assert await changes.prune([{"a": None}], keep_ms=0, limit=10) == 0
