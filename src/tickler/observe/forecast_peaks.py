"""Peaks of a forecast: instants and hours with far more fires than average, and the spread that would flatten them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from tickler.clock import to_datetime
from tickler.observe.human_format import span
from tickler.observe.instant_series import HOUR
from tickler.when.describe_cron import WEEKDAYS

MIN_PEAK_FIRES = 100  # fewer at once are no problem
MAX_INSTANTS = 5
MAX_HOURS = 3
MIN_TIMES_AVERAGE = 2.0  # of an hour
TARGET_PER_SECOND = 10  # of the suggested spread
MAX_FREQUENT_SPREAD_S = 30  # for schedules that fire every few minutes

_DAY = 24 * HOUR
_SPREADS_S = (10, 30, 60, 120, 300, 600, 900, 1_800, 3_600)


class Peak(msgspec.Struct, frozen=True):
    """A second or an hour from `at` with `count` fires: `times_average` that of all seconds or hours.

    For an instant, the `hint` says in a sentence what a spread would change.
    """

    at: int
    of: Literal["instant", "hour"]
    count: int
    times_average: float
    hint: str | None = None


class AtOnce(msgspec.Struct, frozen=True):
    """The fires of one second, and how many of them repeat every few minutes."""

    at: int
    count: int
    frequent: int


def peaks(first_hour: int, hours: Sequence[int], at_once: Iterable[AtOnce]) -> list[Peak]:
    """Return instants, then hours, the largest first, and only one per time of day: the others have the same cause."""
    total = sum(hours)
    return [*_instants(at_once, total / (len(hours) * HOUR)), *_hours(first_hour, hours, total / len(hours))]


def _instants(at_once: Iterable[AtOnce], average: float) -> Iterator[Peak]:
    many = {each.at: each for each in at_once if each.count >= MIN_PEAK_FIRES}
    for at in _distinct({at: each.count for at, each in many.items()}, MAX_INSTANTS):
        each = many[at]
        yield Peak(at * 1000, "instant", each.count, round(each.count / average, 1), _hint(each))


def _hours(first_hour: int, hours: Sequence[int], average: float) -> Iterator[Peak]:
    many = {
        first_hour + n * HOUR: count for n, count in enumerate(hours) if count >= max(MIN_PEAK_FIRES, MIN_TIMES_AVERAGE * average)
    }
    for at in _distinct(many, MAX_HOURS):
        yield Peak(at * 1000, "hour", many[at], round(many[at] / average, 1))


def _distinct(counts: Mapping[int, int], limit: int) -> list[int]:
    """Return the times with the highest counts, each at a different time of day; the earliest of equals."""
    found: dict[int, int] = {}
    for at in sorted(counts, key=lambda at: (-counts[at], at)):
        found.setdefault(at % _DAY, at)
        if len(found) == limit:
            break
    return list(found.values())


def _hint(each: AtOnce) -> str:
    spreads = [spread for spread in _SPREADS_S if spread <= MAX_FREQUENT_SPREAD_S or 2 * each.frequent <= each.count]
    spread = next((spread for spread in spreads if each.count <= TARGET_PER_SECOND * spread), spreads[-1])
    return (
        f"{each.count:,} fires due {weekday_time(each.at)}; a spread of {span(spread * 1000)} would make it "
        f"{round(each.count / spread):,} per second"
    )


def weekday_time(at: int) -> str:
    """Format an instant of the coming week, such as "Monday 09:00 UTC"."""
    moment = to_datetime(at * 1000)
    return f"{WEEKDAYS[moment.weekday()]} {moment:%H:%M}{f':{moment:%S}' if moment.second else ''} UTC"
