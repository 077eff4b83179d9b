"""Publishes one post: never twice, and never lost without a word.

1. The post becomes *publishing* by compare-and-set, with the mark of this attempt, before the network is called.
2. The network is called at most once for a mark.
3. What it says decides the next state. If nothing is known, X leaves the post *unconfirmed*, for a person to decide, and Threads
   is asked about its container by the next attempt.

A process that dies between 1 and 3 leaves the post *publishing*; the engine delivers the fire again, which finds that. Such a
post may be out. So it becomes *approved* again, which people can edit, only if the network itself says that it is not. Two fires
of one post may also be delivered at once, such as one that a network postponed and that of the slot that the post was moved to.
So nobody is asked about an attempt before it must have ended.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from slothpost.accounts.access_tokens import AccessTokens, TokenBusy
from slothpost.errors import NotAllowed
from slothpost.identifiers import new_id
from slothpost.model import NETWORK_NAMES, Account, Post
from slothpost.model.notice import NoticeKind
from slothpost.networks.network import (
    KeepContainer,
    Limited,
    Network,
    NetworkError,
    Networks,
    NotSent,
    Publication,
    Published,
    Refused,
    TokenRejected,
    Unclear,
)
from slothpost.notices import News
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts import states
from slothpost.posts.post_schedules import PUBLISH_TIMEOUT_S
from slothpost.posts.post_writer import PostWriter
from tickler import RetryLater
from tickler.table import MISSING, OpenTable, evolve

NETWORK_RETRY = timedelta(minutes=1)
LONGEST_WAIT = timedelta(days=7)  # for a limit to end
ATTEMPT_TIME = timedelta(seconds=PUBLISH_TIMEOUT_S + 10)  # a handler has some seconds to end after its timeout

Point = Literal["before_mark", "marked", "container_kept", "called", "settled"]
AtPoint = Callable[[Point], None]


def pass_on(point: Point) -> None:
    """Do nothing at any point. Tests end the process there."""


class Publisher:
    """The handler of `publish/{post}`."""

    def __init__(
        self, db: OpenTable, posts: PostWriter, networks: Networks, tokens: AccessTokens, at_point: AtPoint = pass_on
    ) -> None:
        self._db = db
        self._posts = posts
        self._networks = networks
        self._tokens = tokens
        self._circumstances = Circumstances(db)
        self._at_point = at_point

    async def publish(self, user: str, id: str) -> str:
        """Publish a post if it is time to, and return what was done, for the history of the fire."""
        try:
            return await self._publish(user, id)
        except NotAllowed as error:  # a person, or another attempt, was faster
            return f"nothing to do: {error}"

    async def _publish(self, user: str, id: str) -> str:
        post = await self._db.get(Post.key.id(user, id))
        if post is None or post.state not in ("approved", "publishing"):
            return f"nothing to do: the post is {'deleted' if post is None else post.state}"
        state = await self._circumstances.of_post(post)
        network = self._networks.get(post.channel)
        if post.state == "publishing":
            return await self._resume(post, state, network)
        if state.hold_reason is not None:
            return await self._hold(post, state.hold_reason)
        if network is None:
            return await self._not_sent(post, state, NotSent(f"this installation has no credentials of {_name(post)}"))
        now = self._posts.now()
        if now < post.due_at:
            raise RetryLater(at=post.due_at, reason=post.held or "it was moved to a later time")
        if states.is_late(post, now, _grace(state)):
            return await self._miss(post, now)
        return await self._attempt(post, state, network)

    async def _resume(self, post: Post, state: ChannelState, network: Network | None) -> str:
        """Ask the network what became of an attempt that has not reported its end; or a person, where it cannot be asked."""
        interrupted = f"slothpost was interrupted while it posted to {_name(post)}"
        if network is None or not network.can_resume:
            ends_at = post.history[-1].at + ATTEMPT_TIME
            if self._posts.now() < ends_at:
                raise RetryLater(at=ends_at, reason="another delivery may be posting it at this moment")
            return await self._leave_unconfirmed(post, interrupted)
        if state.account is None or state.hold_reason is not None:
            return await self._leave_unconfirmed(post, f"{interrupted}, and {state.hold_reason}")
        if post.container is not MISSING and post.container_account != state.account.id:
            return await self._leave_unconfirmed(post, f"{interrupted}, and the channel has had another account since")
        return await self._attempt(post, state, network)

    async def _attempt(self, post: Post, state: ChannelState, network: Network) -> str:
        assert state.account is not None  # otherwise it is held
        try:
            token = await self._tokens.get(state.account)
        except TokenBusy as busy:
            raise RetryLater(at=max(busy.until, self._posts.now() + timedelta(seconds=1)), reason=str(busy)) from None
        except NetworkError as error:
            if post.state == "publishing":
                return await self._cannot_ask(post, state, error)
            return await self._fail(post, state, error)
        self._at_point("before_mark")
        mark, seen, is_resumed = new_id(), post.version, post.state == "publishing"
        post = await self._posts.settle(post.user, post.id, lambda found: _marked(found, mark, seen, self._posts.now()))
        self._at_point("marked")
        try:
            published = await network.publish(token, _publication(post, state), self._keeper(post, mark, state.account))
        except NetworkError as error:
            if is_resumed and isinstance(error, TokenRejected):
                return await self._cannot_ask(post, state, error)
            return await self._fail(post, state, error)
        self._at_point("called")
        await self._posts.settle(post.user, post.id, lambda found: _published(found, mark, published, self._posts.now()))
        self._at_point("settled")
        return f"published: {published.url}"

    def _keeper(self, post: Post, mark: str, account: Account) -> KeepContainer:
        async def keep(container: str) -> None:
            def kept(found: Post) -> Post:
                return evolve(_own(found, mark), container=container, container_account=account.id)

            await self._posts.settle(post.user, post.id, kept)
            self._at_point("container_kept")

        return keep

    async def _fail(self, post: Post, state: ChannelState, error: NetworkError) -> str:
        """Do what follows from an error. Only `Unclear` leaves open whether the post is out."""
        if isinstance(error, Unclear):
            return await self._ask_later(post, state, error, may_ask=not error.needs_person)
        if isinstance(error, Limited):
            return await self._postpone(post, error)
        if isinstance(error, TokenRejected):
            return await self._reject_token(post, state, error)
        if isinstance(error, NotSent):
            return await self._not_sent(post, state, error)
        assert isinstance(error, Refused)
        return await self._refuse(post, error)

    async def _cannot_ask(self, post: Post, state: ChannelState, error: NetworkError) -> str:
        """Leave an interrupted post as it is, where there is no token to ask the network about it."""
        if isinstance(error, TokenRejected):
            await self._mark_broken(state, error)
        return await self._ask_later(post, state, error, may_ask=not isinstance(error, TokenRejected))

    async def _ask_later(self, post: Post, state: ChannelState, error: NetworkError, *, may_ask: bool) -> str:
        """Let the next attempt ask what became of this one, where the network can tell; after the grace, ask a person."""
        until = error.until if isinstance(error, Limited) else self._posts.now() + NETWORK_RETRY
        if may_ask and self._networks[post.channel].can_resume and until <= post.due_at + _grace(state):
            raise RetryLater(at=until, reason=str(error))
        return await self._leave_unconfirmed(post, str(error))

    async def _leave_unconfirmed(self, post: Post, evidence: str) -> str:
        text = f"{evidence}. {_name(post)} may have the post: look there, then say whether it went out"
        news = _news("unconfirmed", post, f"Did it go out? {text}")
        await self._settle(post, lambda found, now: states.leave_unconfirmed(found, text, at=now), news)
        return f"unconfirmed: {evidence}"

    async def _refuse(self, post: Post, error: Refused | NotSent | Limited) -> str:
        detail = str(error)
        if isinstance(error, Refused) and error.is_duplicate and any(step.state == "unconfirmed" for step in post.history):
            return await self._leave_unconfirmed(post, f"an earlier attempt seems to have gone out: {detail}")
        news = _news("failed", post, f"{_name(post)} did not take a post: {detail}")
        await self._settle(post, lambda found, now: states.step(found, "failed", at=now, by="slothpost", note=detail), news)
        return f"failed: {detail}"

    async def _miss(self, post: Post, now: datetime) -> str:
        late = int((now - post.due_at).total_seconds() // 60)
        detail = f"it was found {late} minutes after its time"
        news = _news("missed", post, f"A post was missed: {detail}. Post it now, or move it to the next slot")
        await self._settle(post, lambda found, now: states.step(found, "missed", at=now, by="slothpost", note=detail), news)
        return f"missed: {detail}"

    async def _hold(self, post: Post, reason: str) -> str:
        """Let a post wait until its schedule is written anew; at once, if that has just been done."""
        await self._settle(post, lambda found, now: evolve(_approved(found, reason, now), held=reason), None)
        if (await self._circumstances.of_post(post)).hold_reason is None:
            raise RetryLater(after=timedelta(seconds=1), reason=f"what held it is over: {reason}")
        return f"held: {reason}"

    async def _postpone(self, post: Post, error: Limited) -> str:
        """Wait as long as the network asks, and tell the user once; after a week, a cap will not end by itself."""
        until = max(error.until, self._posts.now() + timedelta(seconds=1))
        if until > post.slot_at + LONGEST_WAIT:
            return await self._refuse(post, error)
        news = None
        if all(step.note != str(error) for step in post.history):
            news = _news("postponed", post, f"{_name(post)} takes no more posts until {until:%d %b %H:%M} UTC: {error}")
        await self._settle(post, lambda found, now: states.postpone(found, until, str(error), at=now), news)
        raise RetryLater(at=until, reason=str(error))

    async def _not_sent(self, post: Post, state: ChannelState, error: NotSent) -> str:
        now = self._posts.now()
        if now > post.slot_at + _grace(state):
            return await self._refuse(post, error)
        waited_s = (now - post.slot_at) // timedelta(seconds=1)
        until = now + max(NETWORK_RETRY, timedelta(seconds=waited_s // 4))  # ever later, as the history has each attempt
        await self._settle(post, lambda found, now: states.postpone(found, until, str(error), at=now), None)
        raise RetryLater(at=until, reason=str(error))

    async def _reject_token(self, post: Post, state: ChannelState, error: TokenRejected) -> str:
        if not await self._mark_broken(state, error):
            found = await self._circumstances.of_post(post)
            if found.hold_reason is None:  # it was connected again meanwhile
                return await self._postpone_shortly(post, str(error))
        assert state.account is not None
        return await self._hold(post, f"@{state.account.handle} must be connected again: {error}")

    async def _mark_broken(self, state: ChannelState, error: TokenRejected) -> bool:
        assert state.account is not None
        return await self._tokens.mark_broken(state.account, str(error))

    async def _postpone_shortly(self, post: Post, reason: str) -> str:
        until = self._posts.now() + timedelta(seconds=1)
        await self._settle(post, lambda found, now: states.postpone(found, until, reason, at=now), None)
        raise RetryLater(at=until, reason=reason)

    async def _settle(self, post: Post, decide: Callable[[Post, datetime], Post], news: News | None) -> None:
        """Write what became of this attempt, unless somebody else has moved the post on."""

        def checked(found: Post) -> Post:
            return decide(_own(found, post.mark), self._posts.now())

        await self._posts.settle(post.user, post.id, checked, None if news is None else lambda _: news)


def _publication(post: Post, state: ChannelState) -> Publication:
    assert state.account is not None
    return Publication(
        text=post.text,
        remote_user=state.account.remote_id,
        handle=state.account.handle,
        topic_tag=None if state.channel.topic_tag is MISSING else state.channel.topic_tag,
        container=None if post.container is MISSING or post.container_account != state.account.id else post.container,
    )


def _grace(state: ChannelState) -> timedelta:
    return timedelta(minutes=state.product.grace_minutes)


def _marked(post: Post, mark: str, seen: int, now: datetime) -> Post:
    """Take the post for this attempt; `NotAllowed` if it is not as it was read."""
    if post.version != seen:
        raise NotAllowed("somebody else changed the post meanwhile")
    return evolve(post, mark=mark) if post.state == "publishing" else states.begin(post, mark, at=now)


def _own(post: Post, mark: object) -> Post:
    if post.mark != mark:
        raise NotAllowed("another attempt has this post")
    return post


def _published(post: Post, mark: str, published: Published, now: datetime) -> Post:
    """Note it at least, where a person has decided meanwhile that it did not go out."""
    if post.mark == mark and "published" in states.NEXT_STATES[post.state]:
        return states.publish(post, published.remote_id, published.url, at=now)
    return states.noted(post, at=now, by="slothpost", note=f"an earlier attempt reports that it went out: {published.url}")


def _approved(post: Post, reason: str, now: datetime) -> Post:
    if post.state == "approved":
        return post
    return evolve(states.step(post, "approved", at=now, by="slothpost", note=reason), mark=MISSING)


def _news(kind: NoticeKind, post: Post, text: str) -> News:
    return News(user=post.user, kind=kind, text=text, id=f"{kind}-{post.id}-{post.version}", post=post.id, product=post.product)


def _name(post: Post) -> str:
    return NETWORK_NAMES[post.channel]
