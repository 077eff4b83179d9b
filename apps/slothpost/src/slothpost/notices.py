"""Tells users what they should know: on the page, and by a signed webhook."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from slothpost.model import Notice, Post, PostState, User
from slothpost.model.notice import NoticeKind
from slothpost.utc_now import utc_now
from tickler import HttpTarget, Tickler
from tickler.table import MISSING, OpenTable, Transaction

KEPT = timedelta(days=30)
# The state that a post has as long as a notice about it holds.
_STATES: Mapping[NoticeKind, PostState] = {
    "draft": "drafted",
    "undecided": "drafted",
    "missed": "missed",
    "failed": "failed",
    "unconfirmed": "unconfirmed",
    "postponed": "approved",
}

NOTICE_PURPOSE = "slothpost: notice secret of {}"


class News(msgspec.Struct, frozen=True, kw_only=True):
    """Something to tell. `id` is the same each time that it would be told, so that it is told once."""

    user: str
    kind: NoticeKind
    text: str
    id: str
    post: str | None = None
    product: str | None = None


class Notices:
    """Writes notices in the transaction of what they are about."""

    def __init__(self, t: Tickler, db: OpenTable) -> None:
        self._t = t
        self._db = db

    async def add(self, tx: Transaction, news: News) -> None:
        """Add a notice to a transaction, and a signed delivery of it if the user has a webhook for notices."""
        now = utc_now(self._t)
        tx.put(
            Notice(
                user=news.user,
                at=now,
                id=news.id,
                kind=news.kind,
                text=news.text,
                post=MISSING if news.post is None else news.post,
                product=MISSING if news.product is None else news.product,
                expires_at=now + KEPT,
            )
        )
        user = await self._db.get(User.key.id(news.user))
        if user is None or user.notify_url is MISSING:
            return
        secret = None
        if user.notify_secret is not MISSING:
            secret = self._t.encryption.decrypt(user.notify_secret, purpose=NOTICE_PURPOSE.format(user.id))
        body = {"kind": news.kind, "text": news.text, "post": news.post, "product": news.product}
        await self._t.send(user.id, f"notice/{news.id}", HttpTarget(user.notify_url, secret=secret), body, using=tx)

    async def latest(self, user: str, limit: int = 20) -> list[Notice]:
        return list((await self._db.query(Notice.key(user), first=limit)).items)

    async def current(self, user: str, limit: int) -> list[Notice]:
        """Return the latest notices that still hold: a draft still waits, a post is still missed."""
        notices = await self.latest(user, 4 * limit)
        ids = list(dict.fromkeys(notice.post for notice in notices if notice.post is not MISSING))
        found = await self._db.get_many([Post.key.id(user, id) for id in ids])
        states = {id: None if post is None else post.state for id, post in zip(ids, found, strict=True)}
        return [each for each in notices if each.post is MISSING or states[each.post] == _STATES.get(each.kind)][:limit]
