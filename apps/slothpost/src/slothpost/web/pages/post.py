"""One post: its card, its history, and the forms that decide about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Response, get, post

from slothpost.errors import InvalidField, NotAllowed
from slothpost.posts.cards import Card
from slothpost.posts.review import MAX_TEXT
from slothpost.text.check import check_text
from slothpost.web.context import HttpRequest, now_of, part, slothpost_of, user_of
from slothpost.web.pages.decisions import DECISIONS
from slothpost.web.pages.form_errors import FORM, FieldErrors, errors_of
from slothpost.web.pages.rendering import fragment, is_for_queue, is_fragment, page, read_form, redirect
from slothpost.web.pages.slot_choice import free_slots
from tickler.errors import InvalidInput
from tickler.web import Refused, local_path

CARD_FIELDS = ("text", "hint", "until", "slot_at", "days", "url", "note")
CARD_ERRORS = ("text", "until", "url")  # fields of a card that show their errors; others are shown above it
PAGE_ERRORS = (*CARD_ERRORS, "slot_at")


@get("/posts/{post_id:str}")
async def post_page(request: HttpRequest) -> Response[str]:
    post_id = part(request, "post_id")
    card = await slothpost_of(request).review.card(user_of(request).id, post_id)
    if is_fragment(request):
        return await _card_fragment(request, card)
    return await _page(request, card)


@post("/posts/{post_id:str}/check", status_code=200)
async def check(request: HttpRequest) -> Response[str]:
    """Return what the network would make of a text that is being typed."""
    post_id = part(request, "post_id")
    fields = await read_form(request)
    card = await slothpost_of(request).review.card(user_of(request).id, post_id)
    recent = await slothpost_of(request).cards.recent_texts(card.post.product, card.post.channel, but=post_id)
    text = _one_newline(fields.get("text", "")).strip()[:MAX_TEXT]  # counting takes a microsecond a character
    found = check_text(card.post.channel, text, recent=recent)
    return await fragment(request, "check", card=card, check=found, text=text)


@post("/posts/{post_id:str}/{action:str}", status_code=200)
async def decide(request: HttpRequest) -> Response[Any]:
    """Do what a form of a card says, and show the card as it is then: as a part for a script, or on the page it came from."""
    post_id, action = part(request, "post_id"), part(request, "action")
    fields = await read_form(request)
    decision = DECISIONS.get(action)
    if decision is None:
        raise Refused(404, "there is no such page")
    user = user_of(request)
    try:
        notice = await decision(request, user, post_id, fields)
    except NotAllowed as error:
        return await _again(request, post_id, 409, fields, {FORM: str(error)})
    except (InvalidField, InvalidInput) as error:
        return await _again(request, post_id, 422, fields, errors_of(error, CARD_ERRORS if is_fragment(request) else PAGE_ERRORS))
    if is_fragment(request):
        return await _card_fragment(request, await slothpost_of(request).review.card(user.id, post_id))
    return redirect(local_path(fields.get("back"), f"/posts/{post_id}"), notice)


HANDLERS = [post_page, check, decide]


async def _again(
    request: HttpRequest, post_id: str, status: int, fields: Mapping[str, str], errors: FieldErrors
) -> Response[str]:
    """Show the card with the reason, and with what was typed."""
    card = await slothpost_of(request).review.card(user_of(request).id, post_id)
    typed = {name: _one_newline(fields[name]) for name in CARD_FIELDS if name in fields}
    if is_fragment(request):
        return await _card_fragment(request, card, status, errors=errors, typed=typed)
    return await _page(request, card, status, errors=errors, typed=typed)


async def _page(
    request: HttpRequest,
    card: Card,
    status: int = 200,
    *,
    errors: FieldErrors | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response[str]:
    slots = await free_slots(slothpost_of(request).db, card, now_of(request))
    return await page(request, "post", "review", status, card=card, slots=slots, errors=errors or {}, typed=typed or {})


async def _card_fragment(
    request: HttpRequest,
    card: Card,
    status: int = 200,
    *,
    errors: FieldErrors | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response[str]:
    back = "/" if is_for_queue(request) else f"/posts/{card.post.id}"
    return await fragment(
        request, "card", status,
        card=card, errors=errors or {}, typed=typed or {}, compact=is_for_queue(request), back=back,
    )  # fmt: skip


def _one_newline(text: str) -> str:
    """Browsers send the line breaks of a textarea as two characters."""
    return text.replace("\r\n", "\n")
