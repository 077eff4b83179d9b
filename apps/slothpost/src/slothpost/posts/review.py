"""What people decide about posts: approve, edit, snooze, reject, post now, and what became of an unclear attempt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from slothpost.errors import InvalidField, NotAllowed
from slothpost.model import Post
from slothpost.planning.channel_plan import plan_of, taken_slots
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts import states
from slothpost.posts.actions import Action, check_action
from slothpost.posts.cards import Card, CardPage, Cards
from slothpost.posts.post_writer import PostWriter
from slothpost.text.check import check_text
from tickler.table import MISSING, OpenTable, evolve

MAX_AHEAD = timedelta(days=366)
MAX_TEXT = 10_000  # characters that are stored; what the network takes is far less
MAX_URL = 500

Decide = Callable[[Post, datetime], Post]


class Review:
    """Every action names who does it, and is a step in the history of the post.

    `version` is that of the post as somebody has read it: what was changed since, by whomever, is not approved unread.
    """

    def __init__(self, db: OpenTable, posts: PostWriter, cards: Cards) -> None:
        self._db = db
        self._posts = posts
        self._cards = cards
        self._circumstances = Circumstances(db)

    async def queue(self, user: str, *, first: int = 20, after: str | None = None) -> CardPage:
        """Return the posts that somebody has to look at, the earliest slot first."""
        return await self._cards.page(await self._db.query(Post.review(user), first=first, after=after))

    async def count(self, user: str) -> int:
        return await self._db.count(Post.review(user))

    async def card(self, user: str, id: str) -> Card:
        """Return one post as a card; `NotFound` also if it is somebody else's."""
        return await self._cards.of(user, id)

    async def approve(self, user: str, id: str, *, by: str, text: str | None = None, version: int | None = None) -> Post:
        """Approve a draft, with another text if one is given. If its slot has passed, it gets the next one that is free."""
        card = await self.card(user, id)
        check_action(card.post, "approve")
        _check_read(card.post, version)
        wanted = card.post.text if text is None else _checked(text)
        _check_sendable(card.post, wanted)
        now = self._posts.now()
        slot_at = card.post.slot_at if card.post.slot_at > now else await self._free_slot(card.state, card.post, now)

        def approved(found: Post) -> Post:
            check_action(found, "approve")
            if text is None and found.text != card.post.text:
                raise NotAllowed("somebody has changed the text meanwhile: reload the page, and read it again")
            there = found if found.slot_at == slot_at else states.at_slot(found, slot_at)
            stepped = states.step(states.with_text(there, wanted), "approved", at=now, by=by)
            return evolve(stepped, due_at=slot_at, snoozed_until=MISSING)

        return await self._posts.change(user, id, approved)

    async def unapprove(self, user: str, id: str, *, by: str) -> Post:
        """Take an approval back. It works until the post is being published."""
        return await self._step(user, id, "unapprove", lambda found, now: states.step(found, "drafted", at=now, by=by))

    async def edit(self, user: str, id: str, *, by: str, text: str) -> Post:
        """Change the text. What is approved stays so, and must be a text that the network takes."""
        wanted = _checked(text)

        def edited(found: Post, now: datetime) -> Post:
            if found.text == wanted:
                return found
            if found.state == "approved":
                _check_sendable(found, wanted)
            return states.noted(states.with_text(found, wanted), at=now, by=by, note="changed the text")

        return await self._step(user, id, "edit", edited)

    async def snooze(self, user: str, id: str, *, by: str, until: datetime) -> Post:
        """Hide a draft from the queue until an instant, at the latest until its slot."""
        now = self._posts.now()
        if until <= now:
            raise InvalidField("until", "this instant has passed: choose a later one")
        note = f"snoozed until {until:%d %b %H:%M} UTC"
        return await self._step(
            user, id, "snooze", lambda found, now: states.noted(evolve(found, snoozed_until=until), at=now, by=by, note=note)
        )

    async def reject(self, user: str, id: str, *, by: str, note: str = "") -> Post:
        """Never post it. What it told of is not offered again, unless it is restored."""
        return await self._step(
            user, id, "reject", lambda found, now: states.step(found, "skipped", at=now, by=by, note=note[:300])
        )

    async def restore(self, user: str, id: str, *, by: str) -> Post:
        """Make a rejected post a draft again."""
        return await self._step(
            user, id, "restore", lambda found, now: states.step(found, "drafted", at=now, by=by, note="restored")
        )

    async def post_now(self, user: str, id: str, *, by: str, version: int | None = None) -> Post:
        """Approve a post for this moment."""

        def due(found: Post, now: datetime) -> Post:
            return _approved_at(found, now, now, by, "post now")

        return await self._step(user, id, "post_now", due, version)

    async def to_next_slot(self, user: str, id: str, *, by: str, version: int | None = None) -> Post:
        """Move a post to the next slot of its channel that is free. A draft stays a draft; anything else is approved for it."""
        card = await self.card(user, id)
        check_action(card.post, "to_next_slot")
        now = self._posts.now()
        slot_at = await self._free_slot(card.state, card.post, max(now, card.post.slot_at))
        return await self.move(user, id, by=by, slot_at=slot_at, version=version)

    async def move(self, user: str, id: str, *, by: str, slot_at: datetime, version: int | None = None) -> Post:
        """Move a post to another instant, a slot or not."""
        now = self._posts.now()
        if not now < slot_at <= now + MAX_AHEAD:
            raise InvalidField("slot_at", "this instant has passed, or is more than a year away: choose one in between")
        note = f"moved to {slot_at:%a %d %b %H:%M} UTC"

        def moved(found: Post, now: datetime) -> Post:
            if found.state == "drafted":
                return states.noted(states.at_slot(found, slot_at), at=now, by=by, note=note)
            return _approved_at(found, slot_at, now, by, note)

        return await self._step(user, id, "move", moved, version)

    async def move_to_day(self, user: str, id: str, *, by: str, days: int, version: int | None = None) -> Post:
        """Move a post by whole days in the zone of its channel. It keeps its time on the wall clock."""
        card = await self.card(user, id)
        there = plan_of(card.state).days_later(card.post.slot_at, days)
        if there is None:
            raise InvalidField("days", "that day does not exist in this time zone: choose another")
        return await self.move(user, id, by=by, slot_at=there, version=version)

    async def went_out(self, user: str, id: str, *, by: str, url: str) -> Post:
        """Resolve an unclear attempt: somebody has seen the post, at this address."""
        if not url.startswith(("https://", "http://")) or len(url) > MAX_URL or not url.isprintable() or " " in url:
            raise InvalidField("url", "copy the address of the post from your browser: it starts with https://")

        def published(found: Post, now: datetime) -> Post:
            return states.publish(found, url.rstrip("/").rpartition("/")[2], url, at=now, by=by)

        return await self._step(user, id, "went_out", published)

    async def send_again(self, user: str, id: str, *, by: str, version: int | None = None) -> Post:
        """Resolve an unclear attempt: somebody has looked, and the post is not there. It is sent once more."""

        def again(found: Post, now: datetime) -> Post:
            return _approved_at(evolve(found, container=MISSING), now, now, by, "it did not go out: send it again")

        return await self._step(user, id, "send_again", again, version)

    async def _step(self, user: str, id: str, action: Action, decide: Decide, version: int | None = None) -> Post:
        def checked(found: Post) -> Post:
            check_action(found, action)
            _check_read(found, version)
            return decide(found, self._posts.now())

        return await self._posts.change(user, id, checked)

    async def _free_slot(self, state: ChannelState, post: Post, after: datetime) -> datetime:
        taken = await taken_slots(self._db, post.product, post.channel, after)
        slot_at = plan_of(state).next_slot(after, taken=taken)
        if slot_at is None:
            raise NotAllowed("the plan of this channel has no time: post it now, choose a time, or give a day of the plan one")
        return slot_at


def _check_read(post: Post, version: int | None) -> None:
    if version is not None and post.version != version:
        raise NotAllowed("this post was changed meanwhile: reload the page, and read it again")


def _approved_at(post: Post, at: datetime, now: datetime, by: str, note: str) -> Post:
    _check_sendable(post, post.text)
    there = states.at_slot(post, at)
    if there.state == "approved":
        return states.noted(there, at=now, by=by, note=note)
    return states.step(there, "approved", at=now, by=by, note=note)


def _checked(text: str) -> str:
    stripped = text.replace("\r\n", "\n").strip()
    if len(stripped) > MAX_TEXT:
        raise InvalidField("text", f"it has {len(stripped):,} characters, and at most {MAX_TEXT:,} are kept: shorten it")
    return stripped


def _check_sendable(post: Post, text: str) -> None:
    check = check_text(post.channel, text)
    if not check.is_sendable:
        raise InvalidField("text", " ".join(check.problems))
