"""Subscribers get every attempt, of this process and, through the store, of others; without subscribers nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tickler import Delivery, Policy, PythonTarget, Schedule, Tickler, connect
from tickler.records.activity import Event
from tickler.records.kinds import ACTIVITY
from tickler.server.event_stream import EventStream, events_of

ONE_ATTEMPT = Policy(attempts=1)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.deliver.activity_publisher.UNWATCHED_PAUSE_S", 0.05)
    monkeypatch.setattr("tickler.deliver.activity_publisher.PUBLISH_PAUSE_S", 0.05)
    monkeypatch.setattr("tickler.server.event_stream.POLL_S", 0.05)


@asynccontextmanager
async def worker(url: str) -> AsyncIterator[Tickler]:
    """A running worker with its own connection."""
    async with connect(url) as tickler:

        @tickler.handler("fails")
        async def fails(delivery: Delivery) -> None:
            raise ConnectionError("nobody there")

        running = asyncio.create_task(tickler.run())
        yield tickler
        tickler.stop()
        await running


async def watched(live: EventStream, owner: str | None, number: int) -> list[Event]:
    found: list[Event] = []
    with live.subscribe() as queue:
        async with asyncio.timeout(20):
            async for event in events_of(queue, owner, 1.0):
                if event is not None:
                    found.append(event)
                    if len(found) == number:
                        break
    return found


@pytest.fixture
async def following(tmp_path: Path) -> AsyncIterator[tuple[EventStream, str]]:
    url = f"sqlite:///{tmp_path}/live.db"
    async with connect(url) as t:
        live = EventStream()
        task = asyncio.create_task(live.follow(t.store.records, t.clock, lambda: t.own_workers))
        yield live, url
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_attempts_of_workers_elsewhere_are_heard_of_once_each_while_somebody_watches(
    following: tuple[EventStream, str],
) -> None:
    live, url = following
    async with worker(url) as t:
        for key, handler in (("good", "echo"), ("bad", "fails")):
            await t.schedules.put(
                Schedule(owner="u1", key=key, when="0 0 1 1 *", target=PythonTarget(handler), policy=ONE_ATTEMPT)
            )
        await t.trigger("u1", "good")
        await asyncio.sleep(0.5)
        assert await t.store.records.list(ACTIVITY, now_ms=t.now_ms()) == [], "nobody watches, and nothing is written"
        watching = asyncio.create_task(watched(live, None, 12))
        await asyncio.sleep(0.5)
        for _ in range(6):
            await t.trigger("u1", "good")
            await t.trigger("u1", "bad")
        events = await watching
    assert len({event.fire_id for event in events}) == 12
    assert {(event.key, event.happened, event.gave_up) for event in events} == {
        ("good", "delivered", False),
        ("bad", "failed", True),
    }
    assert {event.detail for event in events if event.key == "bad"} == {"ConnectionError: nobody there"}


async def test_whoever_is_bound_to_an_owner_hears_of_no_other(following: tuple[EventStream, str]) -> None:
    live, url = following
    async with worker(url) as t:
        for owner in ("u1", "u2"):
            await t.schedules.put(Schedule(owner=owner, key="good", when="0 0 1 1 *", target=PythonTarget("echo")))
        watching = asyncio.create_task(watched(live, "u2", 3))
        await asyncio.sleep(0.5)
        for _ in range(3):
            await t.trigger("u1", "good")
            await t.trigger("u2", "good")
        assert {event.owner for event in await watching} == {"u2"}


async def test_a_worker_that_tells_what_this_version_does_not_read_silences_no_other(tmp_path: Path) -> None:
    async with worker(f"sqlite:///{tmp_path}/newer.db") as t:
        records, live = t.store.records, EventStream()
        following = asyncio.create_task(live.follow(records, t.clock, lambda: ()))
        watching = asyncio.create_task(watched(live, None, 2))
        told = b'{"number": 1, "events": [{"owner": "u1", "key": "k", "nominal_at": 1, "at": 1, "attempt": 1, "happened": %s}]}'
        for name, happened in (("newest", b"[5]"), ("newer", b'"teleported"'), ("older", b'"delivered"')):
            await records.put(ACTIVITY, name, told % happened, now_ms=t.now_ms(), expires_at=t.now_ms() + 60_000)
        assert sorted(event.happened for event in await watching) == ["delivered", "teleported"]
        assert not following.done()
        following.cancel()


async def test_attempts_of_this_process_are_heard_of_at_once_and_not_again_through_the_store(tmp_path: Path) -> None:
    async with worker(f"sqlite:///{tmp_path}/own.db") as t:
        live = EventStream()
        t.listen(live)
        following = asyncio.create_task(live.follow(t.store.records, t.clock, lambda: t.own_workers))
        await t.schedules.put(Schedule(owner="u1", key="good", when="0 0 1 1 *", target=PythonTarget("echo")))
        watching = asyncio.create_task(watched(live, None, 3))
        await asyncio.sleep(0.5)
        for _ in range(3):
            await t.trigger("u1", "good")
        assert len({event.fire_id for event in await watching}) == 3
        await asyncio.sleep(0.3)
        assert len(live.recent) == 3
        following.cancel()
