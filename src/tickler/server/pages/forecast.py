"""*Forecast*: the load to come, by hour over a week and by minute over an hour."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import msgspec
from litestar import Response, get

from tickler.clock import to_datetime
from tickler.observe.forecast import Forecast
from tickler.server.context import HttpRequest, service_of
from tickler.server.pages.rendering import page

LEVELS = 6  # shades of the heat map


class Cell(msgspec.Struct, frozen=True):
    label: str
    count: int
    level: int

    def __str__(self) -> str:
        return short(self.count)


class Bar(msgspec.Struct, frozen=True):
    label: str
    count: int
    x: float
    height: float


@get("/forecast", opt={"scope": "read", "all_owners": True})
async def forecast(request: HttpRequest) -> Response[str]:
    found = await service_of(request).tickler.forecasts.for_page()
    return await page(
        request, "forecast", "forecast",
        forecast=found, days=days(found), bars=bars(found), levels=LEVELS,
        most=max(found.hours), most_a_minute=max(found.minutes),
    )  # fmt: skip


HANDLERS = [forecast]


def days(found: Forecast) -> list[tuple[str, list[Cell | None]]]:
    """A row a day, a cell an hour, from midnight on; hours that are not in the forecast are None."""
    start = to_datetime(found.at).replace(minute=0, second=0, microsecond=0)
    most = max(found.hours, default=0)
    rows: dict[datetime, list[Cell | None]] = {}
    for number, count in enumerate(found.hours):
        hour = start + timedelta(hours=number)
        row = rows.setdefault(hour.replace(hour=0), [None] * 24)
        row[hour.hour] = Cell(f"{hour:%A %H:%M} UTC", count, level(count, most))
    return [(f"{day:%a %d %b}", row) for day, row in rows.items()]


def bars(found: Forecast) -> list[Bar]:
    """A bar a minute, 100 high at most."""
    start = to_datetime(found.at).replace(second=0, microsecond=0)
    most = max(found.minutes, default=0) or 1
    return [
        Bar(f"{start + timedelta(minutes=number):%H:%M} UTC", count, 10.0 * number, max(100 * count / most, 1.5 if count else 0))
        for number, count in enumerate(found.minutes)
    ]


def level(count: int, most: int) -> int:
    """How dark: 0 for nothing, and as much of the darkest as it is of the most. Twice as dark is twice as many."""
    return math.ceil(LEVELS * count / most) if count else 0


def short(count: int) -> str:
    """In four characters or five, for a cell."""
    for name, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.{1 if count < 100 * size else 0}f}{name}"
    return str(count)
