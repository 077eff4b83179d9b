"""Counts the coming fires: by hour for a week, by minute for an hour, and their peaks.

A walk over the index counts the rows of each expression; each expression is then expanded once. A million rows with a few
thousand expressions cost one walk and a few thousand expansions.
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
MAX_COUNTED_SINGLY = 400  # instants of a series; a longer one is counted by bucket
MAX_CANDIDATES = 25  # seconds that may be peaks, of either kind
CHUNK = 2_000  # seconds per step

PAGE = 1_000
PAUSE_S = 0.002  # between pages, to leave the store to others
TURN_S = 0.005  # how long expansions may block the event loop
SOON_MS = 15 * 60_000
MAX_SEEN = 200_000


class Forecast(msgspec.Struct, frozen=True):
    """The coming fires at the instant `at`, from that many index `rows`.

    `hours` start with the hour of `at`, in UTC, and `minutes` with its minute; both count future fires only. A row that is
    already due counts once in the first bucket: that is how it fires unless its policy differs.
    """

    at: int
    rows: int
    hours: list[int]
    minutes: list[int]
    peaks: list[Peak]


class WalkableIndex(Protocol):
    """The part of an index that a forecast needs."""

    async def walk(self, cursor: str | None, limit: int) -> tuple[list[IndexRow], str | None]: ...


async def forecast(index: WalkableIndex, now_ms: int, *, pause_s: float = PAUSE_S) -> Forecast:
    """Walk the index page by page and expand its expressions, with pauses for other tasks."""
    counted = CountedFires(now_ms)
    cursor: str | None = None
    while True:
        page, cursor = await index.walk(cursor, PAGE)
        for row in page:
            counted.add(row)
        if cursor is None:
            break
        await asyncio.sleep(pause_s)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in counted.expand():
        if loop.time() - began >= TURN_S:
            await asyncio.sleep(0)
            began = loop.time()
    return counted.forecast()


class Following(NamedTuple):
    """The instants of an expression after the next fire of a row, `after < at <= until`, and their offset."""

    offset: int
    after: int
    until: int


class CountedFires:
    """Counts rows, and then their fires. Pure: call `add` for each row, exhaust `expand`, then call `forecast`.

    Fires in the same second count as one instant. Rows that share an expression have the same instants except for their spread,
    so they are grouped by expression, offset and whole seconds. Intervals have individual starts, and are grouped by the second
    in which they fire.
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
        self._dense_from: Counter[int] = Counter()  # by second: rows at an instant that continue densely
        self._at_once: list[AtOnce] = []
        self._seen: set[int] = set()

    def add(self, row: IndexRow) -> None:
        if self._is_repeated(row):
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
        """Expand all expressions, one step per iteration. Exhaust it once, at any pace."""
        for progression, number in self._progressions.items():
            self._add_series(progression, number)
            yield
        for when, parts in self._following.items():
            expansion = Expansion(when, min(part.after for part in parts) + 1, max(part.until for part in parts) + 1)
            yield
            for part, number in parts.items():
                self._add_series(Shifted(expansion, *part), number)
                yield
        largest: list[tuple[int, int]] = []
        pairs = ((number, at) for at, number in self._instants.items())
        while chunk := list(islice(pairs, CHUNK)):
            self._add_instants(chunk)
            largest = heapq.nlargest(MAX_CANDIDATES, [*largest, *chunk])
            yield
        for at in self._candidates(largest):
            following = sum(number * (series.until(at) - series.until(at - 1)) for series, number in self._dense)
            self._at_once.append(AtOnce(at, self._instants[at] + following, self._dense_from[at] + following))
            yield

    def forecast(self) -> Forecast:
        hours = [self._due + self._hours[0], *self._hours[1:]]
        minutes = [self._due + self._minutes[0], *self._minutes[1:]]
        return Forecast(self._now_ms, self._rows, hours, minutes, peaks(self._first_hour, hours, self._at_once))

    def _is_repeated(self, row: IndexRow) -> bool:
        """Detect a row that was claimed during the walk and moved ahead of it."""
        identity = hash((row.owner, row.key))
        if identity in self._seen:
            return True
        if row.next_fire_at <= self._now_ms + SOON_MS and len(self._seen) < MAX_SEEN:
            self._seen.add(identity)
        return False

    def _add_calendar(self, row: IndexRow, due_at: int) -> None:
        """Add the instants after the row is advanced at `due_at`, shifted by its offset."""
        offset = row.offset_ms // 1000
        after = (due_at - row.offset_ms) // 1000
        until = self._end - 1 - offset if row.ends_at is None else min(row.ends_at // 1000, self._end - 1 - offset)
        if after < until:
            self._following.setdefault(row.when, Counter())[Following(offset, after, until)] += 1

    def _add_one_shot(self, when: At, row: IndexRow, due_at: int) -> None:
        """Add the one instant of the expression, if the row is due before it."""
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
        if when.interval_ms % 1000 == 0:  # the fraction of a second is constant, and can be dropped
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

    def _candidates(self, largest: Sequence[tuple[int, int]]) -> set[int]:
        """Return seconds that may be peaks: those with the most single instants, and the starts of the largest dense series."""
        now = self._now_ms // 1000
        frequent = (series for series, _ in heapq.nlargest(MAX_CANDIDATES, self._dense, key=lambda dense: dense[1]))
        begin = {series.stands_at if series.stands_at > now else next(iter(series)) for series in frequent}
        return begin | {at for _, at in largest}


def _add_buckets(buckets: list[int], first: int, width: int, series: Series, number: int) -> None:
    before = series.until(first - 1)
    for n in range(len(buckets)):
        until = series.until(first + (n + 1) * width - 1)
        buckets[n] += number * (until - before)
        before = until
