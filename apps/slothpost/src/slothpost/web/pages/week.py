"""*Week*: every product and channel, day by day."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import groupby

from litestar import Response, get

from slothpost.model import Channel, Post, Slot
from slothpost.planning.plans import CHANNELS
from slothpost.posts.actions import actions_of
from slothpost.web.context import HttpRequest, products_of, slothpost_of, user_of
from slothpost.web.pages.rendering import clock_of, page
from slothpost.web.pages.week_grid import DAYS, Row, bounds, monday_of, week_row

MAX_WEEKS_AWAY = 530  # ten years


@get("/week")
async def week(request: HttpRequest) -> Response[str]:
    clock = clock_of(request)
    this_week = monday_of(clock.today)
    monday = _monday(request.query_params.get("from"), this_week)
    rows = await _rows(request, monday)
    return await page(
        request, "week", "week",
        monday=monday, days=[monday + timedelta(days=number) for number in range(DAYS)], today=clock.today,
        rows=rows, groups=[(rows[0].product, rows) for rows in _grouped(rows)], is_this_week=monday == this_week,
        before=monday - timedelta(days=DAYS), after=monday + timedelta(days=DAYS), actions_of=actions_of,
        move_days=[clock.today + timedelta(days=number) for number in range(2 * DAYS)],
    )  # fmt: skip


HANDLERS = [week]


async def _rows(request: HttpRequest, monday: date) -> list[Row]:
    slothpost, user, clock = slothpost_of(request), user_of(request), clock_of(request)
    first, after = bounds(monday, clock)
    end = after - timedelta(seconds=1)
    posts: dict[tuple[str, str], list[Post]] = {}
    async for post in slothpost.db.iterate(Post.by_slot(user.id).between(first, end)):
        posts.setdefault((post.product, post.channel), []).append(post)
    rows: list[Row] = []
    for product in await products_of(request):
        for channel in await slothpost.db.get_many([Channel.key.id(product.id, name) for name in CHANNELS]):
            if channel is None:
                continue
            slots = [slot async for slot in slothpost.db.iterate(Slot.key(product.id).under(channel.name).between(first, end))]
            own = posts.get((product.id, channel.name), [])
            if own or slots or channel.days:
                rows.append(week_row(product, channel, monday, clock, posts=own, slots=slots))
    return rows


def _grouped(rows: list[Row]) -> list[list[Row]]:
    return [list(group) for _, group in groupby(rows, key=lambda row: row.product.id)]


def _monday(text: str | None, this_week: date) -> date:
    """Return the Monday of the week that the address names; of this one if it names none, or one that is too far away."""
    try:
        monday = monday_of(date.fromisoformat(text or ""))
    except (ValueError, OverflowError):
        return this_week
    return monday if abs((monday - this_week).days) <= MAX_WEEKS_AWAY * DAYS else this_week
