"""What each form of a card means for the post. Every decision returns the name of the notice that a page shows afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from slothpost.errors import InvalidField
from slothpost.model import User
from slothpost.web.context import HttpRequest, now_of, slothpost_of
from slothpost.web.pages.rendering import clock_of

Fields = Mapping[str, str]
Decision = Callable[[HttpRequest, User, str, Fields], Awaitable[str]]

MAX_DAYS = 366
MORNING = 9


async def approve(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.approve(user.id, post, by=user.name, text=fields.get("text"), version=_version(fields))
    return "approved"


async def unapprove(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.unapprove(user.id, post, by=user.name)
    return "unapproved"


async def edit(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    """Save a text, and approve it if that button was pressed."""
    if fields.get("then") == "approve":
        return await approve(request, user, post, fields)
    await slothpost_of(request).review.edit(user.id, post, by=user.name, text=fields.get("text", ""))
    return "edited"


async def regenerate(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).drafts.regenerate(user.id, post, by=user.name, hint=fields.get("hint", "").strip())
    return "regenerated"


async def snooze(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    until = _snoozed_until(request, fields)
    await slothpost_of(request).review.snooze(user.id, post, by=user.name, until=until)
    return "snoozed"


async def reject(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.reject(user.id, post, by=user.name, note=fields.get("note", "").strip())
    return "rejected"


async def restore(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.restore(user.id, post, by=user.name)
    return "restored"


async def post_now(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.post_now(user.id, post, by=user.name, version=_version(fields))
    return "posting"


async def to_next_slot(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.to_next_slot(user.id, post, by=user.name, version=_version(fields))
    return "moved"


async def move(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    """Move to an instant, or by whole days at the same time on the clock."""
    review = slothpost_of(request).review
    if fields.get("days"):
        await review.move_to_day(user.id, post, by=user.name, days=_days(fields["days"]), version=_version(fields))
    else:
        slot_at = _instant(request, "slot_at", fields.get("slot_at", ""))
        await review.move(user.id, post, by=user.name, slot_at=slot_at, version=_version(fields))
    return "moved"


async def went_out(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.went_out(user.id, post, by=user.name, url=fields.get("url", "").strip())
    return "resolved"


async def send_again(request: HttpRequest, user: User, post: str, fields: Fields) -> str:
    await slothpost_of(request).review.send_again(user.id, post, by=user.name, version=_version(fields))
    return "posting"


DECISIONS: Mapping[str, Decision] = {
    "approve": approve,
    "unapprove": unapprove,
    "edit": edit,
    "regenerate": regenerate,
    "snooze": snooze,
    "reject": reject,
    "restore": restore,
    "post-now": post_now,
    "next-slot": to_next_slot,
    "move": move,
    "went-out": went_out,
    "send-again": send_again,
}


def _version(fields: Fields) -> int | None:
    """Return the version of the post that the page showed."""
    text = fields.get("version", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _snoozed_until(request: HttpRequest, fields: Fields) -> datetime:
    """Read a choice such as `3h` or `morning`, or an instant that was typed."""
    choice, clock = fields.get("for", ""), clock_of(request)
    if choice == "3h":
        return now_of(request) + timedelta(hours=3)
    if choice == "morning":
        morning = clock.now.astimezone(clock.zone).replace(hour=MORNING, minute=0, second=0, microsecond=0)
        return morning + timedelta(days=1)  # on the wall clock
    return _instant(request, "until", fields.get("until", ""))


def _instant(request: HttpRequest, field: str, text: str) -> datetime:
    at = clock_of(request).read_input(text)
    if at is None:
        raise InvalidField(field, "choose a day and a time")
    return at


def _days(text: str) -> int:
    digits = text.strip().removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 3 or not -MAX_DAYS <= int(text) <= MAX_DAYS:
        raise InvalidField("days", "choose a day")
    return int(text)
