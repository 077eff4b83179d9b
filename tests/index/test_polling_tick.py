"""What a polling tick relies on, over every store, with instants beside the epoch as other suites have them.

The promises of a schedule index with claim and advance: one row an owner and key, however often it is written; what is due is
returned as it was and advanced in the same step, so that a second caller at the same instant gets nothing; times are those of the
row's zone, UTC without one; a limit of 100 unless another is given; remove is no error where there is nothing; a bad expression
blocks nobody; the mirror of a schedule follows it, and is gone while it is disabled; an error says how to make tables that are
missing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

import tickler
from tickler import At, Cron, IndexRow, InvalidInput, Schedule, Tickler
from tickler.errors import InvalidWhen, SchemaMissing
from tickler.index.index import Index

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
MINUTELY, DAILY = Cron("* * * * *"), Cron("0 9 * * *")


@pytest.fixture
async def t(any_url: str) -> AsyncIterator[Tickler]:
    async with tickler.connect(any_url) as opened:
        yield opened


@pytest.fixture
def index(t: Tickler) -> Index:
    return t.index


async def upsert(index: Index, *rows: IndexRow) -> None:
    await index.upsert_many(rows, any_instant=True)


async def claim(index: Index, now_ms: int, limit: int = 100) -> list[IndexRow]:
    return await index.claim_due(now_ms, limit, any_instant=True)


async def test_a_row_written_twice_is_one_row_and_the_later_counts(index: Index) -> None:
    await upsert(index, IndexRow("u1", "k", MINUTELY, 1_000))
    await upsert(index, IndexRow("u1", "k", MINUTELY, 1_000))
    await upsert(index, IndexRow("u1", "k", DAILY, 2_000))
    assert await index.count() == 1
    assert await claim(index, 5_000) == [IndexRow("u1", "k", DAILY, 2_000)]


async def test_what_is_due_comes_as_it_was_and_is_advanced_in_the_same_step(index: Index) -> None:
    due, later = IndexRow("u1", "due", MINUTELY, 1_000), IndexRow("u1", "later", MINUTELY, 90_000)
    await upsert(index, due, later)
    assert await claim(index, 999) == []
    assert await claim(index, 1_000) == [due]
    assert await claim(index, 1_000) == [], "a second caller at the same now"
    assert await index.next_due() == MINUTE_MS
    assert [row.key for row in await claim(index, 90_000)] == ["due", "later"]


async def test_two_callers_at_the_same_now_share_what_is_due(index: Index) -> None:
    await upsert(index, *(IndexRow(f"u{n % 3}", f"k{n}", MINUTELY, n) for n in range(60)))
    shares = await asyncio.gather(*(claim(index, MINUTE_MS, 40) for _ in range(3)))
    rest = await claim(index, MINUTE_MS)
    assert Counter(row.key for share in (*shares, rest) for row in share) == Counter(f"k{n}" for n in range(60))


async def test_a_row_is_advanced_on_the_clock_of_its_zone_and_of_utc_without_one(index: Index) -> None:
    await upsert(index, IndexRow("u1", "utc", DAILY, 1), IndexRow("u1", "tokyo", Cron("0 9 * * *", tz="Asia/Tokyo"), 1))
    assert len(await claim(index, 1)) == 2
    assert [(row.key, row.timezone, row.next_fire_at) for row in await claim(index, 9 * HOUR_MS)] == [("utc", "UTC", 9 * HOUR_MS)]
    assert [(row.key, row.timezone, row.next_fire_at) for row in await claim(index, DAY_MS)] == [("tokyo", "Asia/Tokyo", DAY_MS)]


async def test_a_row_that_slept_is_claimed_once_and_lies_ahead_then(index: Index) -> None:
    await upsert(index, IndexRow("u1", "k", MINUTELY, 1_000))
    assert len(await claim(index, 10 * DAY_MS + 1)) == 1
    assert await index.next_due() == 10 * DAY_MS + MINUTE_MS


async def test_the_limit_is_a_hundred_unless_another_is_given(index: Index) -> None:
    await upsert(index, *(IndexRow("u1", f"k{n:03}", MINUTELY, n) for n in range(130)))
    assert len(await claim(index, 500, 20)) == 20
    assert len(await index.claim_due(500, any_instant=True)) == 100
    assert len(await claim(index, 500)) == 10


async def test_removing_what_is_not_there_is_no_error_and_takes_nothing_else(index: Index) -> None:
    await upsert(index, IndexRow("u1", "k", MINUTELY, 1_000), IndexRow("u2", "k", MINUTELY, 1_000))
    await index.remove("u1", "k")
    await index.remove("u1", "k")
    await index.remove("u3", "nothing")
    assert [row.owner for row in await claim(index, 1_000)] == ["u2"]


async def test_a_row_without_another_instant_leaves_when_it_is_claimed(index: Index) -> None:
    await upsert(index, IndexRow("u1", "once", At("1970-01-01T00:00:05Z"), 5_000))
    assert [row.key for row in await claim(index, 5_000)] == ["once"]
    assert await index.next_due() is None


async def test_a_bad_expression_is_refused_before_it_is_a_row(index: Index) -> None:
    with pytest.raises(InvalidWhen, match="minute '61' is invalid"):
        Cron("61 * * * *")
    with pytest.raises(InvalidInput, match="pass a When"):
        await upsert(index, IndexRow("u1", "good", MINUTELY, 1), IndexRow("u1", "bad", "61 * * * *", 1))  # type: ignore[arg-type]
    assert await index.count() == 0, "all or none"


async def test_the_mirror_follows_a_schedule_and_is_gone_while_it_is_disabled(t: Tickler) -> None:
    await t.schedules.put(Schedule(owner="u1", key="k", when="0 9 * * *"))
    assert await t.index.count() == 1
    await t.schedules.put(Schedule(owner="u1", key="k", when="0 9 * * *", enabled=False))
    assert await t.index.next_due() is None
    stored = await t.schedules.put(Schedule(owner="u1", key="k", when="0 10 * * *"))
    assert await t.index.next_due() == stored.next_fire_at
    await t.schedules.delete("u1", "k")
    assert await t.index.count() == 0


async def test_an_instant_that_looks_like_another_unit_is_refused_unless_it_is_meant(index: Index) -> None:
    seconds = 1_700_000_000
    for refused in (
        index.upsert(IndexRow("u1", "k", MINUTELY, seconds)),
        index.claim_due(seconds),
        index.count(due_by=seconds),
    ):
        with pytest.raises(InvalidInput, match=r"looks like seconds.*any_instant=True takes it as it is"):
            await refused
    await index.upsert(IndexRow("u1", "k", MINUTELY, seconds, ends_at=seconds), any_instant=True)
    assert await index.count(due_by=seconds, any_instant=True) == 1
    assert len(await index.claim_due(seconds, any_instant=True)) == 1
    for neither in (10**15, -(10**15)):
        with pytest.raises(InvalidInput, match="outside the years 2 to 9998"):
            await index.claim_due(neither, any_instant=True)
    with pytest.raises(InvalidInput, match="is a str"):
        await index.claim_due("1000", any_instant=True)  # type: ignore[arg-type]


async def test_without_tables_an_error_says_how_to_make_them(sqlite_url: str, postgres_url: str) -> None:
    for url in (sqlite_url, postgres_url):
        with pytest.raises(SchemaMissing, match="tickler migrate --store"):
            async with tickler.connect(url, create=False):
                pass
