"""`/api/posts/{post}/…`: what people decide about a post. Each answers with the post as it is then."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slothpost.web.api.decoding import in_utc
from slothpost.web.api.operation import Call, NoBody, NoQuery, operation
from slothpost.web.api.post_bodies import PostDetail, post_detail

_Text = Annotated[str, Meta(description="The text of the post. What its network takes is in its `check`.")]
_Instant = Annotated[datetime, Meta(tz=True)]


class AsRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version of the post that you have read: if it was changed since, the answer is 409."""

    version: int | UnsetType = UNSET


class Approval(AsRead, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text to approve; without one, the text that the post has."""

    text: _Text | UnsetType = UNSET


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another text."""

    text: _Text


class Regeneration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What should be different, in your words."""

    hint: Annotated[str, Meta(max_length=500)] = ""


class Snooze(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the draft comes back; at its slot at the latest."""

    until: _Instant


class Rejection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why, for its history."""

    note: Annotated[str, Meta(max_length=300)] = ""


class Move(AsRead, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the post goes out instead."""

    slot_at: _Instant


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where you have seen the post."""

    url: Annotated[str, Meta(extra_json_schema={"format": "uri"})]


@operation("POST", "/posts/{post}/approve")
async def approve_post(call: Call[NoQuery, Approval]) -> PostDetail:
    """Approve a draft for its slot, with another text if one is given."""
    text = None if call.body.text is UNSET else call.body.text
    await call.slothpost.review.approve(*call.post, by=call.user.name, text=text, version=_version(call.body))
    return await _now(call)


@operation("POST", "/posts/{post}/unapprove")
async def unapprove_post(call: Call[NoQuery, NoBody]) -> PostDetail:
    """Take an approval back, until the post is being published."""
    await call.slothpost.review.unapprove(*call.post, by=call.user.name)
    return await _now(call)


@operation("POST", "/posts/{post}/edit")
async def edit_post(call: Call[NoQuery, Edit]) -> PostDetail:
    """Change the text of a post."""
    await call.slothpost.review.edit(*call.post, by=call.user.name, text=call.body.text)
    return await _now(call)


@operation("POST", "/posts/{post}/regenerate")
async def regenerate_post(call: Call[NoQuery, Regeneration]) -> PostDetail:
    """Draft a post anew from the same activity."""
    await call.slothpost.drafts.regenerate(*call.post, by=call.user.name, hint=call.body.hint)
    return await _now(call)


@operation("POST", "/posts/{post}/snooze")
async def snooze_post(call: Call[NoQuery, Snooze]) -> PostDetail:
    """Hide a draft from the review for a while."""
    await call.slothpost.review.snooze(*call.post, by=call.user.name, until=in_utc("until", call.body.until))
    return await _now(call)


@operation("POST", "/posts/{post}/reject")
async def reject_post(call: Call[NoQuery, Rejection]) -> PostDetail:
    """Decide that it is never posted."""
    await call.slothpost.review.reject(*call.post, by=call.user.name, note=call.body.note)
    return await _now(call)


@operation("POST", "/posts/{post}/restore")
async def restore_post(call: Call[NoQuery, NoBody]) -> PostDetail:
    """Make a rejected post a draft again."""
    await call.slothpost.review.restore(*call.post, by=call.user.name)
    return await _now(call)


@operation("POST", "/posts/{post}/post-now")
async def post_now(call: Call[NoQuery, AsRead]) -> PostDetail:
    """Publish a post as soon as a worker gets to it."""
    await call.slothpost.review.post_now(*call.post, by=call.user.name, version=_version(call.body))
    return await _now(call)


@operation("POST", "/posts/{post}/next-slot")
async def move_post_to_next_slot(call: Call[NoQuery, AsRead]) -> PostDetail:
    """Move a post to the next slot of its channel that is free."""
    await call.slothpost.review.to_next_slot(*call.post, by=call.user.name, version=_version(call.body))
    return await _now(call)


@operation("POST", "/posts/{post}/move")
async def move_post(call: Call[NoQuery, Move]) -> PostDetail:
    """Move a post to another instant."""
    slot_at = in_utc("slot_at", call.body.slot_at)
    await call.slothpost.review.move(*call.post, by=call.user.name, slot_at=slot_at, version=_version(call.body))
    return await _now(call)


@operation("POST", "/posts/{post}/went-out")
async def confirm_post(call: Call[NoQuery, Confirmation]) -> PostDetail:
    """Say that an unconfirmed post went out, and where it is."""
    await call.slothpost.review.went_out(*call.post, by=call.user.name, url=call.body.url)
    return await _now(call)


@operation("POST", "/posts/{post}/send-again")
async def send_post_again(call: Call[NoQuery, AsRead]) -> PostDetail:
    """Say that an unconfirmed post did not go out. It is sent once more."""
    await call.slothpost.review.send_again(*call.post, by=call.user.name, version=_version(call.body))
    return await _now(call)


OPERATIONS = (
    approve_post,
    unapprove_post,
    edit_post,
    regenerate_post,
    snooze_post,
    reject_post,
    restore_post,
    post_now,
    move_post_to_next_slot,
    move_post,
    confirm_post,
    send_post_again,
)


def _version(read: AsRead) -> int | None:
    return None if read.version is UNSET else read.version


async def _now(call: Call[NoQuery, Any]) -> PostDetail:
    return post_detail(await call.slothpost.review.card(*call.post))
