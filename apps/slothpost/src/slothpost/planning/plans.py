"""Sets the plans of channels: what is stored, and the schedule that makes its drafts, commit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
import msgspec.structs

from slothpost.errors import NotFound
from slothpost.identifiers import DRAFT, draft_key, new_id
from slothpost.model import Channel, ChannelName, Post, Product, User
from slothpost.plan import Plan
from slothpost.planning.channel_plan import stored_plan
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts.post_writer import PostWriter
from tickler import Policy, PythonTarget, Schedule, Tickler
from tickler.observe import Why
from tickler.table import Condition, OpenTable, Transaction, evolve

CHANNELS: Sequence[ChannelName] = ("x", "threads")

_POLICY = Policy(attempts=8, backoff=[30, 300, 1800], timeout=300)


class ChannelView(msgspec.Struct, frozen=True):
    """What a page shows of a channel: its next draft, its next slot, and why it does or does not draft."""

    state: ChannelState
    next_draft: datetime | None
    next_slot: datetime | None
    why: Why | None

    @property
    def is_scheduled(self) -> bool:
        return bool(self.state.channel.days)


class Plans:
    """Plans and pauses of channels. Every write of a channel also writes its schedule."""

    def __init__(self, t: Tickler, db: OpenTable, posts: PostWriter) -> None:
        self._t = t
        self._db = db
        self._posts = posts
        self._circumstances = Circumstances(db)

    async def set_plan(
        self, user: str, product: str, name: ChannelName, days: Mapping[str, object], zone: str | None = None
    ) -> Plan:
        """Set when a channel posts. `InvalidWhen` names what cannot be used; nothing is changed then."""
        now = self._now()

        async def work(tx: Transaction) -> Plan:
            state = await self._circumstances.of_channel(user, product, name, tx)
            plan = Plan.read(days, zone or state.channel.zone, timedelta(minutes=state.product.lead_minutes))
            kept = {day: times for day, times in plan.slots.days().items() if times}
            changed = evolve(state.channel, days=kept, zone=plan.slots.tz, active_since=now)
            tx.put(changed)
            await self._schedule(tx, with_channel(state, changed))
            return plan

        return await self._db.transact(work)

    async def pause_channel(self, user: str, product: str, name: ChannelName, *, paused: bool) -> None:
        """Pause or resume one channel. While it is paused it is in no index; what passes meanwhile was not missed."""
        await self._write_channel(user, product, name, paused=paused)
        await self._write_posts(user, (Post.product == product) & (Post.channel == name))

    async def pause_product(self, user: str, product_id: str, *, paused: bool) -> None:
        product = await self._circumstances.product(user, product_id)
        await self._db.update(product.key, Product.paused.set(paused))
        await self.rearrange(user, product_id)

    async def pause_user(self, user: str, *, paused: bool) -> None:
        await self._db.update(User.key.id(user), User.paused.set(paused))
        await self.rearrange_all(user)

    async def rearrange(self, user: str, product: str) -> None:
        """Write the schedules of a product's channels and waiting posts as they should be now; safe at any time."""
        for name in CHANNELS:
            await self._write_channel(user, product, name)
        await self._write_posts(user, Post.product == product)

    async def rearrange_all(self, user: str) -> None:
        """Do that for all products of a user."""
        async for product in self._db.iterate(Product.of_user(user)):
            for name in CHANNELS:
                await self._write_channel(user, product.id, name)
        await self._write_posts(user)

    async def view(self, user: str, product: str, name: ChannelName) -> ChannelView:
        """Return when a channel drafts and posts next, and why, as the engine says."""
        state = await self._circumstances.of_channel(user, product, name)
        key = draft_key(product, name)
        stored = await self._t.schedules.get(user, key)
        if stored is None:
            return ChannelView(state, None, None, None)
        plan = stored_plan(state.product, state.channel)
        next_draft = None if stored.next_fire_at is None else datetime.fromtimestamp(stored.next_fire_at / 1000, UTC)
        next_slot = None if state.pause_reason else plan.next_slot(self._now())
        return ChannelView(state, next_draft, next_slot, _in_our_words(await self._t.why(user, key, names_workers=False)))

    async def _write_channel(self, user: str, product: str, name: ChannelName, *, paused: bool | None = None) -> None:
        """Write a channel and its schedule anew."""
        now = self._now()

        async def work(tx: Transaction) -> None:
            state = await self._circumstances.of_channel(user, product, name, tx)
            wanted = with_channel(state, state.channel if paused is None else evolve(state.channel, paused=paused))
            if wanted.pause_reason is None:
                wanted = with_channel(wanted, evolve(wanted.channel, active_since=now))
            tx.put(wanted.channel)
            await self._schedule(tx, wanted)

        await self._db.transact(work)

    async def _write_posts(self, user: str, where: Condition[Post] | None = None) -> None:
        """Write the schedules of waiting posts anew."""
        async for post in self._db.iterate(Post.waiting(user), where=where):
            with suppress(NotFound):  # it was deleted meanwhile
                await self._posts.change(user, post.id, _written_anew)

    async def _schedule(self, tx: Transaction, state: ChannelState) -> None:
        """Put the schedule of a channel's drafts into a transaction, or its deletion, and draft at once what is due already."""
        channel, owner = state.channel, state.user.id
        key, payload = draft_key(channel.product, channel.name), {"product": channel.product, "channel": channel.name}
        if not channel.days:
            await self._t.schedules.delete(owner, key, using=tx)
            return
        plan = stored_plan(state.product, channel)
        is_on, target = state.pause_reason is None, PythonTarget(DRAFT)
        schedule = Schedule(
            owner=owner, key=key, when=plan.drafts(), target=target, payload=payload, policy=_POLICY, enabled=is_on
        )
        await self._t.schedules.put(schedule, using=tx)
        if is_on and plan.due_slots(self._now(), since=self._now()):
            await self._t.send(owner, f"{key}/at-once/{new_id()}", target, payload, policy=_POLICY, using=tx)

    def _now(self) -> datetime:
        return self._posts.now()


def with_channel(state: ChannelState, channel: Channel) -> ChannelState:
    return msgspec.structs.replace(state, channel=channel)


def _in_our_words(why: Why) -> Why:
    """Return what the engine says, which names the schedule by its owner and key, and a command of its own."""

    def reworded(text: str) -> str:
        named = text.replace(f"{why.owner}/{why.key}", "the drafting of this channel")
        return named.replace("`tickler work`", "`slothpost serve`")

    facts = [msgspec.structs.replace(fact, says=reworded(fact.says)) for fact in why.facts]
    return msgspec.structs.replace(why, sentence=reworded(why.sentence), facts=facts)


def _written_anew(post: Post) -> Post:
    """Return a post that waits as another object, so that it is written with its schedules: why it is held is found out then."""
    if post.state == "approved":
        return evolve(post, held="")
    return evolve(post) if post.state == "drafted" else post
