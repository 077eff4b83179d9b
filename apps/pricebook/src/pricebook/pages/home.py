"""*Overview*: what changes next in all stores, what waits for somebody, and what happened last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from litestar import Response, get

from pricebook.editions.pages import PageArgs
from pricebook.model import ChangeSet
from pricebook.pages.audit_words import News, news_of
from pricebook.pages.rendering import page
from pricebook.pages.requests import caller_of
from pricebook.timelines.coming import ComingChange
from pricebook.web.context import HttpRequest, book_of

COMING = 12
OPEN = 100
UPLOADS = 5
ENTRIES = 300  # of a day that are looked at, for what happened last
NEWS = 8
MAX_OVERDUE = 500  # that are counted


@get("/")
async def home(request: HttpRequest) -> Response[str]:
    book, caller = book_of(request), caller_of(request)
    coming = await book.coming.next(caller)
    found = await book.change_sets.open(caller, PageArgs(first=OPEN))
    news = await _news(request, book.now())
    uploads = await book.bulk.recent(caller, PageArgs(first=UPLOADS))
    shown = coming.changes[:COMING]
    return await page(
        request,
        "home",
        "home",
        coming=shown,
        is_cut=coming.has_more or len(coming.changes) > COMING,
        last=shown[-1] if shown and coming.has_more and len(coming.changes) <= COMING else None,
        sets=await _sets_of(request, shown, news),
        waiting=[each for each in found.nodes if each.state == "submitted"],
        drafts=[each for each in found.nodes if each.state == "draft" and each.created_by == caller.id],
        busy=[each for each in found.nodes if each.state in ("approving", "withdrawing")],
        has_more_open=found.has_next,
        overdue=await book.settling.overdue(MAX_OVERDUE),
        max_overdue=MAX_OVERDUE,
        stores=await book.stores.count_hint(caller),
        uploads=uploads.nodes,
        news=news,
    )


HANDLERS = [home]


async def _news(request: HttpRequest, now: datetime) -> list[News]:
    """Return what happened last, today or yesterday."""
    trail, caller = book_of(request).audit, caller_of(request)
    today = now.astimezone(UTC).date()
    found: list[News] = []
    for day in (today, today - timedelta(days=1)):
        found += news_of((await trail.of_day(caller, day, PageArgs(first=ENTRIES))).nodes)
    return found[:NEWS]


async def _sets_of(request: HttpRequest, coming: Sequence[ComingChange], news: Sequence[News]) -> dict[str, ChangeSet]:
    """Return the change sets that the page names, as far as the person may see them."""
    named = [each.change_set for each in coming] + [each.last.change_set for each in news]
    found = await book_of(request).change_sets.get_many(caller_of(request), [id for id in dict.fromkeys(named) if id])
    return {each.id: each for each in found if each is not None}
