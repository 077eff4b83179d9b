"""What happens to a draft when its slot comes and nobody has decided: it is held, or it moves to the next slot."""

from __future__ import annotations

from slothpost.model import NETWORK_NAMES, Post
from slothpost.notices import News
from slothpost.planning.channel_plan import plan_of, taken_slots
from slothpost.planning.circumstances import Circumstances
from slothpost.posts import states
from slothpost.posts.post_writer import PostWriter
from tickler.table import MISSING, OpenTable, evolve


class Undecided:
    """The handler of `decide/{post}`: at the end of a snooze, and at the slot of a draft."""

    def __init__(self, db: OpenTable, posts: PostWriter) -> None:
        self._db = db
        self._posts = posts
        self._circumstances = Circumstances(db)

    async def decide(self, user: str, id: str) -> str:
        """Bring a snoozed draft back, or do what the product's setting says about one that missed its slot."""
        post = await self._db.get(Post.key.id(user, id))
        if post is None or post.state != "drafted":
            return "nothing to do: somebody has decided"
        now = self._posts.now()
        if post.slot_at > now:
            if post.snoozed_until is MISSING or post.snoozed_until > now:
                return "nothing to do: the draft was moved"
            await self._posts.change(user, id, lambda found: evolve(found, snoozed_until=MISSING))
            return "back from its snooze"
        state = await self._circumstances.of_post(post)
        if state.pause_reason is not None:
            return f"nothing to do: {state.pause_reason}"
        plan = plan_of(state)
        next_slot = None
        if state.product.undecided == "next_slot":
            next_slot = plan.next_slot(now, taken=await taken_slots(self._db, post.product, post.channel, now))
        if next_slot is None:
            note = "nobody decided before its slot: it waits for you"
        else:
            note = f"nobody decided before its slot: moved to {next_slot:%a %d %b %H:%M} UTC"

        def moved(found: Post) -> Post:
            if found.state != "drafted" or found.slot_at != post.slot_at:
                return found
            there = evolve(found, held=note, snoozed_until=MISSING) if next_slot is None else states.at_slot(found, next_slot)
            return states.noted(there, at=now, by="slothpost", note=note)

        def notice(changed: Post) -> News:
            text = f"A draft for {state.product.name} on {NETWORK_NAMES[post.channel]}: {note}"
            return News(
                user=user, kind="undecided", text=text, id=f"undecided-{id}-{post.version}", post=id, product=post.product
            )

        await self._posts.change(user, id, moved, notice)
        return note
