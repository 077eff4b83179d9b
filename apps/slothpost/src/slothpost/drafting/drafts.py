"""Makes drafts: for the slots of a plan when their time has come, again with a hint, or from what somebody wrote.

Every slot ends with a post or with a reason why there is none; that is stored under the slot, and never stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypedDict

import msgspec

from slothpost.drafting.choose import choose
from slothpost.drafting.drafter import Draft, DraftRequest
from slothpost.drafting.drafters import Drafters
from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.identifiers import drafted_post_id, new_id
from slothpost.model import NETWORK_NAMES, Activity, ChannelName, Connection, Post, Slot
from slothpost.notices import News, Notices
from slothpost.plan import PlannedSlot
from slothpost.planning.channel_plan import plan_of, taken_slots
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts import states
from slothpost.posts.actions import check_action
from slothpost.posts.cards import recent_posts
from slothpost.posts.post_writer import PostWriter
from slothpost.posts.review import MAX_TEXT
from slothpost.quotas import MAX_WAITING, REDRAFTS, WRITTEN_POSTS
from tickler import RetryLater
from tickler.errors import ConditionFailed
from tickler.table import MISSING, Missing, OpenTable, Transaction, evolve

LOOK_BACK = timedelta(days=8)  # slots that passed earlier are not accounted for any more
SLOTS_KEPT = timedelta(days=90)
MAX_CANDIDATES = 200
MAX_HINT = 500


class Drafts:
    """The handler of `draft/{product}/{channel}`, and what people ask of the drafters."""

    def __init__(self, db: OpenTable, posts: PostWriter, drafters: Drafters, notices: Notices) -> None:
        self._db = db
        self._posts = posts
        self._drafters = drafters
        self._notices = notices
        self._circumstances = Circumstances(db)
        self._redrafts = REDRAFTS.limit(posts.now)
        self._writes = WRITTEN_POSTS.limit(posts.now)

    async def draft(self, user: str, product: str, channel: ChannelName) -> str:
        """Draft for every slot whose draft is due and missing. Returns what was done, for the history of the fire."""
        state = await self._circumstances.of_channel(user, product, channel)
        if state.pause_reason is not None:
            return f"nothing to do: {state.pause_reason}"
        now = self._posts.now()
        since = max(state.channel.active_since, now - LOOK_BACK)
        accounted = [slot.at async for slot in self._db.iterate(Slot.key(product).under(channel).since(since))]
        done = [
            await self._fill(state, slot, now) for slot in plan_of(state).due_slots(now, since=since) if slot.at not in accounted
        ]
        return "; ".join(done) or "nothing to do: every slot has its draft"

    async def regenerate(self, user: str, id: str, *, by: str, hint: str = "") -> Post:
        """Write a draft anew from what the first one could be written from. What it does not tell of is for other posts."""
        post = await self._posts.get(user, id)
        check_action(post, "regenerate")
        state = await self._circumstances.of_post(post)
        found = await self._db.get_many([Activity.key.id(post.product, each) for each in post.offered or post.activities])
        free = (MISSING, post.id)
        activities = [each for each in found if each is not None and _told_by(each, post.channel) in free]
        if not activities:
            raise NotAllowed("this post was not drafted from activity, so there is nothing to write it from: edit it")
        private_names = await self._private_names(post.product, activities)
        choice = choose(activities, product=state.product, private_names=private_names)
        if not choice.activities:
            raise NotAllowed(f"there is nothing left to tell: {choice.nothing}")
        if self._redrafts.take(user):
            raise NotAllowed("you had many drafts written anew within an hour: edit this one, or try again in some minutes")
        seed = f"{post.id}:{len(post.history)}"
        told = _Told(choice.activities, private_names, hint=hint[:MAX_HINT], instead_of=post)
        draft = await self._drafters.draft(await self._request(state, told, seed))

        async def work(tx: Transaction) -> Post:
            found = await tx.get(post.key)
            if found is None:
                raise NotFound("post")
            check_action(found, "regenerate")
            back = found if found.state == "drafted" else states.step(found, "drafted", at=self._posts.now(), by=by)
            note = f"drafted anew{f': {hint[:100]}' if hint else ''}"
            noted = states.noted(back, at=self._posts.now(), by=by, note=note)
            written = evolve(noted, **_written(draft), activities=list(draft.used), container=MISSING)
            _mark(tx, written, told=set(draft.used) - set(found.activities), untold=set(found.activities) - set(draft.used))
            return await self._posts.write(tx, written, before=found)

        try:
            return await self._db.transact(work)
        except ConditionFailed:
            raise NotAllowed("another post has told some of the same activity meanwhile: try again") from None

    async def write(
        self, user: str, product: str, channel: ChannelName, text: str, *, by: str, slot_at: datetime | None = None
    ) -> Post:
        """Keep a post that somebody wrote as a draft, for an instant or for the next slot that is free."""
        state = await self._circumstances.of_channel(user, product, channel)
        now = self._posts.now()
        stripped = text.replace("\r\n", "\n").strip()
        if not stripped or len(stripped) > MAX_TEXT:
            raise InvalidField("text", f"it is empty, or has more than {MAX_TEXT:,} characters: write a post")
        await self._check_quota(user, now)
        if slot_at is None:
            slot_at = plan_of(state).next_slot(now, taken=await taken_slots(self._db, product, channel, now))
            if slot_at is None:
                raise InvalidField("slot_at", "the plan of this channel has no time: choose when it goes out")
        elif slot_at <= now:
            raise InvalidField("slot_at", "this instant has passed: choose a later one")
        fresh = Post(
            user=user,
            id=new_id(),
            product=product,
            channel=channel,
            state="drafted",
            text=stripped,
            slot_at=slot_at,
            due_at=slot_at,
            version=0,
        )
        post = states.noted(fresh, at=now, by=by, note="written by hand")

        async def work(tx: Transaction) -> None:
            await self._posts.write(tx, post, before=None, state=state)

        await self._db.transact(work)
        return await self._posts.get(user, post.id)

    async def _check_quota(self, user: str, now: datetime) -> None:
        """Raise `NotAllowed` for a user who has very many posts, or writes them very fast."""
        waiting = [await self._db.count(selection) for selection in (Post.review(user), Post.by_slot(user).since(now))]
        if max(waiting) >= MAX_WAITING:
            raise NotAllowed(f"you have {MAX_WAITING} posts that wait, which is the most: decide about some of them first")
        if self._writes.take(user):
            raise NotAllowed("you have written many posts within an hour: try again in some minutes")

    async def _fill(self, state: ChannelState, slot: PlannedSlot, now: datetime) -> str:
        """Account for one slot. Of several who do it at once, one writes."""
        channel = state.channel
        label = f"{slot.at:%d %b %H:%M} UTC"
        if slot.at <= now:
            return await self._leave_empty(
                channel.product, channel.name, slot, "slothpost was not running when it was to be drafted"
            )
        taken_by = await self._taken_by(channel.product, channel.name, slot.at)
        if taken_by is not None:
            await self._account(Slot(product=channel.product, channel=channel.name, at=slot.at, post=taken_by), now)
            return f"{label} has a post already"
        candidates = await self._candidates(channel.product, channel.name)
        private_names = await self._private_names(channel.product, candidates)
        choice = choose(candidates, product=state.product, private_names=private_names)
        if not choice.activities:
            maintenance = await self._maintenance(channel.product, channel.name, slot.at)
            reason = choose([*candidates, *maintenance], product=state.product).nothing
            return await self._leave_empty(channel.product, channel.name, slot, reason)
        id = drafted_post_id(channel.product, channel.name, slot.at)
        draft = await self._drafters.draft(await self._request(state, _Told(choice.activities, private_names), id))
        offered = [activity.id for activity in choice.activities]
        return f"{label}: {await self._store(state, slot, id, draft, offered)}"

    async def _store(self, state: ChannelState, slot: PlannedSlot, id: str, draft: Draft, offered: list[str]) -> str:
        """Write the draft, its slot, what it tells of, and the notice about it: all or nothing."""
        now, channel, user = self._posts.now(), state.channel, state.user.id
        fresh = Post(
            user=user,
            id=id,
            product=channel.product,
            channel=channel.name,
            state="drafted",
            slot_at=slot.at,
            due_at=slot.at,
            activities=list(draft.used),
            offered=offered,
            version=0,
            **_written(draft),
        )
        post = states.noted(fresh, at=now, by="slothpost", note=f"drafted for {slot.at:%d %b %H:%M} UTC")
        text = f"A draft for {state.product.name} on {NETWORK_NAMES[channel.name]} waits for you"
        news = News(user=user, kind="draft", text=text, id=f"draft-{id}", post=id, product=channel.product)

        async def work(tx: Transaction) -> None:
            tx.create(Slot(product=channel.product, channel=channel.name, at=slot.at, post=id, expires_at=slot.at + SLOTS_KEPT))
            _mark(tx, post, told=draft.used)
            await self._posts.write(tx, post, before=None, state=state)
            await self._notices.add(tx, news)

        try:
            await self._db.transact(work)
        except ConditionFailed:
            if await self._db.get(Slot.key.id(channel.product, channel.name, slot.at)) is None:
                reason = "another draft took some of the same activity meanwhile"
                raise RetryLater(after=timedelta(seconds=10), reason=reason) from None
            return "somebody else was faster"
        return f"drafted {id}"

    async def _leave_empty(self, product: str, channel: ChannelName, slot: PlannedSlot, reason: str) -> str:
        await self._account(Slot(product=product, channel=channel, at=slot.at, nothing=reason), slot.at)
        return f"{slot.at:%d %b %H:%M} UTC: nothing to tell: {reason}"

    async def _account(self, slot: Slot, now: datetime) -> None:
        try:
            await self._db.create(evolve(slot, expires_at=now + SLOTS_KEPT))
        except ConditionFailed:
            return  # it is accounted for

    async def _candidates(self, product: str, channel: ChannelName) -> list[Activity]:
        index = Activity.for_x if channel == "x" else Activity.for_threads
        return list((await self._db.query(index(product).newest_first(), first=MAX_CANDIDATES)).items)

    async def _maintenance(self, product: str, channel: ChannelName, before: datetime) -> list[Activity]:
        """Return what happened since the latest post that is never told: it is counted where there is nothing to tell."""
        page = await self._db.query(Post.of_channel(product, channel).before(before).newest_first(), first=1)
        since = min(page.items[0].slot_at, self._posts.now()) if page.items else before - LOOK_BACK
        happened = Activity.by_time(product).since(since).newest_first()
        return list((await self._db.query(happened, where=Activity.worth == 0, first=MAX_CANDIDATES)).items)

    async def _taken_by(self, product: str, channel: ChannelName, at: datetime) -> str | None:
        """Return the post that has a slot already, such as one that somebody wrote for it."""
        there = Post.of_channel(product, channel).between(at, at)
        return next(iter([post.id async for post in self._db.iterate(there, where=Post.state != "skipped")]), None)

    async def _private_names(self, product: str, activities: Sequence[Activity]) -> Sequence[str]:
        """Return what must not occur in drafts about private activity: the names of private repositories.

        Each activity has that of its own: the connection may know another one by now, or none.
        """
        connections = [each async for each in self._db.iterate(Connection.key(product))]
        connected = [each.name for each in connections if each.is_private and each.name is not MISSING]
        named = [activity.repository for activity in activities if activity.is_private and activity.repository]
        return list(dict.fromkeys([*connected, *named]))

    async def _request(self, state: ChannelState, told: _Told, seed: str) -> DraftRequest:
        recent = await recent_posts(self._db, state.product.id, state.channel.name)
        if told.instead_of is not None:  # it comes first, so that the new draft is unlike it
            recent = [told.instead_of, *(post for post in recent if post.id != told.instead_of.id)]
        return DraftRequest(
            product=state.product,
            channel=state.channel.name,
            activities=told.activities,
            recent=[(post.text, post.angle) for post in recent],
            hint=told.hint,
            seed=seed,
            private_names=told.private_names if any(activity.is_private for activity in told.activities) else (),
        )


class _Told(msgspec.Struct, frozen=True):
    """What a draft is to tell of, in place of which post, and what it must not name."""

    activities: Sequence[Activity]
    private_names: Sequence[str]
    hint: str = ""
    instead_of: Post | None = None


def _told_by(activity: Activity, channel: ChannelName) -> str | Missing:
    """Return the post on a network that tells of an activity."""
    return activity.x_post if channel == "x" else activity.threads_post


def _mark(tx: Transaction, post: Post, *, told: Iterable[str], untold: Iterable[str] = ()) -> None:
    """Use activity up for a post, and give back what it does not tell of any more."""
    mark = Activity.x_post if post.channel == "x" else Activity.threads_post
    for id in told:
        tx.update(Activity.key.id(post.product, id), mark.set(post.id), when=mark.missing())
    for id in untold:
        tx.update(Activity.key.id(post.product, id), mark.remove(), when=mark == post.id)


class _Written(TypedDict):
    text: str
    drafter: str
    drafter_note: str
    angle: str


def _written(draft: Draft) -> _Written:
    """Return the attributes of a post that a drafter decides."""
    return {"text": draft.text, "drafter": draft.drafter, "drafter_note": draft.note, "angle": draft.angle}
