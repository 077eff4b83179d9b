"""Accounts on X and Threads: connect one at the network, choose which one a channel posts with, disconnect."""

from __future__ import annotations

from litestar import Response, get, post

from slothpost.errors import InvalidField, NotAllowed
from slothpost.model import NETWORK_NAMES
from slothpost.web.context import HttpRequest, part, slothpost_of, user_of
from slothpost.web.pages.products import channel_name
from slothpost.web.pages.rendering import page, read_form, redirect
from tickler.web import Refused


def callback_path(network: str) -> str:
    return f"/accounts/{network}/callback"


@get("/accounts/{network:str}/connect")
async def connect(request: HttpRequest) -> Response[bytes]:
    """Send the browser to the network, which asks the user. A link, since a form must not lead to another site."""
    network = part(request, "network")
    slothpost, user, name = slothpost_of(request), user_of(request), channel_name(network)
    product = request.query_params.get("product") or None
    if name not in slothpost.networks:
        raise Refused(409, f"this installation has no credentials of {NETWORK_NAMES[name]}: its operator sets them")
    address = await slothpost.accounts.authorize_url(
        user.id, name, redirect_uri=slothpost.settings.url(callback_path(name)), product=product
    )
    return Response(b"", status_code=303, headers={"location": address, "cache-control": "no-store"})


@get("/accounts/{network:str}/callback")
async def callback(request: HttpRequest) -> Response[str] | Response[bytes]:
    """The network sends the browser back, with a code or with the reason why there is none."""
    network = part(request, "network")
    slothpost, user, name = slothpost_of(request), user_of(request), channel_name(network)
    query = request.query_params
    if "error" in query or "code" not in query:
        return await _failed(request, name, "you did not allow it, or the network sent no code")
    # Threads appends #_ to the code; a browser keeps that to itself, a copied address does not.
    code = query["code"].removesuffix("#_")
    try:
        account = await slothpost.accounts.finish(
            user.id, state=query.get("state", ""), code=code, redirect_uri=slothpost.settings.url(callback_path(name))
        )
    except (InvalidField, NotAllowed) as error:
        return await _failed(request, name, error.reason if isinstance(error, InvalidField) else str(error))
    return redirect("/settings#accounts" if account.network == name else "/settings", "connected")


@post("/accounts/{account_id:str}/disconnect", status_code=200)
async def disconnect(request: HttpRequest) -> Response[bytes]:
    account_id = part(request, "account_id")
    await read_form(request)
    await slothpost_of(request).accounts.disconnect(user_of(request).id, account_id)
    return redirect("/settings#accounts", "disconnected")


@post("/products/{product_id:str}/{channel:str}/account", status_code=200)
async def use(request: HttpRequest) -> Response[bytes]:
    """Choose the account that a channel posts with; none for an empty choice."""
    product_id, channel = part(request, "product_id"), part(request, "channel")
    fields, name = await read_form(request), channel_name(channel)
    account = fields.get("account") or None
    await slothpost_of(request).accounts.use(user_of(request).id, product_id, name, account)
    return redirect(f"/products/{product_id}#{name}", "account" if account else "disconnected")


HANDLERS = [connect, callback, disconnect, use]


async def _failed(request: HttpRequest, name: str, reason: str) -> Response[str]:
    return await page(request, "account_failed", "settings", 400, network=name, reason=reason)
