"""With a replicated table, the region that is a store's home acts for it, and no other.

Two tables stand for the replicas of one. A script copies what was written in one to the other, as replication would.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from book import MARCH
from event_receiver import EventReceiver, receiving
from pricebook.editions.head_writes import Cause
from pricebook.errors import InvalidField, NotFound
from pricebook.model import AuditEntry
from pricebook.settling import SettlingOptions
from settled_book import MINUTE, SettledBook, open_settled_book
from tickler import ManualClock, new_key

TOMORROW = MARCH + timedelta(days=1)
KEY = "2026-03-02T00:00:00.000Z"
BEFORE, AFTER = {"P1": 100, "P2": 110}, {"P1": 200, "P2": 210}
COLUMNS = "pk, sk, entity, expires_at, gsi1pk, gsi1sk, gsi2pk, gsi2sk, body"


def replicate(source: SettledBook, target: SettledBook) -> None:
    """Make the items of one table those of another, without any of our code."""
    to, of = (urlsplit(book.url).path[1:] for book in (target, source))
    changes = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[2:])
    with closing(sqlite3.connect(to)) as connection, connection:
        connection.execute("ATTACH ? AS source", (of,))
        copied = f"INSERT INTO pricebook ({COLUMNS}) SELECT {COLUMNS} FROM source.pricebook WHERE true"
        connection.execute(f"{copied} ON CONFLICT (pk, sk) DO UPDATE SET {changes} WHERE body IS NOT excluded.body")
        connection.execute("DELETE FROM pricebook WHERE (pk, sk) NOT IN (SELECT pk, sk FROM source.pricebook)")


@pytest.fixture
async def receiver(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventReceiver]:
    monkeypatch.setenv("TICKLER_KEY", new_key())
    async with receiving(clock) as opened:
        yield opened


@pytest.fixture
async def regions(
    receiver: EventReceiver, clock: ManualClock, tmp_path: object
) -> AsyncIterator[tuple[SettledBook, SettledBook]]:
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(
                open_settled_book(
                    f"sqlite:///{tmp_path}/{region}.db",
                    clock,
                    [receiver],
                    options=SettlingOptions(region=region, spread=timedelta(0)),
                )
            )
            for region in ("eu-west-1", "us-east-1")
        ]
        yield opened[0], opened[1]


async def a_change(eu: SettledBook, us: SettledBook) -> None:
    """Let a store whose home is in Europe have a change tomorrow, in both tables."""
    await eu.a_store(prices=BEFORE)
    await eu.follow()
    await eu.change(AFTER, at=TOMORROW)
    replicate(eu, us)


async def test_exactly_one_region_makes_a_schedule_and_sends_events(
    regions: tuple[SettledBook, SettledBook], receiver: EventReceiver
) -> None:
    eu, us = regions
    await a_change(eu, us)
    await us.follow()
    await eu.follow()
    assert (await eu.due(), await us.due()) == ({KEY: TOMORROW}, {})
    await eu.play(TOMORROW + MINUTE)
    replicate(eu, us)
    await us.play(MINUTE)
    await eu.play(MINUTE)
    assert receiver.of(2) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    assert len(receiver.received) == len(receiver.events) == 4
    assert await us.shown() == AFTER
    assert "eu-west-1 acts for this store" in await us.settling.settle("1")
    assert (await us.settling.sweep(), await us.settling.overdue()) == (0, 0)


async def test_moving_home_hands_over_schedules_with_nothing_lost_and_nothing_twice(
    regions: tuple[SettledBook, SettledBook], receiver: EventReceiver
) -> None:
    eu, us = regions
    await a_change(eu, us)
    await eu.follow()
    await us.follow()
    await eu.settling.move_home("1", "us-east-1")
    await eu.follow()
    assert await eu.schedules() == {}
    replicate(eu, us)
    await us.follow()
    assert await us.due() == {KEY: TOMORROW}
    await us.play(TOMORROW + MINUTE)
    replicate(us, eu)
    await eu.follow()
    assert not (await eu.play(MINUTE)).of("store/1").attempts
    assert (await eu.head()).editions == (await us.head()).editions == {}
    assert receiver.of(2) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    assert len(receiver.received) == 4


async def test_a_region_takes_a_store_over_from_one_that_no_longer_answers(
    regions: tuple[SettledBook, SettledBook], receiver: EventReceiver
) -> None:
    eu, us = regions
    await a_change(eu, us)
    await us.follow()
    us.clock.set(TOMORROW + timedelta(hours=1))  # nothing was settled, and the approval was not announced
    await us.settling.move_home("1", "us-east-1")
    await us.follow()
    await us.play(2 * MINUTE)
    assert (await us.head()).editions == {}
    assert receiver.of(2) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    replicate(us, eu)
    await eu.follow()
    assert await eu.schedules() == {}


async def test_the_ends_of_values_are_told_by_the_region_that_is_home_by_then(
    regions: tuple[SettledBook, SettledBook], receiver: EventReceiver
) -> None:
    eu, us = regions
    await eu.a_store(prices=BEFORE)
    await eu.change(AFTER, until=TOMORROW)
    await eu.follow()
    await eu.play(2 * MINUTE)
    assert set(await eu.schedules()) == {f"ends/{KEY}"}
    replicate(eu, us)
    await us.settling.move_home("1", "us-east-1")
    await us.follow()
    assert set(await us.schedules()) == {f"ends/{KEY}"}
    replicate(us, eu)
    await eu.follow()
    assert await eu.schedules() == {}
    await us.play(TOMORROW + MINUTE)
    assert receiver.of(2)[-1] == ("prices.changed.v1", "ended")
    assert len(receiver.received) == len(receiver.events)


async def test_stores_without_a_home_are_those_of_processes_without_a_region(
    regions: tuple[SettledBook, SettledBook], clock: ManualClock
) -> None:
    eu, _ = regions
    await eu.switch.open_store("2")
    await eu.change({"P1": 1}, store="2", at=TOMORROW)
    await eu.follow()
    assert await eu.schedules("2") == {}
    clock.set(TOMORROW + timedelta(hours=1))
    assert (await eu.settling.sweep(), await eu.settling.overdue()) == (0, 2), "what nobody does is seen"


async def test_a_move_is_in_the_audit(regions: tuple[SettledBook, SettledBook]) -> None:
    eu, us = regions
    await a_change(eu, us)
    for _ in range(2):
        await eu.settling.move_home("1", "us-east-1", cause=Cause("ada", "the region is down"))
    (entry,) = [each async for each in eu.db.iterate(AuditEntry.key("store/1"))]
    assert (entry.action, entry.actor, entry.store) == ("move_home", "ada", "1")
    assert entry.reason == "from eu-west-1 to us-east-1: the region is down"


async def test_home_is_a_region_of_a_store_that_there_is(regions: tuple[SettledBook, SettledBook]) -> None:
    eu, _ = regions
    with pytest.raises(NotFound):
        await eu.settling.move_home("9", "us-east-1")
    with pytest.raises(InvalidField, match="is not a region"):
        await eu.settling.move_home("1", "mars/1")
