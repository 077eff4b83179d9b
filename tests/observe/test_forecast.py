"""How many fires are to come: against claims that are really made, on every store, and at what cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from when.effort import examples
from when.strategies import changing_times, everys, instants, moments, plain_expressions, questions, weeklies, zones

from tickler import At, Cron, Every, InvalidInput, ManualClock, Policy, Schedule, StoreUnavailable, Tickler, Weekly, connect
from tickler.clock import to_datetime
from tickler.index.advance import DueRow, advance
from tickler.model.index_row import IndexRow
from tickler.observe import forecast as module
from tickler.observe.forecast import CountedFires, Forecast, forecast
from tickler.observe.forecast_cache import NAME, OLD_MS, SMALL_OLD_MS, STALE_MS, TURN_MS, ForecastCache
from tickler.observe.forecast_peaks import AtOnce, peaks
from tickler.observe.instant_series import Expansion, Progression, Shifted
from tickler.records.kinds import FORECAST
from tickler.when import When

NOW_MS = 1_921_408_275_500  # Wednesday 2030-11-20T12:31:15.500Z
THIS_HOUR_MS = 1_921_406_400_000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NEVER_PAUSE = 0.0


def row(when: When, key: str = "k", *, now_ms: int = NOW_MS, offset_ms: int = 0, ends_at: int | None = None) -> IndexRow:
    """As it is in the index when nothing is due."""
    next_at = when.next_after(now_ms - offset_ms)
    assert next_at is not None
    return IndexRow("u1", key, when, next_at + offset_ms, ends_at, offset_ms)


def of(rows: Iterable[IndexRow], now_ms: int = NOW_MS) -> Forecast:
    tally = CountedFires(now_ms)
    for each in rows:
        tally.add(each)
    for _ in tally.expand():
        pass
    return tally.forecast()


def non_zero(buckets: list[int]) -> dict[int, int]:
    return {n: count for n, count in enumerate(buckets) if count}


# Against what claims do.


def by_claims(rows: Iterable[IndexRow], now_ms: int) -> tuple[list[int], list[int]]:
    """Advance each row as claims do that come at the very instant, and count."""
    hours, minutes = [0] * 168, [0] * 60
    first_hour, first_minute = now_ms // HOUR_MS, now_ms // MINUTE_MS
    for each in rows:
        at: int | None = max(each.next_fire_at, now_ms)
        due = each.next_fire_at
        while at is not None and at // HOUR_MS - first_hour < 168:
            hours[at // HOUR_MS - first_hour] += 1
            if at // MINUTE_MS - first_minute < 60:
                minutes[at // MINUTE_MS - first_minute] += 1
            stored = DueRow(0, each.owner, each.key, str(each.when), each.when.tz, due, each.ends_at, each.offset_ms, False)
            moved_to = advance([stored], at).moved_to
            at = due = moved_to[0] if moved_to else None  # type: ignore[assignment]  # the loop ends with it
    return hours, minutes


@st.composite
def indexed(draw: st.DrawFn, when: When, now_ms: int) -> IndexRow | None:
    """A row with that expression: due in a while or overdue, spread or not, within bounds or not."""
    shortest_ms = when.shortest_interval_ms() or 1
    offset_ms = draw(st.one_of(st.just(0), st.integers(0, max(min(shortest_ms // 3, 20 * MINUTE_MS), 0))))
    starts_after = draw(st.one_of(st.just(now_ms), st.integers(now_ms - 3 * DAY_MS, now_ms + 8 * DAY_MS)))
    next_at = when.next_after(starts_after - offset_ms)
    ends_at = draw(st.one_of(st.none(), st.integers(now_ms, now_ms + 9 * DAY_MS)))
    if next_at is None or (ends_at is not None and next_at > ends_at):
        return None
    return IndexRow("u1", str(draw(st.integers())), when, next_at + offset_ms, ends_at, offset_ms)


@st.composite
def whole_indexes(draw: st.DrawFn) -> tuple[int, list[IndexRow]]:
    if draw(st.booleans()):
        now_ms = draw(instants.filter(lambda ms: ms > 10**12))
        when: When = draw(st.one_of(st.builds(Cron, plain_expressions(), tz=zones), weeklies, moments))
    else:
        when, now_ms = draw(changing_times().filter(lambda question: len(str(question[0]).split()) < 6))
    slow = everys.filter(lambda every: every.interval_ms > 60_000)
    expressions = [when, draw(st.one_of(slow, st.just(when)))]
    found = [draw(indexed(each, now_ms)) for each in draw(st.lists(st.sampled_from(expressions), min_size=1, max_size=3))]
    return now_ms, list({each.key: each for each in found if each is not None}.values())


@given(whole_indexes())
@examples
def test_a_forecast_is_what_claims_at_each_instant_would_find(index: tuple[int, list[IndexRow]]) -> None:
    now_ms, rows = index
    found = of(rows, now_ms)
    assert (found.hours, found.minutes) == by_claims(rows, now_ms)
    assert (found.at, found.rows) == (now_ms, len(rows))


@given(questions, st.integers(1, 40))
@examples
def test_what_is_dense_is_counted_as_if_it_were_walked_through(question: tuple[When, int], hours: int) -> None:
    when, at_ms = question
    if not isinstance(when, Cron | Weekly):
        return
    low, high = at_ms // 1000, at_ms // 1000 + hours * 3600 + 17
    walked, at = [], when.next_after(low * 1000 - 1)
    while at is not None and at < high * 1000:
        walked.append(at // 1000)
        at = when.next_after(at)
    expansion = Expansion(when, low, high)
    assert list(expansion) == walked
    assert expansion.count == len(walked)
    for probe in (low - 1, low, *walked[:3], *walked[-3:], high - 1, low + 1801, high):
        assert expansion.until(probe) == sum(1 for each in walked if each <= probe)
    part = Shifted(expansion, 7, low + 3600, low + 9000)
    assert list(part) == [each + 7 for each in walked if low + 3600 < each <= low + 9000]
    assert part.until(low + 8000) == sum(1 for each in part if each <= low + 8000)


def test_an_interval_is_counted_by_arithmetic() -> None:
    progression = Progression(1_500, 10_400, 20_000)
    assert list(progression) == [10, 11, 13, 14, 16, 17, 19]
    for at in range(8, 25):
        assert progression.until(at) == sum(1 for each in progression if each <= at)


# What is counted, and where.


def test_hours_and_minutes_begin_with_the_current_ones_and_count_what_lies_ahead() -> None:
    found = of([row(Cron("0,31,32 12 * * *"))])
    assert non_zero(found.hours) == {0: 1, 24: 3, 48: 3, 72: 3, 96: 3, 120: 3, 144: 3}, "12:32 today, all three later on"
    assert non_zero(found.minutes) == {1: 1}
    assert (len(found.hours), len(found.minutes)) == (168, 60)


def test_what_is_due_already_fires_once_at_once() -> None:
    overdue = IndexRow("u1", "k", Cron("0 * * * *"), NOW_MS - 3 * DAY_MS)
    found = of([overdue])
    assert (found.hours[0], found.minutes[0]) == (1, 1)
    assert found.hours[1:] == [1] * 167
    assert non_zero(found.minutes) == {0: 1, 29: 1}


def test_bounds_are_kept_to() -> None:
    hourly = Cron("0 * * * *")
    ends = row(hourly, ends_at=THIS_HOUR_MS + 3 * HOUR_MS)
    starts = IndexRow("u1", "starts", hourly, THIS_HOUR_MS + 166 * HOUR_MS)
    far = IndexRow("u1", "far", hourly, THIS_HOUR_MS + 168 * HOUR_MS)
    found = of([ends, starts, far])
    assert non_zero(found.hours) == {1: 1, 2: 1, 3: 1, 166: 1, 167: 1}
    assert found.rows == 3


def test_one_shots_and_rows_that_stand_before_their_expression_are_counted_where_they_stand() -> None:
    once = At("2030-11-21T12:00:00Z")
    early = IndexRow("u1", "early", once, THIS_HOUR_MS + 2 * HOUR_MS)
    odd = IndexRow("u1", "odd", Cron("0 0 * * *"), THIS_HOUR_MS + 3 * HOUR_MS + 1)
    found = of([row(once), early, odd])
    assert non_zero(found.hours)[2] == 1
    assert non_zero(found.hours)[3] == 1
    assert non_zero(found.hours)[24] == 2
    assert found.hours[12] == 1
    assert sum(found.hours) == 3 + 1 + 7


def test_a_row_that_moves_during_the_walk_and_is_met_again_is_counted_once() -> None:
    minutely = Cron("* * * * *")
    seen = row(minutely)
    again = IndexRow(seen.owner, seen.key, minutely, seen.next_fire_at + MINUTE_MS)
    assert of([seen, again]) == of([seen])


def test_an_empty_index_has_an_empty_forecast() -> None:
    assert of([]) == Forecast(NOW_MS, 0, [0] * 168, [0] * 60, [])


# What it costs.


def test_an_expression_is_expanded_once_however_many_rows_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    expanded: list[str] = []

    class Counted(Expansion):
        def __init__(self, when: When, low: int, high: int) -> None:
            expanded.append(str(when))
            super().__init__(when, low, high)

    monkeypatch.setattr(module, "Expansion", Counted)
    hourly, daily = Cron("0 * * * *"), Weekly({"mon": "09:00", "thu": "08:00"})
    rows = [row(hourly, f"h{n}", offset_ms=n * 1100) for n in range(2000)]
    rows += [row(daily, f"d{n}", ends_at=NOW_MS + DAY_MS + n * MINUTE_MS) for n in range(2000)]
    rows += [row(Cron("0 * * * *", tz="Asia/Kolkata"), "elsewhere")]
    found = of(rows)
    assert expanded == ["0 * * * *", "weekly(mon 09:00, thu 08:00)", "0 * * * *"]
    assert found.rows == 4001


def test_what_fires_every_second_is_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    ask = Cron.next_after

    def counted(self: Cron, after_ms: int) -> int | None:
        asked["times"] += 1
        return ask(self, after_ms)

    monkeypatch.setattr(Cron, "next_after", counted)
    rows = [row(Cron("* * * * * *"), f"k{n}") for n in range(100)] + [row(Every(seconds=1), f"e{n}") for n in range(100)]
    found = of(rows)
    assert found.hours[1:] == [200 * 3600] * 167
    assert found.hours[0] == sum(found.minutes[:29]) == 200 * (3600 - 31 * 60 - 16)
    assert found.minutes[1:] == [200 * 60] * 59
    assert asked["times"] < 3 * 3600, "one of the 168 hours is walked through, and the two that are cut off"


def test_intervals_that_everybody_counts_from_another_instant_are_counted_together() -> None:
    tally = CountedFires(NOW_MS)
    for n in range(20_000):
        tally.add(row(Every(minutes=5, start=NOW_MS - n * 37), f"k{n}"))
    assert len(tally._progressions) <= 301
    for _ in tally.expand():
        pass
    found = tally.forecast()
    assert sum(found.minutes[5:55]) == 10 * 20_000


class Watched:
    """An index that counts its pages."""

    def __init__(self, t: Tickler) -> None:
        self._index = t.index
        self.pages = 0
        self.fails = False

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]:
        self.pages += 1
        if self.fails:
            raise StoreUnavailable("gone")
        await asyncio.sleep(0)
        return await self._index.walk(cursor, limit)


async def test_others_have_their_turn_between_pages_and_expansions() -> None:
    async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
        rows = [row(Cron(f"{n % 60} {n // 60 % 24} * * *"), f"k{n}") for n in range(2500)]
        await t.index.upsert_many(rows)
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        beside = asyncio.create_task(other())
        index = Watched(t)
        found = await forecast(index, NOW_MS, pause_s=0)
        beside.cancel()
        assert index.pages == 3
        assert turns >= 5
        assert sum(found.hours) > 7 * 2400


# What stands out.


def test_many_at_the_same_instant_are_a_peak_with_a_hint() -> None:
    monday = [row(Cron("0 9 * * mon"), f"k{n}") for n in range(4_700)]
    found = of([*monday, *(row(Every(minutes=1, start=NOW_MS - n * 77), f"e{n}") for n in range(50))])
    first, hour = found.peaks
    assert (to_datetime(first.at).isoformat(), first.of, first.count) == ("2030-11-25T09:00:00+00:00", "instant", 4_700)
    assert first.hint == "4,700 fires due Monday 09:00 UTC; a spread of 10 min would make it 8 per second"
    assert first.times_average == pytest.approx(4_700 / (sum(found.hours) / 168 / 3600), rel=0.01)
    assert (hour.of, hour.at, hour.hint) == ("hour", first.at, None)
    assert hour.count == found.hours[(hour.at - THIS_HOUR_MS) // HOUR_MS] > 4_700
    assert hour.times_average > 2


def test_what_a_spread_has_pulled_apart_is_no_peak() -> None:
    spread = [row(Cron("0 9 * * mon"), f"k{n}", offset_ms=n * 127) for n in range(4_700)]
    assert [peak.of for peak in of(spread).peaks] == ["hour"]


def test_what_was_due_already_is_no_peak() -> None:
    assert of(IndexRow("u1", f"k{n}", At("2020-01-01T00:00:00Z"), NOW_MS - 1) for n in range(90)).peaks == []
    overdue = of(IndexRow("u1", f"k{n}", At("2020-01-01T00:00:00Z"), NOW_MS - 1) for n in range(500))
    assert [peak.of for peak in overdue.peaks] == ["hour"], "the hour is full, but a spread would not help"


def test_what_is_frequent_is_spread_over_less_than_its_interval() -> None:
    found = of(row(Cron("* * * * *"), f"k{n}") for n in range(3_000))
    (peak,) = found.peaks
    assert peak.hint == "3,000 fires due Wednesday 12:32 UTC; a spread of 30 s would make it 100 per second"
    assert peak.at == THIS_HOUR_MS + 32 * MINUTE_MS


def test_a_peak_counts_what_is_frequent_with_what_is_not() -> None:
    rows = [row(Cron("0 9 * * *"), f"d{n}") for n in range(300)] + [row(Cron("*/5 * * * *"), f"f{n}") for n in range(120)]
    nine = of(rows).peaks[0]
    assert (nine.count, to_datetime(nine.at).hour) == (420, 9)


def test_peaks_at_the_same_time_of_day_have_one_cause_and_are_told_once() -> None:
    day = 24 * 3600
    at_once = [AtOnce(n * day, 500, 0) for n in range(7)] + [AtOnce(100, 200, 0), AtOnce(200, 99, 0)]
    found = peaks(0, [1] * 168, at_once)
    assert [(peak.at, peak.count) for peak in found] == [(0, 500), (100_000, 200)]


def test_a_level_load_has_no_peaks() -> None:
    assert peaks(0, [1_000] * 168, []) == []


# As callers get it, on every store.


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(any_url, clock=clock, create=True) as tickler:
        yield tickler


async def test_a_forecast_is_made_of_what_the_store_holds(
    t: Tickler, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly = Cron("0 * * * *", tz="Asia/Kolkata")
    await t.schedules.put_many(
        [
            Schedule(owner="u1", key="plain", when=hourly),
            Schedule(owner="u1", key="paused", when=hourly, enabled=False),
            Schedule(owner="u1", key="starts", when=hourly, starts_at=NOW_MS + 5 * DAY_MS),
            Schedule(owner="u1", key="ends", when=hourly, ends_at=NOW_MS + DAY_MS),
            Schedule(owner="u1", key="spread", when=hourly, policy=Policy(spread=timedelta(minutes=20))),
            Schedule(owner="u2", key="once", when="at(2030-11-22T12:00:00)"),
            Schedule(owner="u2", key="often", when="@every 10m"),
        ]
    )
    monkeypatch.setattr("tickler.observe.forecast_cache.SMALL_ROWS", 6)
    found = await t.forecast()
    rows, _ = await t.index.walk()
    assert found.rows == len(rows) == 6
    assert (found.hours, found.minutes) == by_claims(rows, NOW_MS)
    clock.advance(61)
    assert await t.forecast() == found, "it is kept"
    record = await t.records.get(FORECAST, NAME)
    assert record is not None
    assert isinstance(record.value, dict)
    assert record.value["forecast"]["at"] == NOW_MS
    clock.set(NOW_MS + OLD_MS)
    assert await t.forecast() == found, "whoever keeps it fresh is given some time"
    clock.set(NOW_MS + STALE_MS)
    newer = await t.forecast()
    assert newer.at == NOW_MS + STALE_MS
    assert await t.forecasts.last() == newer


async def test_a_forecast_of_few_is_worked_out_anew_at_nearly_every_look(t: Tickler, clock: ManualClock) -> None:
    await t.schedules.put(Schedule(owner="u1", key="one", when="0 * * * *"))
    assert (await t.forecast()).rows == 1
    await t.schedules.put(Schedule(owner="u1", key="two", when="0 * * * *"))
    assert (await t.forecast()).rows == 1
    clock.advance(SMALL_OLD_MS / 1000)
    assert (await t.forecast()).rows == 2


async def test_one_process_at_a_time_works_it_out_and_the_others_read_what_is_kept(t: Tickler, clock: ManualClock) -> None:
    await t.schedules.put(Schedule(owner="u1", key="plain", when="0 * * * *"))
    index = Watched(t)
    processes = [ForecastCache(index, t._store.records, clock) for _ in range(4)]
    assert await processes[0].last() is None
    assert index.pages == 0, "to read what is kept walks nowhere"
    first = await processes[0].refresh()
    assert first is not None
    index.pages = 0
    clock.set(NOW_MS + OLD_MS)
    answers = await asyncio.gather(*(process.refresh() for process in processes))
    assert [answer.at for answer in answers if answer is not None] == [NOW_MS + OLD_MS]
    assert index.pages == 1
    assert {(await process.get()).at for process in processes} == {NOW_MS + OLD_MS}
    assert index.pages == 1


async def test_a_process_that_fails_or_dies_over_it_holds_nobody_up_for_long(t: Tickler, clock: ManualClock) -> None:
    await t.schedules.put(Schedule(owner="u1", key="plain", when="0 * * * *"))
    index = Watched(t)
    dies, lives = (ForecastCache(index, t._store.records, clock) for _ in range(2))
    index.fails = True
    with pytest.raises(StoreUnavailable):
        await dies.refresh()
    index.fails = False
    assert await lives.refresh() is not None, "who fails says so"
    clock.set(NOW_MS + OLD_MS)
    last, version = await dies._read()
    await dies._write(type(last)(last.forecast, clock.now_ms() + TURN_MS), version)  # and then it was killed
    assert await lives.refresh() is None
    assert (await lives.get()).at == NOW_MS, "the old one, for as long"
    clock.advance(TURN_MS / 1000)
    assert await lives.refresh() is not None


async def test_whoever_asks_first_while_another_works_gets_an_answer_all_the_same(clock: ManualClock) -> None:
    async with connect("memory://", clock=clock) as t:
        await t._store.records.put(FORECAST, NAME, b'{"busy_until": %d}' % (NOW_MS + TURN_MS), now_ms=NOW_MS)
        assert (await t.forecast()).rows == 0
        assert await t.forecasts.last() is None


async def test_what_another_version_kept_is_replaced(clock: ManualClock) -> None:
    async with connect("memory://", clock=clock) as t:
        await t._store.records.put(FORECAST, NAME, b'{"forecast": 7}', now_ms=NOW_MS)
        assert (await t.forecast()).at == NOW_MS
        assert (await t.forecasts.last()) is not None
        with pytest.raises(InvalidInput, match="is reserved by Tickler"):
            await t.records.put(FORECAST, NAME, {})


async def test_it_is_kept_fresh_while_somebody_runs_it(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.observe.forecast_cache.REFRESH_CHECK_S", 0.001)
    async with connect("memory://", clock=clock) as t:
        index = Watched(t)
        forecasts = ForecastCache(index, t._store.records, clock)
        index.fails = True
        running = asyncio.create_task(forecasts.run())
        while index.pages < 2:
            await asyncio.sleep(0.001)
        index.fails = False
        while (found := await forecasts.last()) is None:
            await asyncio.sleep(0.001)
        clock.set(NOW_MS + OLD_MS)
        while found.at == NOW_MS:
            await asyncio.sleep(0.001)
            found = await forecasts.last() or found
        running.cancel()
        assert found.at == NOW_MS + OLD_MS
