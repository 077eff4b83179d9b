"""Cards: a post with everything that somebody needs to decide about it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import msgspec

from slothpost.errors import NotFound
from slothpost.model import Activity, ChannelName, Post
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts.actions import Action, actions_of
from slothpost.text.check import TextCheck, check_text
from tickler.table import OpenTable, Page

RECENT_POSTS = 20  # among which the same text would be noticed
_MINUTE = timedelta(minutes=1)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A post, what the network makes of its text, where it came from, and what may be done with it now."""

    post: Post
    state: ChannelState
    check: TextCheck
    activities: list[Activity]
    warnings: tuple[str, ...]
    actions: frozenset[Action]

    @property
    def is_sendable(self) -> bool:
        return self.check.is_sendable


class CardPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the cards. `start` and `end` are cursors."""

    items: list[Card]
    has_next: bool
    has_previous: bool
    start: str | None
    end: str | None


class Cards:
    """Makes cards."""

    def __init__(self, db: OpenTable) -> None:
        self._db = db
        self._circumstances = Circumstances(db)

    async def of(self, user: str, id: str) -> Card:
        post = await self._db.get(Post.key.id(user, id))
        if post is None:
            raise NotFound("post")
        return await self._card(post, await self._surroundings(post))

    async def page(self, posts: Page[Post]) -> CardPage:
        surroundings: dict[tuple[str, ChannelName], _Surroundings] = {}
        cards: list[Card] = []
        for post in posts.items:
            channel = post.product, post.channel
            with suppress(NotFound):  # its product is being deleted
                if channel not in surroundings:
                    surroundings[channel] = await self._surroundings(post)
                cards.append(await self._card(post, surroundings[channel]))
        return CardPage(
            items=cards, has_next=posts.has_next, has_previous=posts.has_previous, start=posts.start, end=posts.end
        )  # fmt: skip

    async def _card(self, post: Post, there: _Surroundings) -> Card:
        found = await self._db.get_many([Activity.key.id(post.product, id) for id in post.activities])
        check = check_text(post.channel, post.text, recent=_texts(there.recent, but=post.id))
        return Card(
            post=post,
            state=there.state,
            check=check,
            activities=[activity for activity in found if activity is not None],
            warnings=(*check.warnings, *await self._clashes(post)),
            actions=actions_of(post),
        )

    async def _surroundings(self, post: Post) -> _Surroundings:
        state = await self._circumstances.of_post(post)
        return _Surroundings(state, await recent_posts(self._db, post.product, post.channel))

    async def recent_texts(self, product: str, channel: ChannelName, *, but: str = "") -> Sequence[str]:
        """Return what was posted on a channel lately, or will be, the latest slot first."""
        return _texts(await recent_posts(self._db, product, channel), but=but)

    async def _clashes(self, post: Post) -> list[str]:
        """Return a warning if another post goes out on the same network in the same minute."""
        minute = post.slot_at.replace(second=0, microsecond=0)
        same = Post.by_slot(post.user).between(minute, minute + _MINUTE)
        others = [other async for other in self._db.iterate(same, where=Post.channel == post.channel)]
        if any(
            other.id != post.id and other.state in ("drafted", "approved") and other.slot_at < minute + _MINUTE
            for other in others
        ):
            return ["Another post goes out on this network in the same minute. Move one of them."]
        return []


class _Surroundings(msgspec.Struct, frozen=True):
    """What the cards of one channel share."""

    state: ChannelState
    recent: Sequence[Post]


def _texts(posts: Sequence[Post], *, but: str) -> Sequence[str]:
    return [post.text for post in posts if post.id != but]


async def recent_posts(db: OpenTable, product: str, channel: ChannelName) -> list[Post]:
    """Return the latest posts of a channel, the newest first, without those that were rejected."""
    page = await db.query(Post.of_channel(product, channel).newest_first(), first=RECENT_POSTS)
    return [post for post in page.items if post.state != "skipped"]
