"""*Stores*: the list, and the page of one with its prices, what changes next, and a drawn time line."""

from __future__ import annotations

from datetime import datetime

from litestar import Response, get

from pricebook.access.caller import Caller
from pricebook.editions.transitions import change_instants
from pricebook.errors import NotFound
from pricebook.model import Head
from pricebook.pages.clock import PageClock
from pricebook.pages.rendering import clock_of, page
from pricebook.pages.requests import asked, caller_of, page_args, page_links, part
from pricebook.pages.store_view import StoreQuery, store_view
from pricebook.web.context import HttpRequest, book_of

LISTED = 100


@get("/stores")
async def stores(request: HttpRequest) -> Response[str]:
    book, caller, prefix = book_of(request), caller_of(request), asked(request, "q")
    found = await book.stores.page(narrowed(caller, prefix), page_args(request, LISTED))
    now = book.now()
    clocks = {head.store: PageClock(now, head.tz) for head in found.nodes}
    return await page(
        request,
        "stores",
        "stores",
        heads=found.nodes,
        q=prefix,
        clocks=clocks,
        coming={head.store: next_change(head, now) for head in found.nodes},
        links=page_links(found, "/stores", q=prefix),
        count=await book.stores.count_hint(narrowed(caller, prefix)),
    )


@get("/stores/{store:str}")
async def store(request: HttpRequest) -> Response[str]:
    query = StoreQuery.read(request, part(request, "store"))
    head = await head_of(request, query.store)
    clock = clock_of(request).of(head.tz) if query.clock == "store" else clock_of(request)
    view = await store_view(request, query, head, clock)
    return await page(request, "store", "stores", clock=clock, head=head, query=query, view=view)


HANDLERS = [stores, store]


def next_change(head: Head, now: datetime) -> datetime | None:
    """Return when prices of a store change next, as far as its head knows."""
    return min((at for at in change_instants(head) if at > now), default=None)


async def head_of(request: HttpRequest, store: str) -> Head:
    """Return the head of a store that the person may see."""
    head = await book_of(request).stores.get(caller_of(request), store)
    if head is None:
        raise NotFound("store")
    return head


def narrowed(caller: Caller, prefix: str) -> Caller:
    """Return the caller for those of their stores only whose ids begin with a text."""
    stores = [each if each.startswith(prefix) else prefix for each in caller.stores if _overlap(each, prefix)]
    return Caller(caller.id, caller.roles, tuple(stores))


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
