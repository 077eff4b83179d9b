"""The index as callers use it: what it takes, what it refuses, and that what it refuses leaves no trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tickler.client import Tickler
from tickler.clock import ManualClock, to_datetime
from tickler.connect import connect
from tickler.errors import InvalidInput, InvalidSchedule, ManagedRow
from tickler.model.index_row import IndexRow
from tickler.model.limits import MAX_LIMIT
from tickler.model.schedule import Schedule
from tickler.when import Cron, Unreadable

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")

NO_LIMITS: list[object] = [0, -1, True, False, 1.0, 2.5, "10", None, 10**6, 2**64, [1]]
NO_INSTANTS: list[tuple[object, str]] = [
    (NOW_MS // 1000, "looks like seconds"),
    (NOW_MS * 1000, "micro- or nanoseconds"),
    (NOW_MS * 1_000_000, "micro- or nanoseconds"),
    (0, "a missing value"),
    (-NOW_MS, "a missing value"),
    (True, "is a bool"),
    (float(NOW_MS), "is a float"),
    ("2030-11-20T12:00:00Z", "is a str"),
    (None, "is a NoneType"),
    (NOW.replace(tzinfo=None), "naive datetime"),
]


def row(key: str = "a", **fields: object) -> IndexRow:
    given: dict[str, object] = {"owner": "u1", "key": key, "when": HOURLY, "next_fire_at": NOW_MS, **fields}
    return IndexRow(**given)  # type: ignore[arg-type]  # any field of a row, right or wrong


@pytest.fixture
async def t(any_url: str) -> AsyncIterator[Tickler]:
    """On each of the stores."""
    async with connect(any_url, clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


@pytest.fixture
async def in_memory() -> AsyncIterator[Tickler]:
    """Where the store does not matter."""
    async with connect("memory://", clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


async def test_an_upserted_row_is_claimed_and_removed_rows_are_not(t: Tickler) -> None:
    await t.index.upsert(row("a", ends_at=NOW_MS + 9 * HOUR_MS, offset_ms=7))
    await t.index.upsert_many(row(key) for key in ("b", "c"))
    await t.index.remove("u1", "b")
    assert await t.index.count() == 2
    assert await t.index.next_due() == NOW_MS
    claimed = await t.index.claim_due(NOW_MS)
    assert sorted(claimed, key=lambda each: each.key) == [row("a", ends_at=NOW_MS + 9 * HOUR_MS, offset_ms=7), row("c")]


async def test_nothing_is_a_fine_number_of_rows(t: Tickler) -> None:
    await t.index.upsert_many([])
    await t.index.upsert_many(iter(()))
    assert await t.index.count() == 0


@pytest.mark.parametrize("limit", NO_LIMITS, ids=repr)
async def test_a_limit_that_is_no_number_of_rows_is_refused_and_nothing_claimed(in_memory: Tickler, limit: object) -> None:
    await in_memory.index.upsert(row())
    with pytest.raises(InvalidInput, match=f"^limit: .* whole number from 1 to {MAX_LIMIT}"):
        await in_memory.index.claim_due(NOW_MS, limit)  # type: ignore[arg-type]  # wrong types are the point
    assert await in_memory.index.next_due() == NOW_MS


@pytest.mark.parametrize("limit", [1, 2, MAX_LIMIT])
async def test_every_limit_from_one_to_the_most_is_taken(t: Tickler, limit: int) -> None:
    await t.index.upsert_many([row("a"), row("b"), row("c")])
    assert len(await t.index.claim_due(NOW_MS, limit)) == min(limit, 3)


@pytest.mark.parametrize("limit", NO_LIMITS, ids=repr)
async def test_a_limit_of_what_is_shown_of_bad_rows_is_checked_alike(in_memory: Tickler, limit: object) -> None:
    with pytest.raises(InvalidInput, match=r"^limit: "):
        await in_memory.index.set_aside(limit)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize(("now_ms", "said"), NO_INSTANTS, ids=str)
async def test_a_now_that_is_no_instant_is_refused_and_nothing_claimed(in_memory: Tickler, now_ms: object, said: str) -> None:
    await in_memory.index.upsert(row())
    with pytest.raises(InvalidInput, match=f"^now_ms: .*{said}"):
        await in_memory.index.claim_due(now_ms)  # type: ignore[arg-type]  # wrong types are the point
    assert await in_memory.index.next_due() == NOW_MS


@pytest.mark.parametrize("now", [NOW, NOW.astimezone(timezone(timedelta(hours=9))), NOW_MS], ids=str)
async def test_now_may_be_an_aware_datetime(t: Tickler, now: datetime | int) -> None:
    await t.index.upsert_many([row("due"), row("later", next_fire_at=NOW_MS + 1)])
    assert [claimed.key for claimed in await t.index.claim_due(now)] == ["due"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (None, r"^rows\[1\]: is a NoneType: pass an IndexRow"),
        (("u1", "a", HOURLY, NOW_MS), r"^rows\[1\]: is a tuple"),
        (Schedule(owner="u1", key="a", when=HOURLY), r"^rows\[1\]: is a Schedule"),
        (row(owner=""), "^owner: is empty"),
        (row(owner=None), "^owner: is a NoneType"),
        (row(key=""), "^key: is empty"),
        (row("a\x00b"), "^key: .* control characters"),
        (row("\ud800"), "^key: .* surrogate"),
        (row("x" * 513), "^key: has 513 bytes"),
        (row(when="0 * * * *"), r"^rows\[1\]\.when: is a str: .*parse_when\('0 \* \* \* \*'\)"),
        (row(when=None), r"^rows\[1\]\.when: is a NoneType"),
        *((row(next_fire_at=instant), rf"^rows\[1\]\.next_fire_at: .*{said}") for instant, said in NO_INSTANTS),
        (row(managed=True), r"^rows\[1\]\.managed: only `schedules` writes managed rows"),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_one_bad_row_is_refused_by_its_place_and_none_is_written(in_memory: Tickler, bad: IndexRow, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await in_memory.index.upsert_many([row("before"), bad, row("after")])
    assert await in_memory.index.count() == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("ends_at", value) for value, _ in NO_INSTANTS if value is not None),
        *(("offset_ms", value) for value in (-1, True, 1.5, "7", None, 2**63)),
        ("managed", None),
        ("managed", 0),
        ("managed", "no"),
    ],
    ids=str,
)
async def test_the_rest_of_a_row_is_checked_before_a_store_sees_it(in_memory: Tickler, field: str, value: object) -> None:
    """An end in seconds would finish the row at its first claim; the stores differ in what they make of a wrong type."""
    with pytest.raises(InvalidInput, match=field):
        await in_memory.index.upsert_many([row("before"), row("bad", **{field: value})])
    assert await in_memory.index.count() == 0


async def test_a_row_that_does_not_read_is_refused_when_it_is_written(in_memory: Tickler) -> None:
    unreadable = Unreadable("never", "UTC", "expression of 'never': write five fields")
    with pytest.raises(InvalidInput, match="never"):
        await in_memory.index.upsert(row(when=unreadable))
    assert await in_memory.index.count() == 0


async def test_a_due_time_as_an_aware_datetime_is_taken_as_its_instant_or_refused(t: Tickler) -> None:
    """Anything but to keep it as something that is never due."""
    try:
        await t.index.upsert(row(next_fire_at=NOW))
    except InvalidInput:
        assert await t.index.count() == 0
        return
    assert await t.index.next_due() == NOW_MS
    (claimed,) = await t.index.claim_due(NOW_MS)
    assert claimed.next_fire_at == NOW_MS


async def test_the_same_owner_and_key_twice_is_refused_and_none_is_written(t: Tickler) -> None:
    with pytest.raises(InvalidInput, match="the same owner and key come twice"):
        await t.index.upsert_many([row("a"), row("b"), row("a", next_fire_at=NOW_MS + 1)])
    assert await t.index.count() == 0
    await t.index.upsert_many([row("a"), row("a", owner="u2")])
    assert await t.index.count() == 2


async def test_one_row_that_a_schedule_stands_behind_is_refused_and_none_is_written(t: Tickler) -> None:
    await t.schedules.put(Schedule(owner="u1", key="mine", when=HOURLY))
    with pytest.raises(ManagedRow, match=r"schedules.put, pause or delete") as refused:
        await t.index.upsert_many([row("before"), row("mine"), row("after")])
    assert (refused.value.owner, refused.value.key) == ("u1", "mine")
    with pytest.raises(ManagedRow):
        await t.index.remove("u1", "mine")
    assert await t.index.count() == 1
    assert await t.index.next_due() == NOW_MS + HOUR_MS


@pytest.mark.parametrize(
    ("owner", "key", "field"), [("", "a", "owner"), ("u1", "", "key"), (None, "a", "owner"), ("u1", 5, "key")]
)
async def test_remove_is_told_owner_and_key(in_memory: Tickler, owner: str, key: str, field: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"^{field}: "):
        await in_memory.index.remove(owner, key)


async def test_removing_what_is_absent_does_nothing(t: Tickler) -> None:
    await t.index.upsert(row())
    await t.index.remove("u1", "nothing")
    assert await t.index.count() == 1


@pytest.mark.parametrize("using", [object(), "connection", 5], ids=["object", "text", "number"])
async def test_a_connection_that_is_none_is_refused_and_nothing_written(t: Tickler, using: object) -> None:
    with pytest.raises(InvalidInput, match=r"^using= "):
        await t.index.upsert(row(), using=using)
    with pytest.raises(InvalidInput, match=r"^using= "):
        await t.index.remove("u1", "a", using=using)
    assert await t.index.count() == 0


def test_a_row_knows_its_zone_and_its_nominal_instant() -> None:
    zoned = row(when=Cron("0 9 * * tue", tz="Europe/Paris"), offset_ms=250)
    assert zoned.timezone == "Europe/Paris"
    assert zoned.nominal_at == NOW_MS - 250
    with pytest.raises(AttributeError):
        zoned.next_fire_at = NOW_MS  # type: ignore[misc]  # that is the point


async def test_what_is_due_is_counted_as_far_as_asked_for(t: Tickler) -> None:
    await t.index.upsert_many([IndexRow("u1", f"k{n}", HOURLY, NOW_MS + n) for n in range(5)])
    assert await t.index.count() == 5
    assert await t.index.count(due_by=to_datetime(NOW_MS + 2)) == await t.index.count(due_by=NOW_MS + 2) == 3
    assert await t.index.count(due_by=NOW_MS + 2, most=2) == 2


@pytest.mark.parametrize(("given", "why"), [({"due_by": 5}, "due_by"), ({"most": 0}, "limit"), ({"most": True}, "limit")])
async def test_a_count_refuses_what_is_no_instant_and_no_number(t: Tickler, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        await t.index.count(**given)


async def test_a_walk_begins_at_the_beginning_and_says_how_to_go_on(t: Tickler) -> None:
    await t.index.upsert_many([IndexRow("u1", f"k{n}", HOURLY, NOW_MS + n) for n in range(5)])
    page, cursor = await t.index.walk(limit=3)
    assert len(page) == 3
    rest, end = await t.index.walk(cursor, limit=3)
    assert {row.key for row in [*page, *rest]} == {f"k{n}" for n in range(5)}
    assert end is None


@pytest.mark.parametrize(
    ("given", "why"),
    [({"cursor": 5}, "cursor: 5 does not come from a `walk` of this store"), ({"limit": 0}, "limit"), ({"limit": True}, "limit")],
)
async def test_a_walk_refuses_what_is_no_cursor_and_no_number(t: Tickler, given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        await t.index.walk(**given)
