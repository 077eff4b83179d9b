"""Invitations: the operator makes a link, and whoever opens it becomes a user."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Response, get, post

from slothpost.errors import InvalidField, NotFound
from slothpost.people.users import checked_name, checked_zone
from slothpost.web.context import HttpRequest, operator_of, part, slothpost_of, web_of
from slothpost.web.pages.form_errors import FieldErrors, errors_of
from slothpost.web.pages.rendering import EVERYBODY, page, read_form, redirect
from slothpost.web.pages.settings import settings_page
from slothpost.web.pages.sign_in import TOO_OLD, sign_in_path
from slothpost.web.pages.zones import ZONES
from tickler.web import Refused

INVITE = "invite"  # the purpose of such links
INVITATION_LASTS = timedelta(days=7)
SIGN_IN_LINK_LASTS = timedelta(days=1)
FIELDS = ("name", "zone")


@post("/users/invite", status_code=200)
async def invite(request: HttpRequest) -> Response[str]:
    await read_form(request)
    code = await web_of(request).links.create(operator_of(request).id, purpose=INVITE, lifetime=INVITATION_LASTS)
    return await settings_page(request, shown={"invitation": slothpost_of(request).settings.url(f"/join/{code}")})


@post("/users/{user_id:str}/sign-in-link", status_code=200)
async def sign_in_link(request: HttpRequest) -> Response[str]:
    """Make a link for a user who has lost theirs."""
    user_id = part(request, "user_id")
    await read_form(request)
    operator_of(request)
    user = await slothpost_of(request).users.get(user_id)
    if user is None:
        raise NotFound("user")
    code = await web_of(request).links.create(user.id, lifetime=SIGN_IN_LINK_LASTS)
    shown = {"sign_in_link": slothpost_of(request).settings.url(sign_in_path(code)), "sign_in_name": user.name}
    return await settings_page(request, shown=shown)


@get("/join/{code:str}", opt=EVERYBODY)
async def join_page(request: HttpRequest) -> Response[str]:
    code = part(request, "code")
    await _check(request, code)
    return await _form(request, code, {"name": "", "zone": "UTC"})


@post("/join/{code:str}", status_code=200, opt=EVERYBODY)
async def join(request: HttpRequest) -> Response[Any]:
    """Create the user. The link is used up only when the form is right."""
    code = part(request, "code")
    web, fields = web_of(request), await read_form(request)
    await _check(request, code)
    name, zone = fields.get("name", ""), fields.get("zone", "").strip()
    try:
        checked_name(name)
        checked_zone(zone)
    except InvalidField as error:
        return await _form(request, code, fields, errors_of(error, FIELDS))
    if await web.links.redeem(code, purpose=INVITE) is None:
        raise Refused(404, TOO_OLD)
    user = await slothpost_of(request).users.create(name, zone=zone)
    answer = redirect("/products", "in")
    answer.headers["set-cookie"] = await web.sign_in(request.scope, user.id)
    return answer


HANDLERS = [invite, sign_in_link, join_page, join]


async def _check(request: HttpRequest, code: str) -> None:
    """Refuse a link that was used or is too old, and one of an operator who is gone."""
    inviter = await web_of(request).links.find(code, purpose=INVITE)
    if inviter is None or await slothpost_of(request).users.get(inviter) is None:
        web_of(request).count_failure(request.scope)
        raise Refused(404, TOO_OLD)


async def _form(request: HttpRequest, code: str, fields: dict[str, str], errors: FieldErrors | None = None) -> Response[str]:
    shown = {name: fields.get(name, "") for name in FIELDS}
    return await page(request, "join", "", 422 if errors else 200, code=code, fields=shown, errors=errors or {}, zones=ZONES)
