"""*Forecast*: the number of fires by hour over a week and by minute over an hour."""

from __future__ import annotations

import math

import msgspec
from litestar import Response, get

from tickler.observe.forecast import Forecast
from tickler.server.context import HttpRequest, context_of
from tickler.server.pages.rendering import page
from tickler.server.pages.time_format import format_time

LEVELS = 6  # shades of the heat map
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class Cell(msgspec.Struct, frozen=True):
    """An hour. `due` and `time` are texts for people, the time in UTC."""

    at: int
    count: int
    level: int
    due: str
    time: str

    def __str__(self) -> str:
        return short(self.count)


class Bar(msgspec.Struct, frozen=True):
    """A minute. `due` and `time` are texts for people, the time in UTC."""

    at: int
    count: int
    x: float
    height: float
    due: str
    time: str


@get("/forecast", opt={"scope": "read", "all_owners": True})
async def forecast(request: HttpRequest) -> Response[str]:
    tickler = context_of(request).tickler
    forecast, now_ms = await tickler.forecasts.for_page(), tickler.now_ms()
    return await page(
        request, "forecast", "forecast",
        forecast=forecast, days=days(forecast, now_ms), bars=bars(forecast, now_ms), levels=LEVELS,
        max_per_hour=max(forecast.hours), max_per_minute=max(forecast.minutes),
    )  # fmt: skip


HANDLERS = [forecast]


def days(forecast: Forecast, now_ms: int) -> list[list[Cell | None]]:
    """Return a row of 24 hours per day in UTC; hours outside the forecast are None."""
    start, busiest = forecast.at - forecast.at % HOUR_MS, max(forecast.hours, default=0)
    cells: list[Cell | None] = [None] * (start % DAY_MS // HOUR_MS)
    for number, count in enumerate(forecast.hours):
        at = start + number * HOUR_MS
        cells.append(Cell(at, count, level(count, busiest), f"{count:,} due", format_time(at, now_ms=now_ms)))
    cells += [None] * (-len(cells) % 24)
    return [cells[first : first + 24] for first in range(0, len(cells), 24)]


def bars(forecast: Forecast, now_ms: int) -> list[Bar]:
    """Return a bar per minute, at most 100 high."""
    start, busiest = forecast.at - forecast.at % MINUTE_MS, max(forecast.minutes, default=0) or 1
    found = []
    for number, count in enumerate(forecast.minutes):
        at, height = start + number * MINUTE_MS, max(100 * count / busiest, 1.5 if count else 0)
        found.append(Bar(at, count, 10.0 * number, height, f"{count:,} due", format_time(at, now_ms=now_ms)))
    return found


def level(count: int, busiest: int) -> int:
    """Return the shade of a cell, in proportion to the busiest hour; 0 only for no fires."""
    return math.ceil(LEVELS * count / busiest) if count else 0


def short(count: int) -> str:
    """Format a count in at most five characters."""
    for name, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.{1 if count < 100 * size else 0}f}{name}"
    return str(count)
