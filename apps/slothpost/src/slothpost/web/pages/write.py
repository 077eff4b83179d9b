"""Write a post by hand: for the next free slot, or for an instant."""

from __future__ import annotations

from typing import Any, get_args

from litestar import Response, get, post

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.model import ChannelName
from slothpost.posts.review import MAX_TEXT
from slothpost.text.check import check_text
from slothpost.web.context import HttpRequest, products_of, slothpost_of, user_of
from slothpost.web.pages.environment import sentence_case
from slothpost.web.pages.form_errors import FORM, FieldErrors, errors_of
from slothpost.web.pages.rendering import clock_of, fragment, page, read_form, redirect
from tickler.errors import InvalidInput

FIELDS = ("product", "channel", "text", "slot_at")
CHANNELS: tuple[ChannelName, ...] = get_args(ChannelName)


@get("/write")
async def write_page(request: HttpRequest) -> Response[str]:
    return await _form(request, {name: request.query_params.get(name, "") for name in FIELDS})


@post("/write", status_code=200)
async def write(request: HttpRequest) -> Response[Any]:
    slothpost, user, fields = slothpost_of(request), user_of(request), await read_form(request)
    try:
        slot_at = None
        if fields.get("slot_at", "").strip():
            slot_at = clock_of(request).read_input(fields["slot_at"])
            if slot_at is None:
                raise InvalidField("slot_at", "choose a day and a time, or leave it empty for the next free slot")
        written = await slothpost.drafts.write(
            user.id, fields.get("product", ""), _channel(fields.get("channel", "")), fields.get("text", ""),
            by=user.name, slot_at=slot_at,
        )  # fmt: skip
    except NotFound:
        return await _form(request, fields, {"product": "Choose a product."})
    except NotAllowed as error:
        return await _form(request, fields, {FORM: sentence_case(str(error))})
    except (InvalidField, InvalidInput) as error:
        return await _form(request, fields, errors_of(error, FIELDS))
    return redirect(f"/posts/{written.id}", "written")


@post("/write/check", status_code=200)
async def check(request: HttpRequest) -> Response[str]:
    """Return what the network would make of a text that is being typed."""
    user_of(request)
    fields = await read_form(request)
    text = fields.get("text", "").replace("\r\n", "\n").strip()[:MAX_TEXT]
    found = check_text(_channel(fields.get("channel", "")), text)
    return await fragment(request, "text_check", check=found, channel=_channel(fields.get("channel", "")))


HANDLERS = [write_page, write, check]


async def _form(request: HttpRequest, fields: Any, errors: FieldErrors | None = None) -> Response[str]:
    products = await products_of(request)
    shown = {name: fields.get(name, "").replace("\r\n", "\n") for name in FIELDS}
    channel: ChannelName = "threads" if shown["channel"] == "threads" else "x"
    return await page(
        request, "write", "review", 422 if errors else 200,
        fields=shown, errors=errors or {}, products=products, channel=channel,
        check=check_text(channel, shown["text"].strip()[:MAX_TEXT]),
    )  # fmt: skip


def _channel(name: str) -> ChannelName:
    for known in CHANNELS:
        if name == known:
            return known
    raise InvalidField("channel", "choose X or Threads")
