"""A change set of several stores, from its approval to its last event, with everything that an installation has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date, timedelta

import pytest

from change_desk import APPROVER, ChangeDesk
from event_receiver import EventReceiver, receiving, share_secrets
from pricebook.app import Settings, open_pricebook
from pricebook.demo.time_lapse import TimeLapse, work
from pricebook.model import Notice, UnsettledEdition
from tickler import ManualClock, new_key

DAY = date(2026, 3, 15)
ZONES = {"1": "Asia/Tokyo", "2": "Europe/Berlin", "3": "America/New_York"}
MIDNIGHTS = ["2026-03-14T15:00:00.000Z", "2026-03-14T23:00:00.000Z", "2026-03-15T04:00:00.000Z"]
PRICES = {store: {"P1": 200} for store in ZONES}


@pytest.fixture
async def receiver(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventReceiver]:
    monkeypatch.setenv("TICKLER_KEY", new_key())
    async with receiving(clock) as opened:
        yield opened


@pytest.fixture
async def desk(receiver: EventReceiver, clock: ManualClock) -> AsyncIterator[ChangeDesk]:
    settings = Settings(store="memory://", receivers=(receiver.receiver.url,), allow_networks=("127.0.0.0/8",))
    async with open_pricebook(settings, clock=clock) as book:
        await share_secrets(book.t, [receiver])
        for store, tz in ZONES.items():
            await book.switch.open_store(store, tz=tz)
        yield ChangeDesk(book, clock)


async def keys(desk: ChangeDesk) -> list[str]:
    """Return the keys of the schedules of all stores."""
    pages = [await desk.book.t.schedules.list(owner=f"store/{store}") for store in ZONES]
    return sorted(schedule.key for page in pages for schedule in page.items)


async def test_a_change_set_of_stores_in_three_zones_is_settled_store_by_store(
    desk: ChangeDesk, receiver: EventReceiver, clock: ManualClock
) -> None:
    found = await desk.approved(PRICES, day=DAY)
    await work(desk.book)
    assert await keys(desk) == MIDNIGHTS
    time = TimeLapse(desk.book, clock)
    await time.until(desk.book.now() + timedelta(days=13, hours=23, minutes=5))
    reached = await desk.change_sets.progress(APPROVER, found.id)
    assert (reached.sealed, (await desk.get(found.id)).state) == (3, "approved")
    await time.until(desk.book.now() + timedelta(hours=9))
    assert (await desk.get(found.id)).state == "settled"
    assert sorted((event["store"], event["type"]) for event in receiver.events) == [
        (store, kind) for store in ZONES for kind in ("prices.approved.v1", "prices.changed.v1")
    ]
    assert (await keys(desk), await desk.book.settling.overdue()) == ([], 0)


async def test_a_change_set_that_is_cancelled_takes_the_schedules_of_all_its_stores_along(
    desk: ChangeDesk, receiver: EventReceiver, clock: ManualClock
) -> None:
    found = await desk.approved(PRICES, day=DAY)
    await work(desk.book)
    await desk.change_sets.cancel(APPROVER, found.id, rev=found.rev)
    await work(desk.book)
    assert await keys(desk) == ["soon"] * 3
    await TimeLapse(desk.book, clock).until(desk.book.now() + timedelta(days=20))
    assert (await desk.get(found.id)).state == "cancelled"
    assert {event["type"] for event in receiver.events} == {"prices.approved.v1", "prices.withdrawn.v1"}
    assert [notice async for notice in desk.book.db.iterate(Notice.pending())] == []
    assert [entry async for entry in desk.book.db.iterate(UnsettledEdition.by_instant())] == []
