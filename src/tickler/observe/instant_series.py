"""Series of instants that are counted without iteration, in whole seconds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tickler.when import When, load_zone

HOUR = 3_600
DENSE_MS = HOUR * 1000 // 2  # expressions with shorter intervals are expanded by pattern


class Series(Protocol):
    """The instants after the next fire of a row, ascending."""

    @property
    def stands_at(self) -> int: ...

    def until(self, at: int) -> int:
        """Return the number of instants up to and including `at`."""

    def __iter__(self) -> Iterator[int]: ...


class Expansion:
    """The instants of a cron or weekly expression with `low <= at < high`. Both have whole seconds only.

    The instants within an hour are a *pattern*. Hours with the same first and last instant and the same offset from UTC share a
    pattern, since minutes and seconds match independently of the hour. So an expression that fires every second is iterated for
    one hour, and queried twice for each of the others. Hours with a clock change are iterated.
    """

    __slots__ = ("_before", "_hours", "_patterns", "count")

    def __init__(self, when: When, low: int, high: int) -> None:
        self._hours: list[int] = []  # with instants, ascending
        self._patterns: list[tuple[int, ...]] = []  # of each hour, in seconds from its start
        self._before: list[int] = []  # the number of instants before each hour
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
        """Yield the instants with `after < at <= until`."""
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
    """Part of an expansion: the instants with `after < at <= last`, shifted by an offset."""

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
    """The instants of an interval from `first_ms` to `last_ms`, both included, counted by second."""

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
    """Yield each hour with instants, and its pattern."""
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
            yield hour, _iterate(when, hour, first, end)
            continue
        last = when.last_before(at * 1000)
        assert last is not None
        shape = (span.offset, first - hour, last // 1000 - hour)
        if shape not in known:
            known[shape] = _iterate(when, hour, first, end)
        yield hour, known[shape]


def _iterate(when: When, hour: int, first: int, end: int) -> tuple[int, ...]:
    found: list[int] = []
    at: int | None = first
    while at is not None and at < end:
        found.append(at - hour)
        at = _next(when, at)
    return tuple(found)


def _next(when: When, after: int) -> int | None:
    at = when.next_after(after * 1000)
    return None if at is None else at // 1000
