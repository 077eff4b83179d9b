"""*Products*: the list, and the page of one with its channels and its sources."""

from __future__ import annotations

from typing import Any, cast, get_args

from litestar import Response, get, post

from slothpost.errors import InvalidField, NotFound
from slothpost.model import Account, ChannelName, Product, Source
from slothpost.planning.plans import CHANNELS, ChannelView
from slothpost.web.context import HttpRequest, part, products_of, slothpost_of, user_of
from slothpost.web.pages.form_errors import FieldErrors, errors_of
from slothpost.web.pages.plan_form import PlanForm, shown_plan
from slothpost.web.pages.rendering import page, read_form, redirect
from slothpost.web.pages.zones import ZONES
from tickler.web import Refused

SOURCES: tuple[Source, ...] = get_args(Source)


@get("/products")
async def products(request: HttpRequest) -> Response[str]:
    slothpost, user = slothpost_of(request), user_of(request)
    listed = await products_of(request)
    views = {product.id: await views_of(request, product) for product in listed}
    connections = {product.id: await slothpost.connections.list(user.id, product.id) for product in listed}
    return await page(request, "products", "products", products=listed, views=views, connections=connections)


@get("/products/{product_id:str}")
async def product(request: HttpRequest) -> Response[str]:
    product_id = part(request, "product_id")
    return await product_page(request, product_id)


@post("/products/{product_id:str}/{change:str}", status_code=200)
async def change(request: HttpRequest) -> Response[bytes]:
    """Pause or resume a product."""
    product_id, change = part(request, "product_id"), part(request, "change")
    await read_form(request)
    if change not in ("pause", "resume"):
        raise Refused(404, "there is no such page")
    await slothpost_of(request).plans.pause_product(user_of(request).id, product_id, paused=change == "pause")
    return redirect(f"/products/{product_id}", "paused" if change == "pause" else "resumed")


@post("/products/{product_id:str}/topic-tag", status_code=200)
async def topic_tag(request: HttpRequest) -> Response[Any]:
    product_id = part(request, "product_id")
    fields = await read_form(request)
    tag = fields.get("topic_tag", "")
    try:
        await slothpost_of(request).products.set_topic_tag(user_of(request).id, product_id, tag)
    except InvalidField as error:
        return await product_page(request, product_id, 422, errors=errors_of(error, ("topic_tag",)), topic_tag=tag)
    return redirect(f"/products/{product_id}#threads", "saved")


HANDLERS = [products, product, change, topic_tag]


async def product_page(
    request: HttpRequest, product_id: str, status: int = 200, *, plans: dict[ChannelName, PlanForm] | None = None,
    errors: FieldErrors | None = None, topic_tag: str | None = None,
) -> Response[str]:  # fmt: skip
    """Render the page of a product. `plans` are forms with what was typed and could not be saved."""
    slothpost, user = slothpost_of(request), user_of(request)
    found = await slothpost.products.get(user.id, product_id)
    views = await views_of(request, found)
    forms = {view.state.channel.name: shown_plan(view.state.channel) for view in views} | (plans or {})
    accounts = await slothpost.accounts.list(user.id)
    connections = {each.source: each for each in await slothpost.connections.list(user.id, product_id)}
    return await page(
        request, "product", "products", status,
        product=found, views=views, plans=forms, accounts=_by_network(accounts), connections=connections, sources=SOURCES,
        errors=errors or {}, topic_tag=topic_tag, can_connect=set(slothpost.networks), zones=ZONES,
    )  # fmt: skip


async def views_of(request: HttpRequest, product: Product) -> list[ChannelView]:
    plans = slothpost_of(request).plans
    return [await plans.view(product.user, product.id, name) for name in CHANNELS]


def channel_name(text: str) -> ChannelName:
    """Return the channel that an address names."""
    if text not in CHANNELS:
        raise NotFound("channel")
    return cast(ChannelName, text)


def _by_network(accounts: list[Account]) -> dict[ChannelName, list[Account]]:
    return {name: [account for account in accounts if account.network == name] for name in CHANNELS}
