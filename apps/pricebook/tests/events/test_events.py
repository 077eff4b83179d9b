"""Receivers are told of each change of prices once: signed, in versioned types, soon after it was decided or took effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any

import pytest

from book import MARCH
from event_receiver import EventReceiver, receiving
from pricebook.errors import InvalidField
from pricebook.events import Receiver
from settled_book import MINUTE, SettledBook, ToldChangeSets, open_settled_book
from tickler import ManualClock, new_key
from tickler.errors import StoreUnavailable

TOMORROW = MARCH + timedelta(days=1)
LATER = MARCH + timedelta(days=2)
BEFORE, AFTER = {"P1": 100, "P2": 110}, {"P1": 200, "P2": 210}


@pytest.fixture
async def receiver(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventReceiver]:
    monkeypatch.setenv("TICKLER_KEY", new_key())
    async with receiving(clock) as opened:
        yield opened


@pytest.fixture
async def old_reader(receiver: EventReceiver, clock: ManualClock) -> AsyncIterator[EventReceiver]:
    async with receiving(clock, legacy=True) as opened:
        yield opened


@pytest.fixture
async def book(clock: ManualClock, receiver: EventReceiver, old_reader: EventReceiver) -> AsyncIterator[SettledBook]:
    async with open_settled_book("memory://", clock, [receiver, old_reader]) as opened:
        await opened.switch.open_store("1", tz="Europe/Berlin", channels=["WEB"])
        yield opened


@pytest.fixture
async def book_anywhere(any_url: str, clock: ManualClock, receiver: EventReceiver) -> AsyncIterator[SettledBook]:
    async with open_settled_book(any_url, clock, [receiver]) as opened:
        await opened.switch.open_store("1", tz="Europe/Berlin")
        yield opened


async def deliver(book: SettledBook) -> None:
    """Let the consumer follow, and send what is due by now."""
    await book.follow()
    await book.play(timedelta(0))


async def test_an_approval_is_announced_at_once_and_the_change_once_it_is_settled(
    book_anywhere: SettledBook, receiver: EventReceiver
) -> None:
    book = book_anywhere
    await book.change(AFTER, at=TOMORROW)
    await deliver(book)
    assert receiver.of(1) == [("prices.approved.v1",)]
    assert await book.notices() == []
    await book.play(TOMORROW + MINUTE)
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    assert len(receiver.received) == 2
    assert await book.notices() == []


async def test_events_say_when_prices_change_here_and_there_and_name_no_price(book: SettledBook, receiver: EventReceiver) -> None:
    await book.change(AFTER, at=date(2026, 3, 15), until=MARCH + timedelta(days=20))
    await deliver(book)
    assert receiver.events == [
        {
            "type": "prices.approved.v1",
            "store": "1",
            "edition": 1,
            "effectiveFrom": "2026-03-14T23:00:00Z",
            "localTime": "2026-03-15T00:00:00",
            "timeZone": "Europe/Berlin",
            "ends": ["2026-03-21T00:00:00Z"],
            "takesBack": None,
        }
    ]
    await book.play(MARCH + timedelta(days=15))
    assert receiver.events[1:] == [
        {
            "type": "prices.changed.v1",
            "store": "1",
            "edition": 1,
            "effectiveFrom": "2026-03-14T23:00:00Z",
            "localTime": "2026-03-15T00:00:00",
            "timeZone": "Europe/Berlin",
            "reason": "began",
        }
    ]


async def test_readers_of_the_first_pricing_service_get_what_they_know(book: SettledBook, old_reader: EventReceiver) -> None:
    await book.change(AFTER, at=date(2026, 3, 15), until=MARCH + timedelta(days=20))
    await book.follow()
    await book.play(MARCH + timedelta(days=16))
    await book.play(MARCH + timedelta(days=30))
    assert sorted(old_reader.events, key=str) == [
        {"store": "1", "channel": channel, "effectiveDate": at}
        for channel in ("ALL", "WEB")
        for at in ("2026-03-15T00:00:00", "2026-03-21T01:00:00")
    ]


async def test_a_withdrawn_change_is_announced_and_never_told_as_a_change(book: SettledBook, receiver: EventReceiver) -> None:
    number = await book.change(AFTER, at=TOMORROW)
    await book.switch.cancel("1", number)
    await deliver(book)
    await book.play(LATER)
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.withdrawn.v1",)]


async def test_a_change_that_was_never_approved_is_not_told_of(book: SettledBook, receiver: EventReceiver) -> None:
    number = await book.stage(AFTER, at=TOMORROW)
    await book.switch.cancel("1", number)
    await book.follow()
    await book.play(LATER)
    assert receiver.events == []
    assert (await book.head()).editions == {}


async def test_a_change_that_is_withdrawn_while_it_counts_is_told_as_two_changes(
    book: SettledBook, receiver: EventReceiver
) -> None:
    number = await book.change(AFTER, until=TOMORROW)
    book.pass_()
    await book.switch.cancel("1", number)
    await book.follow()
    await book.play(LATER)
    assert receiver.of(1) == [
        ("prices.approved.v1",),
        ("prices.changed.v1", "began"),
        ("prices.changed.v1", "withdrawn"),
        ("prices.withdrawn.v1",),
    ]


async def test_a_moved_change_is_announced_again(book: SettledBook, receiver: EventReceiver) -> None:
    number = await book.change(AFTER, at=TOMORROW)
    await deliver(book)
    book.pass_()
    await book.switch.move("1", number, LATER)
    await deliver(book)
    assert [event["effectiveFrom"] for event in receiver.events] == ["2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"]


async def test_what_has_changed_since_it_was_read_is_not_told(book: SettledBook, receiver: EventReceiver) -> None:
    """A process that was slow must not delete the notice of what has happened meanwhile."""
    number = await book.change(AFTER, at=TOMORROW)
    (read,) = await book.events.pending("1")
    book.pass_()
    await book.switch.move("1", number, LATER)
    assert await book.events.send(read, await book.head()) == 0
    await deliver(book)
    assert [event["effectiveFrom"] for event in receiver.events] == ["2026-03-03T00:00:00Z"]


async def test_each_end_of_values_is_told_at_its_instant(book: SettledBook, receiver: EventReceiver) -> None:
    number = await book.stage({"P1": 200}, until=TOMORROW)
    await book.stage_to("1", number, {"P2": 210}, until=LATER)
    await book.switch.seal("1", number)
    await book.follow()
    await book.play(TOMORROW - MINUTE)
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    await book.play(TOMORROW)
    assert receiver.of(1)[2:] == [("prices.changed.v1", "ended")]
    await book.play(LATER + MINUTE)
    ends = [event["effectiveFrom"] for event in receiver.events if event.get("reason") == "ended"]
    assert ends == ["2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"]
    assert await book.notices() == []
    assert await book.schedules() == {}


async def test_ends_that_passed_before_the_store_was_settled_are_told_then(book: SettledBook, receiver: EventReceiver) -> None:
    await book.change({"P1": 200}, until=TOMORROW)
    book.clock.set(LATER)
    await book.settling.settle("1")
    await book.play(timedelta(0))
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.changed.v1", "began"), ("prices.changed.v1", "ended")]


async def test_the_end_of_an_edition_that_was_taken_back_is_not_told(book: SettledBook, receiver: EventReceiver) -> None:
    number = await book.change(AFTER, until=LATER)
    book.pass_(2 * MINUTE)
    await book.settling.settle("1")
    assert await book.notices() == [(1, "ended")]
    assert await book.switch.roll_back("1", number) == 2
    book.pass_(2 * MINUTE)
    await book.settling.settle("1")
    assert await book.notices() == []
    await book.follow()
    await book.play(LATER + MINUTE)
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    assert receiver.of(2) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    assert [event["takesBack"] for event in receiver.events if event["type"] == "prices.approved.v1"] == [None, 1]


async def test_two_processes_that_tell_of_the_same_thing_tell_it_once(book: SettledBook, receiver: EventReceiver) -> None:
    await book.change(AFTER)
    book.pass_()
    await asyncio.gather(*(book.settling.settle("1") for _ in range(3)), return_exceptions=True)
    await book.settling.settle("1")
    await book.play(timedelta(0))
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.changed.v1", "began")]
    assert len(receiver.received) == 2


async def test_a_store_with_many_channels_sends_all_of_its_events_once(clock: ManualClock, old_reader: EventReceiver) -> None:
    """More than one transaction has: each of them is sent once, and the notice is deleted with the last."""
    async with open_settled_book("memory://", clock, [old_reader]) as book:
        await book.switch.open_store("1", channels=[f"CHANNEL{n}" for n in range(45)])
        await book.change(AFTER)
        book.pass_()
        await book.switch.settle("1")
        write, written = book.db.engine.write, 0

        async def failing(*args: Any, parts: Any = (), **kwargs: Any) -> Any:
            nonlocal written
            written += bool(parts)
            if written == 2:
                raise StoreUnavailable("throttled")
            return await write(*args, parts=parts, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(book.db.engine, "write", failing)
            with pytest.raises(StoreUnavailable):
                await book.settling.settle("1")
        assert (1, "settled") in await book.notices()
        await book.settling.settle("1")
        assert await book.notices() == []
        await book.play(timedelta(0))
        assert len(old_reader.received) == len({each["channel"] for each in old_reader.events}) == 46


async def test_a_receiver_that_is_down_gets_its_events_later_and_holds_up_nobody(
    book: SettledBook, receiver: EventReceiver, old_reader: EventReceiver
) -> None:
    receiver.statuses = [503, 500]
    await book.change(AFTER)
    await book.follow()
    await book.play(2 * MINUTE)
    assert len(old_reader.events) == 2
    await book.play(timedelta(hours=2))
    assert receiver.of(1) == [("prices.approved.v1",), ("prices.changed.v1", "began")]


async def test_events_that_are_not_signed_with_the_secret_of_the_receiver_are_refused_there(
    book: SettledBook, receiver: EventReceiver
) -> None:
    await book.t.secrets.rotate(receiver.receiver.owner, overlap=0)
    await book.change(AFTER)
    await deliver(book)
    assert (receiver.received, receiver.forged) == ([], 1)


async def test_change_sets_learn_of_their_editions_that_count_and_of_no_others(clock: ManualClock) -> None:
    change_sets = ToldChangeSets()
    async with open_settled_book("memory://", clock, change_sets=change_sets) as book:
        await book.switch.open_store("1")
        first = await tell_change_sets(book)
    assert change_sets.told == [("a", "1", first)]


async def tell_change_sets(book: SettledBook) -> int:
    """Settle an edition of the change set a; those of b and c are cancelled, c while it counts."""

    async def sealed(change_set: str) -> int:
        number = await book.switch.open_edition("1", TOMORROW, change_set=change_set)
        await book.switch.seal("1", number)
        return number

    first, second, third = await sealed("a"), await sealed("b"), await sealed("c")
    await book.switch.cancel("1", second)
    await book.follow()
    book.clock.set(TOMORROW)
    await book.switch.cancel("1", third)
    await book.follow()
    await book.play(LATER)
    assert (await book.head()).editions == {}
    return first


def test_a_receiver_is_an_address_and_may_be_one_of_the_first_service() -> None:
    assert Receiver.read(" https://till.example/events ") == Receiver("https://till.example/events")
    assert Receiver.read("legacy:https://till.example/events").legacy
    assert Receiver.read("https://a.example").owner != Receiver.read("legacy:https://a.example").owner
    with pytest.raises(InvalidField, match="does not begin with http"):
        Receiver.read("till.example")
