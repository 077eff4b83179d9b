"""Random histories of a stream: nothing is lost, and changes of an item come in order, whatever happens to shards and readers."""

from __future__ import annotations

from random import Random

import pytest
from table.streams_service import FakeShard, FakeStream, StreamsService
from table.test_dynamodb_streams_service import Consumer, another_log, change, client, metadata_record, pauses, service

from tickler.dynamo.client import Client

__all__ = ["client", "pauses", "service"]

ITEMS = [f"i{n}" for n in range(6)]
STEPS = 120


class Writers:
    """Write to the shards that are open, each of which has some of the items."""

    def __init__(self, service: StreamsService, chance: Random) -> None:
        self.service = service
        self.chance = chance
        self.written = dict.fromkeys(ITEMS, 0)
        self.stream: FakeStream
        self.items: list[tuple[FakeShard, list[str]]] = []
        self.turn_on()

    def turn_on(self) -> None:
        self.service.now_s += 1
        self.stream = self.service.turn_on()
        self.items = [(self.stream.shards[0], ITEMS)]

    def replace(self) -> None:
        self.stream.close()
        self.turn_on()

    def write(self) -> None:
        shard, items = self.chance.choice(self.items)
        if not items or self.chance.random() < 0.3:
            metadata_record(self.service, shard)
            return
        item = self.chance.choice(items)
        change(self.service, shard, item, self.written[item])
        self.written[item] += 1

    def split(self) -> None:
        """Divide the items of a shard; or none, when a shard is only continued."""
        shard, items = self.items.pop(self.chance.randrange(len(self.items)))
        into = self.chance.choice([1, 2])
        children = self.service.split(self.stream, shard, into)
        for child in children:
            child.empty_pages = self.chance.choice([0, 0, 2])
        self.items += [(child, items[number::into]) for number, child in enumerate(children)]

    def step(self) -> None:
        happening = self.chance.random()
        if happening < 0.8:
            self.write()
        elif happening < 0.97 and len(self.items) < 12:
            self.split()
        else:
            self.replace()


@pytest.mark.parametrize("number", range(4))
async def test_every_change_comes_once_and_in_order(number: int, seed: int, service: StreamsService, client: Client) -> None:
    chance = Random(f"{seed}-{number}")
    service.shards_a_page, service.records_a_page = chance.choice([1, 3, 100]), chance.choice([2, 5, 1_000])
    writers = Writers(service, chance)
    consumer = Consumer(another_log(client, service))
    for _ in range(STEPS):
        for _ in range(chance.randrange(4)):
            writers.step()
        service.now_s += chance.choice([0, 0, 0.3, 5, 1_000])  # the last lets iterators expire
        service.throttled["GetRecords"] = chance.choice([0, 0, 1])
        await consumer.consume(limit=chance.choice([1, 3, 100]))
        if chance.random() < 0.1:
            consumer.changes = another_log(client, service)  # the process starts again
    for _ in range(400):
        if sum(writers.written.values()) == len(consumer.seen):
            break
        service.now_s += 1
        await consumer.consume()
    by_item: dict[str, list[int]] = {item: [] for item in ITEMS}
    for pk, n in consumer.seen:
        by_item[pk.removeprefix("THING#")].append(n)
    assert by_item == {item: list(range(written)) for item, written in writers.written.items()}
    assert not consumer.lost
