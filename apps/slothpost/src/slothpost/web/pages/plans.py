"""Changes of one channel: its plan, its pause."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, post

from slothpost.web.context import HttpRequest, part, slothpost_of, user_of
from slothpost.web.pages.form_errors import errors_of
from slothpost.web.pages.plan_form import ZONE, read_plan
from slothpost.web.pages.products import channel_name, product_page
from slothpost.web.pages.rendering import read_form, redirect
from tickler.errors import InvalidInput
from tickler.web import Refused

CHANNEL = "/products/{product_id:str}/{channel:str}"


@post(f"{CHANNEL}/plan", status_code=200)
async def set_plan(request: HttpRequest) -> Response[Any]:
    """Save a plan; or show the form again with what was typed, and each reason next to its field."""
    product_id, channel = part(request, "product_id"), part(request, "channel")
    name, user = channel_name(channel), user_of(request)
    days, form = read_plan(await read_form(request))
    if not form.errors:
        try:
            await slothpost_of(request).plans.set_plan(user.id, product_id, name, days, form.zone)
        except InvalidInput as error:
            form = msgspec.structs.replace(form, errors=errors_of(error, (*form.typed, ZONE)))
    if form.errors:
        return await product_page(request, product_id, 422, plans={name: form})
    return redirect(f"/products/{product_id}#{name}", "plan")


@post(f"{CHANNEL}/{{change:str}}", status_code=200)
async def change(request: HttpRequest) -> Response[bytes]:
    """Pause or resume a channel."""
    product_id, channel, change = part(request, "product_id"), part(request, "channel"), part(request, "change")
    await read_form(request)
    if change not in ("pause", "resume"):
        raise Refused(404, "there is no such page")
    name = channel_name(channel)
    await slothpost_of(request).plans.pause_channel(user_of(request).id, product_id, name, paused=change == "pause")
    return redirect(f"/products/{product_id}#{name}", "paused" if change == "pause" else "resumed")


HANDLERS = [set_plan, change]
