"""Drafts at their local time, each slot accounted for once, on every store."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from installation import ZONE, Installation, berlin
from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.model import Activity, Notice

PLAN = {"tue": "09:00", "thu": ["09:00", "17:30"]}


async def test_a_draft_waits_for_its_author_half_a_day_before_the_slot(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    activity = await anywhere.an_activity(product)
    await anywhere.until(berlin("2027-03-01 20:59"))
    assert await anywhere.posts(product) == []
    await anywhere.until(berlin("2027-03-01 21:01"))
    (post,) = await anywhere.posts(product)
    assert (post.state, post.slot_at, post.activities) == ("drafted", berlin("2027-03-02 09:00"), [activity.id])
    assert [card.post.id for card in (await anywhere.app.review.queue("ada")).items] == [post.id]
    (slot,) = await anywhere.slots(product)
    assert (slot.at, slot.post) == (post.slot_at, post.id)
    assert [notice.kind for notice in await anywhere.app.notices.latest("ada")] == ["draft"]


async def test_drafts_keep_their_local_time_when_clocks_change(here: Installation) -> None:
    product = await here.a_channel({"sun": "09:00"})
    for week in range(5):
        await here.an_activity(product, f"Number {week} of the things people asked for")
        await here.for_(timedelta(days=7))
    drafted = [(post.history[0].at, post.slot_at) for post in await here.posts(product)]
    assert drafted == [
        (berlin(f"2027-{day} 21:00"), berlin(f"2027-{slot} 09:00"))
        for day, slot in [("03-06", "03-07"), ("03-13", "03-14"), ("03-20", "03-21"), ("03-27", "03-28"), ("04-03", "04-04")]
    ]


async def test_nothing_to_tell_is_said_with_the_reason(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    await anywhere.until(berlin("2027-03-01 21:01"))
    (slot,) = await anywhere.slots(product)
    assert slot.nothing
    assert await anywhere.posts(product) == []


async def test_maintenance_alone_is_counted_where_there_is_nothing_to_tell(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    for title in ("Update dependencies", "Fix a typo", "Run tests in parallel"):
        await here.an_activity(product, title, kind="chore", worth=0)
    await here.until(berlin("2027-03-01 21:01"))
    (slot,) = await here.slots(product)
    assert "3" in str(slot.nothing)
    assert "maintenance" in str(slot.nothing)


async def test_activity_is_told_once_on_each_channel(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    await anywhere.app.plans.set_plan("ada", product.id, "threads", {"tue": "09:00"}, ZONE)
    activity = await anywhere.an_activity(product)
    await anywhere.until(berlin("2027-03-04 08:00"))
    (on_x,) = await anywhere.posts(product, "x")
    (on_threads,) = await anywhere.posts(product, "threads")
    used = await anywhere.app.db.get(activity.key)
    assert used is not None
    assert (used.x_post, used.threads_post) == (on_x.id, on_threads.id)
    assert [slot.nothing is not None for slot in await anywhere.slots(product)].count(True) >= 1


async def test_several_processes_make_one_draft_of_a_slot(anywhere: Installation) -> None:
    product = await anywhere.a_channel({"mon": "12:00"})
    await anywhere.an_activity(product)
    await asyncio.gather(*(anywhere.app.drafts.draft("ada", product.id, "x") for _ in range(4)))
    assert len(await anywhere.posts(product)) == 1
    assert len(await anywhere.slots(product)) == 1


async def test_slots_that_passed_while_nothing_ran_are_said_to_have_passed(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    await here.an_activity(product)
    here.clock.set(berlin("2027-03-04 12:00"))
    await here.for_(timedelta(minutes=1))
    passed, filled = (await here.slots(product))[0], (await here.slots(product))[-1]
    assert "was not running" in str(passed.nothing)
    assert (filled.at, filled.post) == (berlin("2027-03-04 17:30"), (await here.posts(product))[0].id)


async def test_a_post_written_by_hand_takes_the_next_free_slot_which_is_not_drafted_then(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    await here.an_activity(product)
    first = await here.a_draft(product, "One thing I learned this week about kettles.")
    second = await here.a_draft(product, "Another thing I learned about kettles.")
    assert (first.slot_at, second.slot_at) == (berlin("2027-03-02 09:00"), berlin("2027-03-04 09:00"))
    await here.until(berlin("2027-03-01 21:01"))
    assert [post.id for post in await here.posts(product)] == [first.id, second.id]
    (slot,) = await here.slots(product)
    assert slot.post == first.id


async def test_a_post_for_a_channel_without_a_plan_needs_an_instant(here: Installation) -> None:
    product = await here.a_product()
    with pytest.raises(InvalidField, match="slot_at: the plan of this channel has no time: choose when it goes out"):
        await here.a_draft(product)
    post = await here.app.drafts.write("ada", product.id, "x", "Hello.", by="Ada", slot_at=berlin("2027-03-05 10:00"))
    assert post.slot_at == berlin("2027-03-05 10:00")


async def test_a_draft_is_written_anew_from_the_same_activity(here: Installation) -> None:
    product = await here.a_channel({"mon": "12:00"})
    await here.an_activity(product)
    await here.for_(timedelta(minutes=1))
    (post,) = await here.posts(product)
    again = await here.app.drafts.regenerate("ada", post.id, by="Ada", hint="shorter")
    assert again.text != post.text
    assert (again.activities, again.state, again.history[-1].note) == (post.activities, "drafted", "drafted anew: shorter")


async def test_what_a_new_draft_does_not_tell_of_is_left_for_other_posts(anywhere: Installation) -> None:
    product = await anywhere.a_channel({"mon": "12:00", "wed": "12:00"})
    for number in range(5):
        await anywhere.an_activity(product, f"Dark theme number {number}")
    await anywhere.for_(timedelta(minutes=1))
    (post,) = await anywhere.posts(product)

    async def used_by(id: str) -> set[str]:
        listed = (await anywhere.app.activities.recent("ada", product.id)).items
        return {activity.id for activity in listed if activity.x_post == id}

    written = [post]
    for hint in ("one sentence, no list", "a list", "one sentence, no list"):
        written.append(await anywhere.app.drafts.regenerate("ada", post.id, by="Ada", hint=hint))
        assert await used_by(post.id) == set(written[-1].activities)
    assert len({len(each.activities) for each in written}) > 1
    await anywhere.until(berlin("2027-03-03 00:01"))
    (second,) = [each for each in await anywhere.posts(product) if each.id != post.id]
    assert set(second.activities).isdisjoint(written[-1].activities)
    more = await anywhere.app.drafts.regenerate("ada", post.id, by="Ada", hint="a list")
    assert set(more.activities).isdisjoint(second.activities)


async def test_a_post_from_no_activity_cannot_be_drafted_anew(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    with pytest.raises(NotAllowed, match="was not drafted from activity"):
        await here.app.drafts.regenerate("ada", post.id, by="Ada")


async def test_private_repositories_are_not_named(here: Installation) -> None:
    from slothpost.model import Connection

    product = await here.a_channel({"mon": "12:00"})
    await here.app.db.create(
        Connection(product=product.id, source="github", user="ada", name="ada/secret-kettle", is_private=True)
    )
    title = "Add a warm-up mode to secret-kettle"
    await here.an_activity(product, title, is_private=True, url="https://github.com/ada/secret-kettle/commit/1")
    await here.for_(timedelta(minutes=1))
    posts = await here.posts(product)
    assert all("secret" not in post.text.lower() and "github.com" not in post.text for post in posts)
    assert posts or (await here.slots(product))[0].nothing


async def test_posts_of_somebody_else_are_not_found(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    await here.a_user("eve")
    for work in (
        here.app.drafts.regenerate("eve", post.id, by="Eve"),
        here.app.drafts.write("eve", product.id, "x", "Mine now.", by="Eve"),
        here.app.drafts.draft("eve", product.id, "x"),
    ):
        with pytest.raises(NotFound):
            await work


async def test_what_a_paused_channel_would_draft_is_left(here: Installation) -> None:
    product = await here.a_channel({"mon": "12:00"})
    await here.app.plans.pause_channel("ada", product.id, "x", paused=True)
    assert await here.app.drafts.draft("ada", product.id, "x") == "nothing to do: this channel is paused"


async def test_a_draft_comes_with_a_notice_and_uses_its_activity_up(here: Installation) -> None:
    product = await here.a_channel({"mon": "12:00"})
    await here.an_activity(product)
    await here.app.drafts.draft("ada", product.id, "x")
    (notice,) = [each async for each in here.app.db.iterate(Notice.key("ada"))]
    assert notice.text == "A draft for Teapot on X waits for you"
    assert await here.app.db.count(Activity.for_x(product.id)) == 0
