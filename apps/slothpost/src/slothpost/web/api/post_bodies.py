"""Posts as the API shows them: in a list, and with everything that somebody needs to decide about one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from slothpost.model import ChannelName, Post, PostState
from slothpost.posts.actions import Action
from slothpost.posts.cards import Card
from slothpost.web.api.activity import ActivityBody, activity_body
from slothpost.web.api.pages import Next
from tickler.table import MISSING


class PostBody(msgspec.Struct, frozen=True, kw_only=True):
    """A post, from its draft to the network."""

    id: str
    product: str
    channel: ChannelName
    state: PostState
    text: str
    slot_at: Annotated[datetime, Meta(description="When it is planned to go out.")]
    due_at: Annotated[datetime, Meta(description="When it may go out: later, if the network asked to wait.")]
    snoozed_until: datetime | None
    drafter: Annotated[str, Meta(description="What wrote it: `template`, `anthropic`, `openai`, or `you`.")]
    drafter_note: Annotated[str, Meta(description="Why another drafter stepped in.")]
    held: Annotated[str, Meta(description="Why it waits, although its time has come.")]
    url: Annotated[str | None, Meta(description="Where people see it.")]
    evidence: Annotated[str, Meta(description="What is known of an attempt whose outcome is not.")]
    version: Annotated[int, Meta(description="Raised by every change: send it with a decision that is about this text.")]


class CheckBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the network makes of the text. With `problems` it cannot be approved."""

    length: int
    limit: int
    cost_microdollars: int
    links: list[str]
    problems: list[str]


class TransitionBody(msgspec.Struct, frozen=True):
    """A step of a post: when, to which state, by whom, and why."""

    at: datetime
    state: PostState
    by: str
    note: str


class PostDetail(PostBody, frozen=True, kw_only=True):
    """A post, where it came from, every step that it took, and what can be done with it now."""

    check: CheckBody
    warnings: list[str]
    activities: list[ActivityBody]
    history: list[TransitionBody]
    actions: list[Action]


class PostPage(msgspec.Struct, frozen=True):
    """A page of posts."""

    items: list[PostBody]
    next: Next


class ReviewPage(msgspec.Struct, frozen=True):
    """A page of the posts that somebody has to look at."""

    items: list[PostDetail]
    next: Next


def post_body(post: Post) -> PostBody:
    return PostBody(**_fields(post))


def post_detail(card: Card) -> PostDetail:
    check = card.check
    return PostDetail(
        **_fields(card.post),
        check=CheckBody(
            length=check.length,
            limit=check.limit,
            cost_microdollars=check.cost_microdollars,
            links=list(check.links),
            problems=list(check.problems),
        ),
        warnings=list(card.warnings),
        activities=[activity_body(activity) for activity in card.activities],
        history=[TransitionBody(step.at, step.state, step.by, step.note) for step in card.post.history],
        actions=sorted(card.actions),
    )


def _fields(post: Post) -> dict[str, Any]:
    return {name: None if (value := getattr(post, name)) is MISSING else value for name in PostBody.__struct_fields__}
