"""What people decide about posts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from installation import Installation, berlin
from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.identifiers import publish_key

PLAN = {"tue": "09:00", "thu": ["09:00", "17:30"]}


async def test_an_approved_post_has_one_schedule_at_its_slot(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    post = await anywhere.app.review.approve("ada", (await anywhere.a_draft(product)).id, by="Ada")
    assert post.state == "approved"
    stored = await anywhere.app.t.schedules.get("ada", publish_key(post.id))
    assert stored is not None
    assert stored.next_fire_at == int(berlin("2027-03-02 09:00").timestamp() * 1000)
    assert await anywhere.app.review.count("ada") == 0


async def test_an_approval_is_taken_back_with_its_schedule(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    post = await anywhere.app.review.approve("ada", (await anywhere.a_draft(product)).id, by="Ada")
    post = await anywhere.app.review.unapprove("ada", post.id, by="Ada")
    assert post.state == "drafted"
    assert await anywhere.app.t.schedules.get("ada", publish_key(post.id)) is None
    await anywhere.until(berlin("2027-03-02 09:01"))
    assert anywhere.x.posts == []


async def test_a_text_that_the_network_would_refuse_cannot_be_approved(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product, "tea " * 80)
    with pytest.raises(InvalidField, match=r"text: .*39"):
        await here.app.review.approve("ada", post.id, by="Ada")
    approved = await here.app.review.approve("ada", post.id, by="Ada", text="Tea, in fewer words.")
    assert (approved.state, approved.text) == ("approved", "Tea, in fewer words.")
    with pytest.raises(InvalidField, match="text: "):
        await here.app.review.edit("ada", post.id, by="Ada", text="tea " * 80)
    assert (await here.post(post)).text == "Tea, in fewer words."


async def test_an_approval_is_of_the_text_that_was_read(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    card = here.app.review.card

    async def edited_after_reading(user: str, id: str) -> object:
        found = await card(user, id)
        await here.app.review.edit(user, id, by="Bob", text="Something else.")
        return found

    monkeypatch.setattr(here.app.review, "card", edited_after_reading)
    with pytest.raises(NotAllowed, match="somebody has changed the text meanwhile"):
        await here.app.review.approve("ada", post.id, by="Ada")
    assert (await here.post(post)).state == "drafted"


async def test_a_snoozed_draft_leaves_the_queue_and_comes_back(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    post = await anywhere.a_draft(product)
    await anywhere.app.review.snooze("ada", post.id, by="Ada", until=berlin("2027-03-01 18:00"))
    assert await anywhere.app.review.count("ada") == 0
    await anywhere.until(berlin("2027-03-01 18:00"))
    assert await anywhere.app.review.count("ada") == 1
    with pytest.raises(InvalidField, match="until: this instant has passed"):
        await anywhere.app.review.snooze("ada", post.id, by="Ada", until=anywhere.now())


async def test_a_rejected_post_is_never_posted_and_can_be_restored(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    assert (await here.app.review.reject("ada", post.id, by="Ada", note="not now")).state == "skipped"
    await here.until(berlin("2027-03-02 08:00"))
    restored = await here.app.review.restore("ada", post.id, by="Ada")
    assert [(step.state, step.by, step.note) for step in restored.history] == [
        ("drafted", "ada", "written by hand"),
        ("skipped", "Ada", "not now"),
        ("drafted", "Ada", "restored"),
    ]
    await here.until(berlin("2027-03-02 09:01"))
    assert here.x.posts == []


async def test_what_nobody_decided_by_its_slot_is_held_and_says_so(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    post = await anywhere.a_draft(product)
    await anywhere.until(berlin("2027-03-02 09:01"))
    held = await anywhere.post(post)
    assert (held.state, held.held, held.slot_at) == (
        "drafted",
        "nobody decided before its slot: it waits for you",
        berlin("2027-03-02 09:00"),
    )
    assert [notice.kind for notice in await anywhere.app.notices.latest("ada")] == ["undecided"]
    assert anywhere.x.posts == []


async def test_a_held_draft_gets_the_next_free_slot_when_it_is_approved(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    await here.until(berlin("2027-03-02 09:30"))
    approved = await here.app.review.approve("ada", post.id, by="Ada")
    assert (approved.slot_at, approved.held) == (berlin("2027-03-04 09:00"), "")


async def test_what_nobody_decided_moves_to_the_next_slot_if_the_product_says_so(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN, undecided="next_slot")
    post = await anywhere.a_draft(product)
    await anywhere.until(berlin("2027-03-02 09:01"))
    moved = await anywhere.post(post)
    assert (moved.state, moved.slot_at) == ("drafted", berlin("2027-03-04 09:00"))
    assert "moved to Thu 04 Mar 08:00 UTC" in moved.history[-1].note


async def test_a_post_goes_out_at_once_when_asked(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.app.review.post_now("ada", (await here.a_draft(product)).id, by="Ada")
    await here.for_(timedelta(seconds=5))
    assert (await here.post(post)).state == "published"
    assert [each.text for each in here.x.posts] == [post.text]


async def test_a_post_moves_by_days_and_keeps_its_time_when_clocks_change(here: Installation) -> None:
    product = await here.a_channel({"sat": "09:00"})
    here.clock.set(berlin("2027-03-26 12:00"))
    post = await here.a_draft(product)
    assert post.slot_at == berlin("2027-03-27 09:00")
    moved = await here.app.review.move_to_day("ada", post.id, by="Ada", days=1)
    assert moved.slot_at == berlin("2027-03-28 09:00")
    assert (moved.slot_at - post.slot_at) == timedelta(hours=23)


async def test_a_post_moves_to_the_next_free_slot(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    first, second = await here.a_draft(product), await here.a_draft(product, "Second.")
    moved = await here.app.review.to_next_slot("ada", first.id, by="Ada")
    assert (second.slot_at, moved.slot_at) == (berlin("2027-03-04 09:00"), berlin("2027-03-04 17:30"))
    with pytest.raises(InvalidField, match="slot_at: this instant has passed"):
        await here.app.review.move("ada", first.id, by="Ada", slot_at=here.now())


async def test_cards_warn_of_two_posts_in_the_same_minute(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    first, second = await here.a_draft(product), await here.a_draft(product, "Second.")
    await here.app.review.move("ada", second.id, by="Ada", slot_at=first.slot_at + timedelta(seconds=20))
    for post in (first, second):
        card = await here.app.review.card("ada", post.id)
        assert any("same minute" in warning for warning in card.warnings)


async def test_the_same_text_as_a_recent_post_is_warned_of(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    await here.a_draft(product, "Kettles whistle again.")
    again = await here.a_draft(product, "kettles whistle again.")
    assert any("same text" in warning.lower() for warning in (await here.app.review.card("ada", again.id)).warnings)


async def test_posts_of_somebody_else_are_not_found(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    await here.a_user("eve")
    review, later = here.app.review, here.now() + timedelta(hours=2)
    for work in (
        review.card("eve", post.id),
        review.approve("eve", post.id, by="Eve"),
        review.unapprove("eve", post.id, by="Eve"),
        review.edit("eve", post.id, by="Eve", text="mine"),
        review.snooze("eve", post.id, by="Eve", until=later),
        review.reject("eve", post.id, by="Eve"),
        review.restore("eve", post.id, by="Eve"),
        review.post_now("eve", post.id, by="Eve"),
        review.to_next_slot("eve", post.id, by="Eve"),
        review.move("eve", post.id, by="Eve", slot_at=later),
        review.move_to_day("eve", post.id, by="Eve", days=1),
        review.went_out("eve", post.id, by="Eve", url="https://x.com/1"),
        review.send_again("eve", post.id, by="Eve"),
    ):
        with pytest.raises(NotFound):
            await work
    assert await here.post(post) == post


async def test_what_the_state_does_not_admit_is_refused(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.a_draft(product)
    for work in (
        here.app.review.unapprove("ada", post.id, by="Ada"),
        here.app.review.restore("ada", post.id, by="Ada"),
        here.app.review.went_out("ada", post.id, by="Ada", url="https://x.com/ada/status/1"),
        here.app.review.send_again("ada", post.id, by="Ada"),
    ):
        with pytest.raises(NotAllowed, match="this post is drafted"):
            await work


async def test_what_was_changed_since_it_was_read_is_not_approved_by_any_action(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    read = await here.a_draft(product)
    await here.app.review.edit("ada", read.id, by="Bob", text="Something that Ada has not read.")
    review, later = here.app.review, here.now() + timedelta(hours=2)
    for work in (
        review.approve("ada", read.id, by="Ada", version=read.version),
        review.post_now("ada", read.id, by="Ada", version=read.version),
        review.to_next_slot("ada", read.id, by="Ada", version=read.version),
        review.move("ada", read.id, by="Ada", slot_at=later, version=read.version),
    ):
        with pytest.raises(NotAllowed, match="this post was changed meanwhile: reload the page, and read it again"):
            await work
    now = await here.post(read)
    assert (await review.approve("ada", read.id, by="Ada", version=now.version)).state == "approved"
