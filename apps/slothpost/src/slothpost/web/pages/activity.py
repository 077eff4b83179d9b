"""*Activity*: what happened to the products, what posts tell of it, and deliveries that no product claims."""

from __future__ import annotations

from litestar import Response, get

from slothpost.errors import NotAllowed
from slothpost.model import Activity, Product, Unrouted
from slothpost.web.context import HttpRequest, products_of, slothpost_of, user_of
from slothpost.web.pages.rendering import page
from tickler.errors import DecryptionFailed

PAGE = 30
MAX_UNROUTED = 20


@get("/activity")
async def activity(request: HttpRequest) -> Response[str]:
    """Show one product's activity by pages, or the latest of all."""
    slothpost, user = slothpost_of(request), user_of(request)
    products = await products_of(request)
    chosen = request.query_params.get("product") or None
    after, more = request.query_params.get("after") or None, None
    found: list[tuple[Product, Activity]] = []
    if chosen is not None or len(products) == 1:
        product = await slothpost.products.get(user.id, chosen or products[0].id)
        listed = await slothpost.activities.recent(user.id, product.id, first=PAGE, after=after)
        found, more = [(product, each) for each in listed.items], listed.end if listed.has_next else None
    else:
        for product in products:
            listed = await slothpost.activities.recent(user.id, product.id, first=PAGE)
            found += [(product, each) for each in listed.items]
        found = sorted(found, key=lambda pair: pair[1].at, reverse=True)[:PAGE]
    everywhere = (await slothpost.activities.unrouted_everywhere(user.id, MAX_UNROUTED)).items if user.is_operator else []
    return await page(
        request, "activity", "activity",
        products=products, chosen=chosen, found=found, more=more,
        unrouted=await _unrouted(request, user.id), everywhere=everywhere,
    )  # fmt: skip


HANDLERS = [activity]


async def _unrouted(request: HttpRequest, user: str) -> list[Unrouted]:
    """Return what waits for the user's own team or account, if Vercel says at this moment that it is theirs."""
    activities, connections = slothpost_of(request).activities, slothpost_of(request).connections
    if not await activities.unrouted(user):
        return []
    try:
        await connections.vercel_projects(user)  # installations that were removed at Vercel are forgotten by that
    except (NotAllowed, DecryptionFailed):
        return []
    return (await activities.unrouted(user))[:MAX_UNROUTED]
