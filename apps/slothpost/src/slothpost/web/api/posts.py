"""`/api/posts` and `/api/review`: lists of posts, one of them, and posts written by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slothpost.model import ChannelName, Post, PostState
from slothpost.web.api.decoding import in_utc
from slothpost.web.api.operation import Call, NoBody, NoQuery, operation
from slothpost.web.api.pages import PageQuery, next_of
from slothpost.web.api.post_bodies import PostDetail, PostPage, ReviewPage, post_body, post_detail
from tickler.table import Condition

_Instant = Annotated[datetime, Meta(tz=True, description="When it goes out. Default: the next slot of its channel that is free.")]


class PostQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which posts to list. A channel is that of all products, or of one."""

    state: PostState | UnsetType = UNSET
    product: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    channel: ChannelName | UnsetType = UNSET


class NewPost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A post that you wrote. It is a draft until you approve it."""

    text: str
    slot_at: _Instant | UnsetType = UNSET


@operation("GET", "/posts")
async def list_posts(call: Call[PostQuery, NoBody]) -> PostPage:
    """List posts in every state, the latest slot first."""
    query, db = call.query, call.slothpost.db
    if query.product is not UNSET:
        await call.slothpost.products.get(call.user.id, query.product)
    selection = Post.by_slot(call.user.id).newest_first()
    page = await db.query(selection, where=_filter(query), first=query.limit, after=query.cursor)
    return PostPage([post_body(post) for post in page.items], next_of(page))


@operation("GET", "/review")
async def list_review(call: Call[PageQuery, NoBody]) -> ReviewPage:
    """List the posts that wait for a decision, the earliest slot first."""
    page = await call.slothpost.review.queue(call.user.id, first=call.query.limit, after=call.query.cursor)
    return ReviewPage([post_detail(card) for card in page.items], next_of(page))


@operation("GET", "/posts/{post}")
async def get_post(call: Call[NoQuery, NoBody]) -> PostDetail:
    """Get a post, with the activity that it came from, its history, and what can be done with it."""
    return post_detail(await call.slothpost.review.card(*call.post))


@operation("POST", "/products/{product}/channels/{channel}/posts", status=201)
async def write_post(call: Call[NoQuery, NewPost]) -> PostDetail:
    """Write a post by hand, for an instant or for the next free slot."""
    slot_at = None if call.body.slot_at is UNSET else in_utc("slot_at", call.body.slot_at)
    post = await call.slothpost.drafts.write(*call.channel, call.body.text, by=call.user.name, slot_at=slot_at)
    return post_detail(await call.slothpost.review.card(call.user.id, post.id))


OPERATIONS = (list_posts, list_review, get_post, write_post)


def _filter(query: PostQuery) -> Condition[Post] | None:
    conditions: list[Condition[Post]] = []
    if query.state is not UNSET:
        conditions.append(Post.state == query.state)
    if query.product is not UNSET:
        conditions.append(Post.product == query.product)
    if query.channel is not UNSET:
        conditions.append(Post.channel == query.channel)
    if not conditions:
        return None
    first, *others = conditions
    for other in others:
        first = first & other
    return first
