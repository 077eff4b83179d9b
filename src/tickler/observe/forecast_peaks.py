"""What stands out in a forecast: instants and hours at which far more is due than on average, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from tickler.clock import to_datetime
from tickler.observe.instant_series import HOUR

MIN_PEAK_FIRES = 100  # fewer than so many at once trouble nobody
INSTANTS = 5  # that are told of
HOURS = 3
TIMES = 2.0  # the average, from which on an hour stands out
A_SECOND = 10  # what a spread should bring a peak down to
FREQUENT_SPREAD = 30  # of what fires every few minutes, and cannot be spread over more

_DAY = 24 * HOUR
_SPREADS = {
    10: "10 s",
    30: "30 s",
    60: "1 min",
    120: "2 min",
    300: "5 min",
    600: "10 min",
    900: "15 min",
    1800: "30 min",
    3600: "1 h",
}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Peak(msgspec.Struct, frozen=True):
    """A second or an hour, from `at` on, at which `count` are due: so many times the average of all seconds, or hours.

    The `hint` says in a sentence what a spread would make of it, where many are due at the same instant.
    """

    at: int
    of: Literal["instant", "hour"]
    count: int
    times_average: float
    hint: str | None = None


class AtOnce(msgspec.Struct, frozen=True):
    """How many are due in a second, and how many of them fire every few minutes."""

    at: int
    count: int
    frequent: int


def peaks(first_hour: int, hours: Sequence[int], at_once: Iterable[AtOnce]) -> list[Peak]:
    """The largest first, instants before hours; of those at the same time of day only one, as the others have the same cause."""
    total = sum(hours)
    return [*_instants(at_once, total / (len(hours) * HOUR)), *_hours(first_hour, hours, total / len(hours))]


def _instants(at_once: Iterable[AtOnce], average: float) -> Iterator[Peak]:
    many = {each.at: each for each in at_once if each.count >= MIN_PEAK_FIRES}
    for at in _distinct({at: each.count for at, each in many.items()}, INSTANTS):
        each = many[at]
        yield Peak(at * 1000, "instant", each.count, round(each.count / average, 1), _hint(each))


def _hours(first_hour: int, hours: Sequence[int], average: float) -> Iterator[Peak]:
    many = {first_hour + n * HOUR: count for n, count in enumerate(hours) if count >= max(MIN_PEAK_FIRES, TIMES * average)}
    for at in _distinct(many, HOURS):
        yield Peak(at * 1000, "hour", many[at], round(many[at] / average, 1))


def _distinct(counts: Mapping[int, int], most: int) -> list[int]:
    """Those with the highest counts, each at another time of day; the earliest of equals."""
    found: dict[int, int] = {}
    for at in sorted(counts, key=lambda at: (-counts[at], at)):
        found.setdefault(at % _DAY, at)
        if len(found) == most:
            break
    return list(found.values())


def _hint(each: AtOnce) -> str:
    spreads = [spread for spread in _SPREADS if spread <= FREQUENT_SPREAD or 2 * each.frequent <= each.count]
    spread = next((spread for spread in spreads if each.count <= A_SECOND * spread), spreads[-1])
    return (
        f"{each.count:,} due {said(each.at)}; a spread of {_SPREADS[spread]} would make that "
        f"{round(each.count / spread):,} a second"
    )


def said(at: int) -> str:
    """An instant of the coming week, as people say it: Monday 09:00 UTC."""
    moment = to_datetime(at * 1000)
    return f"{_WEEKDAYS[moment.weekday()]} {moment:%H:%M}{f':{moment:%S}' if moment.second else ''} UTC"
