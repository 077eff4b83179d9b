"""Writes a post together with its schedules, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from slothpost.errors import NotAllowed, NotFound
from slothpost.model import Channel, Post
from slothpost.notices import News, Notices
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts.post_schedules import schedules_of
from slothpost.utc_now import utc_now
from tickler import Tickler
from tickler.table import OpenTable, Transaction, evolve

NoticeOf = Callable[[Post], News]


class PostWriter:
    """The only place that writes posts: what they are and when they fire cannot disagree."""

    def __init__(self, t: Tickler, db: OpenTable, notices: Notices) -> None:
        self._t = t
        self._db = db
        self._notices = notices
        self._circumstances = Circumstances(db)

    def now(self) -> datetime:
        return utc_now(self._t)

    async def get(self, user: str, id: str) -> Post:
        """Return a post; `NotFound` also if it is somebody else's."""
        post = await self._db.get(Post.key.id(user, id))
        if post is None:
            raise NotFound("post")
        return post

    async def change(self, user: str, id: str, decide: Callable[[Post], Post], notice: NoticeOf | None = None) -> Post:
        """Replace a post by what `decide` makes of it, again if others changed it meanwhile. Returns it as it is then."""
        return await self._change(user, id, decide, notice, arranges=True)

    async def settle(self, user: str, id: str, decide: Callable[[Post], Post], notice: NoticeOf | None = None) -> Post:
        """Do the same in a delivery of the post's own schedule, which stays as it is: the fire says when it is tried again."""
        return await self._change(user, id, decide, notice, arranges=False)

    async def _change(
        self, user: str, id: str, decide: Callable[[Post], Post], notice: NoticeOf | None, *, arranges: bool
    ) -> Post:

        async def work(tx: Transaction) -> Post:
            post = await tx.get(Post.key.id(user, id))
            if post is None:
                raise NotFound("post")
            changed = decide(post)
            if changed is post:
                return post
            if arranges:
                changed = await self.write(tx, changed, before=post)
            else:
                tx.put(changed)
            if notice is not None:
                await self._notices.add(tx, notice(changed))
            return changed

        return await self._db.transact(work)

    async def delete(self, user: str, id: str) -> None:
        """Delete a post with its schedules; `NotAllowed` while it is being published."""

        async def work(tx: Transaction) -> None:
            post = await tx.get(Post.key.id(user, id))
            if post is None:
                return
            if post.state == "publishing":
                raise NotAllowed("this post is being published: try again in a minute")
            for key in schedules_of(post, self.now(), is_held=False):
                await self._t.schedules.delete(user, key, using=tx)
            tx.delete(post.key)

        await self._db.transact(work)

    async def write(self, tx: Transaction, post: Post, *, before: Post | None, state: ChannelState | None = None) -> Post:
        """Add a post, and the change of its schedules, to a transaction. Returns it as it is written.

        Why an approved post is held must still be so when the transaction commits: otherwise it could wait for ever. Likewise,
        the channel of a new post must still exist. `state` is that of the channel, where it is known.
        """
        now = self.now()
        if before is None:
            tx.check(Channel.key.id(post.product, post.channel), Channel.user.exists())
        hold_reason = None
        if post.state == "approved":
            hold_reason = (await self._circumstances.of_post(post, tx)).hold_reason
            post = post if hold_reason is None else evolve(post, held=hold_reason)
        elif post.state == "drafted":
            hold_reason = (state or await self._circumstances.of_post(post)).pause_reason
        wanted = schedules_of(post, now, is_held=hold_reason is not None)
        had = {} if before is None else schedules_of(before, now, is_held=False)
        for key in had.keys() - wanted.keys():
            await self._t.schedules.delete(post.user, key, using=tx)
        for schedule in wanted.values():
            await self._t.schedules.put(schedule, using=tx)
        if post != before:  # otherwise only its schedules change, and nobody has to read it again
            tx.put(post)
        return post
