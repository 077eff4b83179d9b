"""*Settings*: the user, notices, accounts, drafters, tokens of the API, and other devices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Response, get, post

from slothpost.errors import InvalidField
from slothpost.people.users import UserChanges
from slothpost.web.context import HttpRequest, part, products_of, slothpost_of, tokens_of, user_of, web_of
from slothpost.web.pages.form_errors import FieldErrors, errors_of
from slothpost.web.pages.rendering import page, read_form, redirect
from slothpost.web.pages.sign_in import sign_in_path
from slothpost.web.pages.zones import ZONES
from tickler.errors import InvalidInput
from tickler.web import Refused

DEVICE_LINK_LASTS = timedelta(minutes=15)
PROFILE = ("name", "zone")


@get("/settings")
async def settings(request: HttpRequest) -> Response[str]:
    return await settings_page(request)


@post("/settings", status_code=200)
async def save(request: HttpRequest) -> Response[Any]:
    fields, user = await read_form(request), user_of(request)
    changes = UserChanges(name=fields.get("name", ""), zone=fields.get("zone", "").strip())
    try:
        await slothpost_of(request).users.update(user.id, changes)
    except (InvalidField, InvalidInput) as error:
        return await settings_page(request, 422, typed=fields, errors=errors_of(error, PROFILE))
    return redirect("/settings", "saved")


@post("/settings/notices", status_code=200)
async def save_notices(request: HttpRequest) -> Response[Any]:
    """Set the webhook for notices. A new one has a secret, which is shown this once."""
    fields, user = await read_form(request), user_of(request)
    try:
        _, secret = await slothpost_of(request).users.update(
            user.id, UserChanges(notify_url=fields.get("notify_url", "").strip())
        )
    except (InvalidField, InvalidInput) as error:
        return await settings_page(request, 422, typed=fields, errors=errors_of(error, ("notify_url",)))
    if secret is None:
        return redirect("/settings#notices", "saved")
    return await settings_page(request, shown={"notify_secret": secret})


@post("/settings/{change:str}", status_code=200)
async def change(request: HttpRequest) -> Response[bytes]:
    """Pause or resume everything of a user."""
    change = part(request, "change")
    await read_form(request)
    if change not in ("pause", "resume"):
        raise Refused(404, "there is no such page")
    await slothpost_of(request).plans.pause_user(user_of(request).id, paused=change == "pause")
    return redirect("/settings", "paused" if change == "pause" else "resumed")


@post("/settings/tokens", status_code=200)
async def create_token(request: HttpRequest) -> Response[str]:
    """Issue a token of the API. Its text is on the page this once."""
    fields = await read_form(request)
    try:
        text = await tokens_of(request).issue(
            user_of(request), fields.get("token_name", ""), writes=fields.get("scope") == "write"
        )
    except InvalidField as error:
        return await settings_page(request, 422, typed=fields, errors=errors_of(error, ("token_name",)))
    return await settings_page(request, shown={"token": text})


@post("/settings/tokens/{token_id:str}/revoke", status_code=200)
async def revoke_token(request: HttpRequest) -> Response[bytes]:
    token_id = part(request, "token_id")
    await read_form(request)
    await tokens_of(request).revoke(user_of(request), token_id)
    return redirect("/settings#tokens", "revoked")


@post("/settings/device-link", status_code=200)
async def device_link(request: HttpRequest) -> Response[str]:
    """Make a link that signs the same user in on another device."""
    await read_form(request)
    code = await web_of(request).links.create(user_of(request).id, lifetime=DEVICE_LINK_LASTS)
    return await settings_page(request, shown={"device_link": slothpost_of(request).settings.url(sign_in_path(code))})


HANDLERS = [settings, save, save_notices, create_token, revoke_token, device_link, change]


async def settings_page(
    request: HttpRequest, status: int = 200, *,
    typed: dict[str, str] | None = None, errors: FieldErrors | None = None, shown: dict[str, str] | None = None,
) -> Response[str]:  # fmt: skip
    """Render the page. `shown` has what is shown this once: a secret, a token, a link."""
    slothpost = slothpost_of(request)
    user = await slothpost.users.get(user_of(request).id) or user_of(request)
    stored = {"name": user.name, "zone": user.zone, "notify_url": user.notify_url or "", "token_name": "", "invited_name": ""}
    return await page(
        request, "settings", "settings", status,
        fields={**stored, **(typed or {})}, errors=errors or {}, shown=shown or {}, zones=ZONES, me=user,
        accounts=await slothpost.accounts.list(user.id), products=await products_of(request),
        tokens=await tokens_of(request).list(user), can_connect=set(slothpost.networks),
        everyone=await slothpost.users.everyone() if user.is_operator else [],
    )  # fmt: skip
