"""How many fires are to come: by hour over a week, by minute over an hour, and what stands out among them.

A walk over the index tells which expressions there are and how many rows have each; what each of them names is then found out
once. A million rows of a few thousand expressions cost a walk and a few thousand expansions.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec

from tickler.model.index_row import IndexRow
from tickler.observe.forecast_peaks import AtOnce, Peak, peaks
from tickler.observe.instant_series import HOUR, Expansion, Progression, Series, Shifted
from tickler.when import At, Every, When

MINUTE = 60
HOURS = 7 * 24
MINUTES = 60
MAX_COUNTED_SINGLY = 400  # instants: so many are counted one by one, more of them bucket by bucket
CANDIDATES = 25  # seconds that are looked at more closely, of either kind
CHUNK = 2_000  # seconds that are put together in one go

PAGE = 1_000
PAUSE_S = 0.002  # between pages, for others who want the store
TURN_S = 0.005  # how long the expansions keep others in this process waiting
SOON_MS = 15 * 60_000
MAX_REMEMBERED = 200_000


class Forecast(msgspec.Struct, frozen=True):
    """How many fires are to come, as it looked at `at`, from so many rows.

    `hours` begin with the hour that `at` is in, UTC, and `minutes` with its minute; of both only what lies ahead is counted.
    What was due already is in the first of each, once: that is how it fires unless a policy says otherwise.
    """

    at: int
    rows: int
    hours: list[int]
    minutes: list[int]
    peaks: list[Peak]


class Walked(Protocol):
    """An index, as far as a forecast needs it."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]: ...


async def forecast(index: Walked, now_ms: int, *, pause_s: float = PAUSE_S) -> Forecast:
    """Walk through the index, page by page, and work out what follows; others get their turn all along."""
    tally = CountedFires(now_ms)
    cursor: str | None = None
    while True:
        page, cursor = await index.walk(cursor, PAGE)
        for row in page:
            tally.add(row)
        if cursor is None:
            break
        await asyncio.sleep(pause_s)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in tally.expand():
        if loop.time() - began >= TURN_S:
            await asyncio.sleep(0)
            began = loop.time()
    return tally.forecast()


class Following(NamedTuple):
    """Which instants of an expression follow the next one of a row, `after < at <= until`, and by how much they are moved."""

    offset: int
    after: int
    until: int


class CountedFires:
    """Counts rows, and then what they will do. Pure: add rows, run through `expand`, ask for the `forecast`.

    What lies in the same second counts as one instant. Rows that share an expression stand at the same place of it, but for
    their spread, so they are counted together by that and by whole seconds. Intervals, which everybody counts from an instant
    of their own, are counted together by the second in which they fire.
    """

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._first_hour = now_ms // 1000 // HOUR * HOUR
        self._first_minute = now_ms // 1000 // MINUTE * MINUTE
        self._end = self._first_hour + HOURS * HOUR
        self._rows = 0
        self._due = 0
        self._hours = [0] * HOURS
        self._minutes = [0] * MINUTES
        self._instants: Counter[int] = Counter()  # by second
        self._following: dict[When, Counter[Following]] = {}
        self._progressions: Counter[Progression] = Counter()
        self._dense: list[tuple[Series, int]] = []
        self._dense_from: Counter[int] = Counter()  # those of `instants` at which rows stand that go on densely
        self._at_once: list[AtOnce] = []
        self._remembered: set[int] = set()

    def add(self, row: IndexRow) -> None:
        if self._met(row):
            return
        self._rows += 1
        due_at = row.next_fire_at
        if due_at <= self._now_ms:
            self._due += 1
            due_at = self._now_ms
        elif due_at < self._end * 1000:
            self._instants[due_at // 1000] += 1
        else:
            return
        if isinstance(row.when, At):
            self._add_one_shot(row.when, row, due_at)
        elif isinstance(row.when, Every):
            self._add_interval(row.when, row, due_at)
        else:
            self._add_calendar(row, due_at)

    def expand(self) -> Iterator[None]:
        """Find out what the rows name: to be run through once, at whatever pace."""
        for progression, number in self._progressions.items():
            self._add_series(progression, number)
            yield
        for when, parts in self._following.items():
            expansion = Expansion(when, min(part.after for part in parts) + 1, max(part.until for part in parts) + 1)
            yield
            for part, number in parts.items():
                self._add_series(Shifted(expansion, *part), number)
                yield
        most: list[tuple[int, int]] = []
        pairs = ((number, at) for at, number in self._instants.items())
        while some := list(islice(pairs, CHUNK)):
            self._add_instants(some)
            most = heapq.nlargest(CANDIDATES, [*most, *some])
            yield
        for at in self._candidates(most):
            following = sum(number * (series.until(at) - series.until(at - 1)) for series, number in self._dense)
            self._at_once.append(AtOnce(at, self._instants[at] + following, self._dense_from[at] + following))
            yield

    def forecast(self) -> Forecast:
        hours = [self._due + self._hours[0], *self._hours[1:]]
        minutes = [self._due + self._minutes[0], *self._minutes[1:]]
        return Forecast(self._now_ms, self._rows, hours, minutes, peaks(self._first_hour, hours, self._at_once))

    def _met(self, row: IndexRow) -> bool:
        """Whether it was there before: a row that is claimed during the walk may have moved to where the walk comes later."""
        identity = hash((row.owner, row.key))
        if identity in self._remembered:
            return True
        if row.next_fire_at <= self._now_ms + SOON_MS and len(self._remembered) < MAX_REMEMBERED:
            self._remembered.add(identity)
        return False

    def _add_calendar(self, row: IndexRow, due_at: int) -> None:
        """What follows when the row is advanced at `due_at`: instants that, moved by its offset, lie after that."""
        offset = row.offset_ms // 1000
        after = (due_at - row.offset_ms) // 1000
        until = self._end - 1 - offset if row.ends_at is None else min(row.ends_at // 1000, self._end - 1 - offset)
        if after < until:
            self._following.setdefault(row.when, Counter())[Following(offset, after, until)] += 1

    def _add_one_shot(self, when: At, row: IndexRow, due_at: int) -> None:
        """Of a row that is due before the one instant that its expression names."""
        following = when.next_after(due_at - row.offset_ms)
        if following is not None and (row.ends_at is None or following <= row.ends_at):
            at = (following + row.offset_ms) // 1000
            if at < self._end:
                self._instants[at] += 1

    def _add_interval(self, when: Every, row: IndexRow, due_at: int) -> None:
        following = when.next_after(due_at - row.offset_ms)
        assert following is not None
        first_ms, last_ms = following + row.offset_ms, self._end * 1000 - 1
        if row.ends_at is not None:
            last_ms = min(last_ms, row.ends_at + row.offset_ms)
        if when.interval_ms % 1000 == 0:  # always as far into the second: it does not matter how far
            rest_ms = first_ms % 1000
            first_ms, last_ms = first_ms - rest_ms, (last_ms - rest_ms) // 1000 * 1000
        if first_ms <= last_ms:
            self._progressions[Progression(when.interval_ms, first_ms, last_ms)] += 1

    def _add_series(self, series: Series, number: int) -> None:
        if series.until(self._end - 1) <= MAX_COUNTED_SINGLY:
            for at in series:
                self._instants[at] += number
            return
        self._dense.append((series, number))
        self._dense_from[series.stands_at] += number
        _add_buckets(self._hours, self._first_hour, HOUR, series, number)
        _add_buckets(self._minutes, self._first_minute, MINUTE, series, number)

    def _add_instants(self, pairs: Sequence[tuple[int, int]]) -> None:
        for number, at in pairs:
            self._hours[(at - self._first_hour) // HOUR] += number
            if at < self._first_minute + MINUTES * MINUTE:
                self._minutes[(at - self._first_minute) // MINUTE] += number

    def _candidates(self, most: Sequence[tuple[int, int]]) -> set[int]:
        """Seconds at which most may be due: those with the most one by one, and those with which what is frequent begins."""
        now = self._now_ms // 1000
        frequent = (series for series, _ in heapq.nlargest(CANDIDATES, self._dense, key=lambda dense: dense[1]))
        begin = {series.stands_at if series.stands_at > now else next(iter(series)) for series in frequent}
        return begin | {at for _, at in most}


def _add_buckets(buckets: list[int], first: int, width: int, series: Series, number: int) -> None:
    before = series.until(first - 1)
    for n in range(len(buckets)):
        until = series.until(first + (n + 1) * width - 1)
        buckets[n] += number * (until - before)
        before = until
