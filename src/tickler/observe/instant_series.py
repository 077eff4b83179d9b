"""Instants that follow a rule, counted without being walked through; in whole seconds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tickler.when import When, load_zone

HOUR = 3_600
DENSE_MS = HOUR * 1000 // 2  # instants that are nearer to each other are looked for by pattern


class Series(Protocol):
    """Some instants, ascending: those that follow the one at which a row stands."""

    @property
    def stands_at(self) -> int: ...

    def until(self, at: int) -> int:
        """How many there are up to `at`, itself included."""

    def __iter__(self) -> Iterator[int]: ...


class Expansion:
    """The instants of a calendar, `low <= at < high`. A cron expression or a weekly plan can name nothing but whole seconds.

    The instants within an hour are a *pattern*. Hours that begin and end with the same instants, at the same offset from UTC,
    have the same one: a clock's minutes and seconds match or do not, whatever the hour. So an expression that fires every second
    is walked through for an hour, and asked twice for each of the others. Hours in which the clock is set are walked through.
    """

    __slots__ = ("_before", "_hours", "_patterns", "count")

    def __init__(self, when: When, low: int, high: int) -> None:
        self._hours: list[int] = []  # those that have instants; ascending
        self._patterns: list[tuple[int, ...]] = []  # of each of them, counted from its beginning
        self._before: list[int] = []  # how many instants there are before each of them
        self.count = 0
        for hour, pattern in _patterns(when, low, high):
            self._hours.append(hour)
            self._patterns.append(pattern)
            self._before.append(self.count)
            self.count += len(pattern)

    def until(self, at: int) -> int:
        i = bisect_right(self._hours, at) - 1
        if i < 0:
            return 0
        return self._before[i] + bisect_right(self._patterns[i], at - self._hours[i])

    def between(self, after: int, until: int) -> Iterator[int]:
        """The instants `after < at <= until`."""
        first = max(bisect_right(self._hours, after) - 1, 0)
        for i in range(first, len(self._hours)):
            hour = self._hours[i]
            if hour > until:
                return
            for second in self._patterns[i]:
                if after < hour + second <= until:
                    yield hour + second

    def __iter__(self) -> Iterator[int]:
        return self.between(-1, 1 << 62)


class Shifted(NamedTuple):
    """A part of an expansion, the instants with `after < at <= last`, each moved by an offset."""

    expansion: Expansion
    offset: int
    after: int
    last: int

    @property
    def stands_at(self) -> int:
        return self.after + self.offset

    def until(self, at: int) -> int:
        place = min(max(at - self.offset, self.after), self.last)
        return self.expansion.until(place) - self.expansion.until(self.after)

    def __iter__(self) -> Iterator[int]:
        return (at + self.offset for at in self.expansion.between(self.after, self.last))


class Progression(NamedTuple):
    """What an interval names, from one instant to another, both included: in milliseconds, of which the seconds are counted."""

    interval_ms: int
    first_ms: int
    last_ms: int

    @property
    def stands_at(self) -> int:
        return (self.first_ms - self.interval_ms) // 1000

    def until(self, at: int) -> int:
        until_ms = min(at * 1000 + 999, self.last_ms)
        return (until_ms - self.first_ms) // self.interval_ms + 1 if until_ms >= self.first_ms else 0

    def __iter__(self) -> Iterator[int]:
        return (at // 1000 for at in range(self.first_ms, self.last_ms + 1, self.interval_ms))


def _patterns(when: When, low: int, high: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each hour that has instants, and its pattern."""
    shortest_ms = when.shortest_interval_ms()
    is_dense = shortest_ms is not None and shortest_ms < DENSE_MS
    zone = load_zone(when.tz)
    known: dict[tuple[int, int, int], tuple[int, ...]] = {}
    at = low - 1
    while (first := _next(when, at)) is not None and first < high:
        hour = first - first % HOUR
        end = min(hour + HOUR, high)
        at = end - 1
        span = zone.span(hour)
        is_plain = low <= hour and span.start < hour and hour + HOUR <= min(span.end, high)
        if not is_dense or not is_plain:
            yield hour, _walked(when, hour, first, end)
            continue
        last = when.last_before(at * 1000)
        assert last is not None
        shape = (span.offset, first - hour, last // 1000 - hour)
        if shape not in known:
            known[shape] = _walked(when, hour, first, end)
        yield hour, known[shape]


def _walked(when: When, hour: int, first: int, end: int) -> tuple[int, ...]:
    found: list[int] = []
    at: int | None = first
    while at is not None and at < end:
        found.append(at - hour)
        at = _next(when, at)
    return tuple(found)


def _next(when: When, after: int) -> int | None:
    at = when.next_after(after * 1000)
    return None if at is None else at // 1000
