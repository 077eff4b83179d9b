"""Parts of streams by themselves: what an event is, where failing changes are parked, and how a consumer is doing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from tickler.database.memory import MemoryDatabase
from tickler.errors import ChangeNotFound, InvalidInput
from tickler.table import Attr, Entity, Index, Key, Part, Table, attr, changed, created, entered, left, removed
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.streams.events import Event
from tickler.table.streams.parking import ParkedChange, Parking, count_parked
from tickler.table.streams.status import (
    LOST_SHOWN_MS,
    STOPPED_AFTER_MS,
    UNCOUNTED_STOPPED_AFTER_MS,
    ConsumerStatus,
)
from tickler.testing.stream_fixtures import NOW, STREAMED, Task, later, task

NOW_MS = int(NOW.timestamp() * 1000)

other = Table("other", stream=True)


class Size(Part):
    width: Attr[int] = attr(default=0)
    height: Attr[int] = attr(default=0)


class Parcel(Entity, table=other):
    id: Attr[str] = attr()
    size: Attr[Size] = attr(default=Size())
    key = Key("PARCEL" / id, "PARCEL")
    wide = Index("gsi1", "WIDE", id, when=size[Size.width] > 10)


# Events.

OPEN, LARGE, DONE, DUE = task(1), task(1, size=5), task(1, status="done"), task(1, status="done", due_at=NOW)
LATER = task(1, status="done", due_at=later(hours=1))


@pytest.mark.parametrize(
    ("event", "happens"),
    [
        (created(Task), [(None, OPEN), (None, DONE)]),
        (removed(Task), [(OPEN, None), (DONE, None), (DUE, None)]),
        (changed(Task), [(OPEN, LARGE), (OPEN, DONE), (DONE, OPEN), (DONE, DUE), (DUE, LATER), (DUE, DONE)]),
        (changed(Task.size), [(OPEN, LARGE)]),
        (changed(Task.size, Task.status), [(OPEN, LARGE), (OPEN, DONE), (DONE, OPEN)]),
        (changed(Task.due_at), [(DONE, DUE), (DUE, LATER), (DUE, DONE)]),
        (entered(Task.open), [(None, OPEN), (DONE, OPEN)]),
        (left(Task.open), [(OPEN, None), (OPEN, DONE)]),
        (entered(Task.due), [(DONE, DUE)]),
        (left(Task.due), [(DUE, DONE), (DUE, None)]),
    ],
    ids=repr,
)
def test_an_event_happens_in_these_changes_and_in_no_other(event: Event[Any, Any], happens: list[tuple[Any, Any]]) -> None:
    changes = [
        (None, OPEN), (None, DONE), (OPEN, None), (DONE, None), (DUE, None), (OPEN, LARGE), (OPEN, DONE), (DONE, OPEN),
        (DONE, DUE), (DUE, LATER), (DUE, DONE),
    ]  # fmt: skip
    assert [change for change in changes if event.happened(*change)] == [change for change in changes if change in happens]


def test_an_item_that_moves_within_an_index_neither_enters_nor_leaves_it() -> None:
    assert not entered(Task.due).happened(DUE, LATER)
    assert not left(Task.due).happened(DUE, LATER)


def test_an_attribute_inside_another_is_watched_by_itself() -> None:
    small, wide, high = (Parcel(id="p", size=size) for size in (Size(), Size(width=20), Size(height=20)))
    assert changed(Parcel.size[Size.width]).happened(small, wide)
    assert not changed(Parcel.size[Size.width]).happened(small, high)
    assert changed(Parcel.size).happened(small, high)
    assert entered(Parcel.wide).happened(small, wide)
    assert not entered(Parcel.wide).happened(small, high)


@pytest.mark.parametrize(
    ("event", "arguments", "said"),
    [
        (created, (task(1),), "is not an entity: pass a class such as Order"),
        (created, (datetime,), "is not an entity: pass a class such as Order"),
        (created, ("Task",), "is not an entity: pass a class such as Order"),
        (removed, (None,), "is not an entity: pass a class such as Order"),
        (removed, (Task.open,), "is not an entity: pass a class such as Order"),
        (changed, (datetime,), "is not an entity: pass a class such as Order"),
        (changed, ("status",), "pass one entity, or attributes such as Order.status, not 'status'"),
        (changed, (Task.open,), "pass one entity, or attributes such as Order.status"),
        (
            changed,
            (
                Task.size,
                "status",
            ),
            "pass one entity, or attributes such as Order.status, not 'status'",
        ),
        (
            changed,
            (
                Task,
                Task.size,
            ),
            "pass one entity, or attributes",
        ),
        (
            changed,
            (
                Task.size,
                Parcel.size,
            ),
            "all attributes must be of one entity",
        ),
        (entered, (Task,), "entered: pass an index of an entity, such as Order.pending"),
        (entered, (Task.key,), "entered: pass an index of an entity, such as Order.pending"),
        (left, (Task.status,), "left: pass an index of an entity, such as Order.pending"),
        (left, ("open",), "left: pass an index of an entity, such as Order.pending, not 'open'"),
    ],
)
def test_what_no_event_is_made_of_is_refused_with_the_remedy(event: Any, arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        event(*arguments)


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (created(Task), "created(Task)"),
        (changed(Task), "changed(Task)"),
        (entered(Task.open), "entered(Task.open)"),
        (left(Task.due), "left(Task.due)"),
    ],
)
def test_an_event_is_shown_as_it_is_written(event: Event[Any, Any], shown: str) -> None:
    assert repr(event) == shown


# Parking.


def parked(position: int, item: str, error: str = "ValueError: no") -> ParkedChange:
    return ParkedChange(ChangeRecord("0", str(position), 0, "Task", item, "TASK", None, b""), error, 1, NOW_MS)


@pytest.fixture
async def engine() -> MemoryEngine:
    engine = MemoryEngine(STREAMED, MemoryDatabase())
    await engine.open(create=True)
    return engine


@pytest.fixture
def parking(engine: MemoryEngine) -> Parking:
    return Parking(engine.metadata, "it", 5)


async def ids(parking: Parking) -> list[str]:
    return [each.id for each in await parking.listed(limit=100)]


async def due_ids(parking: Parking) -> list[str]:
    return [key.split("/")[2].lstrip("0") for key in await parking.due()]


async def test_only_the_first_of_an_item_is_due_and_only_if_asked_for(parking: Parking) -> None:
    for position, item in ((9, "a"), (10, "b"), (11, "a"), (100, "b")):
        assert await parking.park(parked(position, item))
    assert await ids(parking) == ["9", "10", "11", "100"]
    assert await due_ids(parking) == []
    assert await parking.ask_again("11") == 1
    assert await due_ids(parking) == [], "9 is before it"
    assert await parking.ask_again("9") == 1
    assert await due_ids(parking) == ["9"]
    assert await parking.discard("9") == 1
    assert await due_ids(parking) == ["11"]
    assert await parking.ask_again(None) == 3
    assert await due_ids(parking) == ["10", "11"]
    assert await parking.discard(None) == 3
    assert (await ids(parking), await due_ids(parking)) == ([], [])


async def test_one_that_waits_behind_another_is_due_as_soon_as_that_is_gone(parking: Parking) -> None:
    await parking.park(parked(1, "a"))
    await parking.park(parked(2, "a"), again=True)
    assert await due_ids(parking) == []
    await parking.discard("1")
    assert await due_ids(parking) == ["2"]


async def test_an_item_is_blocked_while_one_of_its_changes_is_parked(parking: Parking, engine: MemoryEngine) -> None:
    await parking.park(parked(1, "a"))
    elsewhere = Parking(engine.metadata, "it", 5)
    assert parking.is_blocked(parked(2, "a").record)
    assert not parking.is_blocked(parked(2, "b").record)
    assert not elsewhere.is_blocked(parked(2, "a").record)
    await elsewhere.refresh()
    assert elsewhere.is_blocked(parked(2, "a").record)
    await elsewhere.discard("1")
    await parking.refresh()
    assert not parking.is_blocked(parked(2, "a").record)


async def test_no_more_than_allowed_are_parked_and_one_may_come_twice(parking: Parking) -> None:
    for position in range(5):
        assert await parking.park(parked(position, "a"))
    assert not await parking.park(parked(5, "a"))
    assert await parking.park(parked(4, "a", "another error"))
    assert [each.error for each in await parking.listed(limit=9)] == ["ValueError: no"] * 5
    await parking.discard("0")
    assert await parking.park(parked(5, "a"))


async def test_one_process_at_a_time_claims_a_change(parking: Parking, engine: MemoryEngine) -> None:
    elsewhere = Parking(engine.metadata, "it", 5)
    await parking.park(parked(1, "a"))
    await parking.ask_again(None)
    (key,) = await parking.due()
    claimed = await parking.claim(key, NOW_MS, NOW_MS + 10)
    assert claimed is not None
    assert await elsewhere.claim(key, NOW_MS + 9, NOW_MS + 20) is None
    taken = await elsewhere.claim(key, NOW_MS + 10, NOW_MS + 20)
    assert taken is not None, "the claim of a process that died ends"
    assert await parking.extend(*claimed, NOW_MS + 30) is None, "it is lost to the process that had it"
    assert await elsewhere.extend(*taken, NOW_MS + 30) is not None


async def test_a_released_change_keeps_its_new_error_and_is_not_tried_again_unasked(parking: Parking) -> None:
    await parking.park(parked(1, "a"))
    await parking.ask_again("1")
    (key,) = await parking.due()
    claimed = await parking.claim(key, NOW_MS, NOW_MS + 10)
    assert claimed is not None
    await parking.release(claimed[0], replace(claimed[1], error="worse", attempts=6))
    (shown,) = await parking.listed(limit=9)
    assert (shown.error, shown.attempts, shown.claimed_until_ms) == ("worse", 6, 0)
    assert await due_ids(parking) == []


async def test_a_change_that_is_gone_cannot_be_claimed(parking: Parking) -> None:
    await parking.park(parked(1, "a"))
    await parking.ask_again(None)
    (key,) = await parking.due()
    await parking.discard(None)
    assert await parking.claim(key, NOW_MS, NOW_MS + 10) is None


@pytest.mark.parametrize("id", ["2", "", "x", "0/1"])
async def test_an_unknown_id_is_refused(parking: Parking, id: str) -> None:
    await parking.park(parked(1, "a"))
    with pytest.raises(ChangeNotFound, match=r"no parked change has the id .*: list them with `tickler table parked`"):
        await parking.ask_again(id)
    with pytest.raises(ChangeNotFound, match="no parked change has the id"):
        await parking.discard(id)
    assert await ids(parking) == ["1"]


async def test_consumers_do_not_see_each_others_parked_changes(engine: MemoryEngine) -> None:
    one, longer = Parking(engine.metadata, "it", 5), Parking(engine.metadata, "it.2", 5)
    await one.park(parked(1, "a"))
    await longer.park(parked(1, "a"))
    await longer.park(parked(2, "b"))
    assert (await ids(one), await ids(longer)) == (["1"], ["1", "2"])
    assert await count_parked(engine.metadata) == {"it": 1, "it.2": 2}
    await one.discard(None)
    assert await ids(longer) == ["1", "2"]


# Status.


def status(**fields: Any) -> ConsumerStatus:
    figures = {"shards": 8, "held": 0, "waiting": 0, "parked": 0}
    times = {"moved_at_ms": NOW_MS, "lost_at_ms": 0, "stuck_at_ms": None, "now_ms": NOW_MS}
    return ConsumerStatus(table="desk", name="it", **{**figures, **times, **fields})


@pytest.mark.parametrize(
    ("stuck_ms", "held", "state"),
    [
        (None, 0, "idle"),
        (None, 8, "running"),
        (0, 0, "idle"),
        (STOPPED_AFTER_MS, 8, "running"),
        (STOPPED_AFTER_MS + 1, 0, "stopped"),
        (STOPPED_AFTER_MS + 1, 8, "stopped"),
    ],
)
def test_a_consumer_has_stopped_if_a_change_waits_for_long(stuck_ms: int | None, held: int, state: str) -> None:
    waiting = 0 if stuck_ms is None else 5
    stuck_at_ms = None if stuck_ms is None else NOW_MS - stuck_ms
    assert status(moved_at_ms=0, waiting=waiting, held=held, stuck_at_ms=stuck_at_ms).state == state


@pytest.mark.parametrize(
    ("silent_ms", "held", "state"),
    [
        (UNCOUNTED_STOPPED_AFTER_MS, 0, "idle"),
        (UNCOUNTED_STOPPED_AFTER_MS + 1, 0, "stopped"),
        (UNCOUNTED_STOPPED_AFTER_MS + 1, 2, "running"),
    ],
)
def test_where_changes_cannot_be_counted_one_has_stopped_if_nobody_runs_it(silent_ms: int, held: int, state: str) -> None:
    assert status(moved_at_ms=NOW_MS - silent_ms, waiting=None, held=held).state == state


@pytest.mark.parametrize(("ago_ms", "is_shown"), [(0, True), (LOST_SHOWN_MS - 1, True), (LOST_SHOWN_MS, False), (NOW_MS, False)])
def test_what_was_lost_is_shown_for_a_week(ago_ms: int, is_shown: bool) -> None:
    assert status(lost_at_ms=NOW_MS - ago_ms).has_lost == is_shown
